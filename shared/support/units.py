"""Cuts an answer into what is checked as one: sentences, table rows, block quotations, blocks of code.

Where a unit ends depends on its own text and a few characters behind it, never on how the text arrived, so
that a stream is cut as the whole would be. A list's items end with their lines; of several sentences in an
item, each is a unit. Sentences end where sentencex says; its rules are those of `lang`.
"""

import re
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

from shared.support.markers import end_of_markers, may_be_marker

# A quotation is not cut in two, unless it is so long that its end may have been forgotten.
LONGEST_QUOTATION = 600
_SPACE = re.compile(r"\s*")
# As long as a line is of these only, it may become anything.
_UNDECIDED = re.compile(r"[-*+•–>#|`~\d.)\s]*")
_LIST = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]+")
_QUOTE = re.compile(r"(?:>[ \t]*)+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_END = re.compile(r"[.!?…]+[\"'”’»›)\]*_]*|[。！？]+[」』”’）]*")
_UNSPACED = re.compile(r"[。！？]")
_NUMBER = re.compile(r"\(?\d{1,3}[.)]")
_FIRST = re.compile(r"[ \t]+[^\w\n]{0,8}(\w)")
_PAIRS = (("“", "”"), ("„", "“”"), ("«", "»"), ("「", "」"))


@dataclass(frozen=True, slots=True)
class Unit:
    """`before`: white space and markers that lead it."""

    before: str
    text: str


def next_unit(text: str, *, begins_line: bool, last: bool, lang: str) -> tuple[Unit, int] | None:
    """The first unit of the text and how many characters it takes; None where more text must come first, or,
    of the last text, where nothing is left. `begins_line`: whether the text begins a line."""
    start = 0
    while True:
        space = _SPACE.match(text, start)
        assert space is not None  # noqa: S101  # it also matches nothing
        begins_line = begins_line or "\n" in space.group()
        start = space.end()
        if start == len(text):
            return None
        undecided = _UNDECIDED.fullmatch(text, start) is not None
        if begins_line and undecided and not last:
            return None
        if not begins_line:
            break
        marker = _QUOTE.match(text, start)
        if marker is None or text[marker.end() : marker.end() + 1] != "\n":
            break
        # A line of a quotation with nothing in it.
        start = marker.end()
    return _unit(text, start, begins_line=begins_line, last=last, lang=lang)


def _unit(text: str, start: int, *, begins_line: bool, last: bool, lang: str) -> tuple[Unit, int] | None:
    whole = False
    if begins_line:
        if fence := _FENCE.match(text, start):
            return _taken(text, start, _end_of_code(text, fence, last=last))
        if marker := _QUOTE.match(text, start) or _HEADING.match(text, start):
            start, whole = marker.end(), True
        elif marker := _LIST.match(text, start):
            start = marker.end()
        whole = whole or text.startswith("|", start)
    line = text.find("\n", start)
    ends = line >= 0 or last
    limit = line if line >= 0 else len(text)
    if whole:
        return _taken(text, start, limit if ends else None)
    return _taken(text, start, _end_of_sentence(text, start, limit, ends=ends, lang=lang))


def _taken(text: str, start: int, end: int | None) -> tuple[Unit, int] | None:
    if end is None:
        return None
    said = text[start:end].rstrip()
    return Unit(text[:start], said), start + len(said)


def _end_of_code(text: str, fence: re.Match[str], *, last: bool) -> int | None:
    closing = re.compile(rf"\n[ \t]*{re.escape(fence.group())}[^\n]*(?=\n)").search(text, fence.end())
    if closing:
        return closing.end()
    return len(text) if last else None


def _end_of_sentence(text: str, start: int, limit: int, *, ends: bool, lang: str) -> int | None:
    """`limit`: where the line ends, or, unless it `ends`, where the text does so far."""
    for found in _END.finditer(text, start, limit):
        if not ends and found.end() == limit:
            return None
        behind = end_of_markers(text, found.end())
        if not ends and (behind == limit or may_be_marker(text[:limit], behind)):
            return None
        if _UNSPACED.match(found.group()):
            return behind
        first = _FIRST.match(text, behind, limit)
        if first is None and not ends and limit - behind < 12:
            return None
        spaced = text[behind : behind + 1] in (" ", "\t")
        if spaced and _divides(text[start : found.end()], first.group(1) if first else None, lang):
            return behind
    return limit if ends else None


def _divides(sentence: str, follows: str | None, lang: str) -> bool:
    """Whether the sentence is over where such a character follows."""
    if _NUMBER.fullmatch(sentence) or _open(sentence):
        return False
    if follows is None:
        return True
    # The library decides by the line: what is behind the mark, then the next word's beginning.
    found = get_sentence_boundaries(lang, f"{sentence} {follows}")
    return any(len(sentence) <= item["start_index"] <= len(sentence) + 1 for item in found)


def _open(sentence: str) -> bool:
    """Whether a quotation, or a bit of code, goes on."""
    if len(sentence) > LONGEST_QUOTATION:
        return False
    if sentence.count("`") % 2 or len(re.findall(r"(?<!\d)\"", sentence)) % 2:
        return True
    return any(sentence.rfind(opening) > max(map(sentence.rfind, closing)) for opening, closing in _PAIRS)
