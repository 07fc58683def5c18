"""Cuts an answer into what is checked as one: sentences, table rows, block quotations, blocks of code.

Where a unit ends depends on its own text and a few characters behind it, never on how the text arrived, so
that a stream is cut as the whole would be. A list's items end with their lines; of several sentences in an
item, each is a unit. Sentences end where sentencex says; its rules are those of `lang`. What is longer than
any sentence is cut by force. No character is looked at with every token: what was told once is remembered.
"""

import re
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

from shared.generation.grounding.citation_markers import end_of_markers, may_be_marker

# A quotation is not cut in two, unless it is so long that its end may have been forgotten.
LONGEST_QUOTATION = 600
# Longer than sentences are. What is written without an end would be looked at for minutes.
LONGEST_UNIT = 1500
# An abbreviation is told by what stands just before it.
_NEAR = 200
_SPACE = re.compile(r"\s*")
# As long as a line is of these only, it may become anything.
_UNDECIDED = re.compile(r"[-*+•–>#|`~\d.)\s]*")
_LIST = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]+")
_QUOTE = re.compile(r"(?:>[ \t]*)+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_END = re.compile(r"[.!?…।؟۔]+[\"'”’»›)\]*_]*|[。！？]+[」』”’）]*")
_UNSPACED = re.compile(r"[。！？]")
# Marks that end nothing but sentences.
_PLAIN_END = re.compile(r"[।؟۔]")
_NUMBER = re.compile(r"\(?\d{1,3}[.)]")
_BLANKS = re.compile(r"[ \t]*")
_AHEAD = 9
_FIRST = re.compile(rf"[ \t]+[^\w\n]{{0,{_AHEAD - 1}}}(\w)")
_PAIRS = (("“", "”"), ("„", "“”"), ("«", "»"), ("「", "」"), ("『", "』"))
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Unit:
    """`before`: white space and markers that lead it."""

    before: str
    text: str


class Cutter:
    """Takes a text piece by piece and gives its units, each as soon as its end is known."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        self._text = ""
        # Whether the unit begins a line, where it does so far, and up to where no sentence ends.
        self._begins_line, self._start, self._scanned = True, 0, 0

    def feed(self, text: str) -> None:
        self._text += text

    def next(self, *, last: bool = False) -> Unit | None:
        """The first unit; None where more text must come first or, of the last, where nothing is left."""
        if not self._is_decided(last=last):
            return None
        start, end = self._bounds(last=last)
        if end is None:
            return None
        content = self._text[start:end].rstrip()
        unit = Unit(self._text[:start], content)
        self._text = self._text[start + len(content) :]
        self._begins_line, self._start, self._scanned = False, 0, 0
        return unit

    def _is_decided(self, *, last: bool) -> bool:
        """Passes over white space and empty lines of a quotation; whether it can be told what follows."""
        text = self._text
        while True:
            space = _SPACE.match(text, self._start)
            assert space is not None  # noqa: S101  # it also matches nothing
            self._begins_line = self._begins_line or "\n" in space.group()
            self._start = space.end()
            if self._start == len(text):
                return False
            if not self._begins_line:
                return True
            if not last and _UNDECIDED.fullmatch(text, self._start):
                return False
            marker = _QUOTE.match(text, self._start)
            if marker is None or text[marker.end() : marker.end() + 1] != "\n":
                return True
            self._start = marker.end()

    def _bounds(self, *, last: bool) -> tuple[int, int | None]:
        """Where the unit begins behind its marker, and where it ends, or None where that is not known yet."""
        text, start, whole = self._text, self._start, False
        if self._begins_line:
            if fence := _FENCE.match(text, start):
                return start, self._end_of_code(fence, last=last)
            if marker := _QUOTE.match(text, start) or _HEADING.match(text, start):
                start, whole = marker.end(), True
            elif marker := _LIST.match(text, start):
                start = marker.end()
            whole = whole or text.startswith("|", start)
        line = text.find("\n", start)
        ends = line >= 0 or last
        limit = line if line >= 0 else len(text)
        if not whole:
            return start, self._end_of_sentence(start, limit, ends=ends)
        if limit - start > LONGEST_UNIT:
            return start, _forced(text, start)
        return start, limit if ends else None

    def _end_of_code(self, fence: re.Match[str], *, last: bool) -> int | None:
        text = self._text
        line = text.find("\n", fence.end())
        if line < 0:
            return len(text) if last else None
        if "`" in fence.group() and "`" in text[fence.end() : line]:
            # Opened and closed in one line.
            return line
        closing = re.compile(rf"\n[ \t]*{re.escape(fence.group())}[^\n]*(?=\n)")
        # From the line on that was not over yet.
        if closing_fence := closing.search(text, max(line, self._scanned)):
            return closing_fence.end()
        self._scanned = text.rfind("\n")
        return len(text) if last else None

    def _end_of_sentence(self, start: int, limit: int, *, ends: bool) -> int | None:
        """`limit`: where the line ends, or, unless it `ends`, where the text does so far."""
        text = self._text
        for mark in _END.finditer(text, max(start, self._scanned), limit):
            if mark.start() >= start + LONGEST_UNIT:
                break
            if not ends and mark.end() == limit:
                return None
            behind = end_of_markers(text, mark.end())
            blank = _BLANKS.match(text, behind, limit)
            assert blank is not None  # noqa: S101  # it also matches nothing
            if not ends and (blank.end() == limit or may_be_marker(text[:limit], behind)):
                return None
            first = _FIRST.match(text, behind, limit)
            if first is None and not ends and limit - blank.end() < _AHEAD:
                return None
            spaced = blank.end() > behind
            if _divides(text[start : mark.end()], first and first.group(1), self._lang, spaced=spaced):
                return behind
            self._scanned = mark.end()
        if limit - start > LONGEST_UNIT:
            return _forced(text, start)
        return limit if ends else None


def _forced(text: str, start: int) -> int:
    """The last white space that a unit may reach, or, where there is none, as far as it may."""
    end = start + LONGEST_UNIT
    spaces = list(re.finditer(r"\s", text[start : end + 1]))
    return start + spaces[-1].start() if spaces and spaces[-1].start() else end


def _divides(sentence: str, follows: str | None, lang: str, *, spaced: bool) -> bool:
    """Whether the sentence is over where such a character follows."""
    if _NUMBER.fullmatch(sentence) or _open(sentence):
        return False
    if _UNSPACED.match(sentence, len(sentence.rstrip("」』”’）")) - 1):
        return True
    if not spaced:
        return False
    if follows is None or _PLAIN_END.match(sentence, len(sentence) - 1):
        return True
    # The library decides by the line: what is behind the mark, then the next word's beginning. It takes no
    # halves of characters.
    near = _SURROGATE.sub("\ufffd", sentence[-_NEAR:].lstrip())
    boundaries = get_sentence_boundaries(lang, f"{near} {follows}")
    return any(len(near) <= item["start_index"] <= len(near) + 1 for item in boundaries)


def _open(sentence: str) -> bool:
    """Whether a quotation, or a bit of code, goes on."""
    if len(sentence) > LONGEST_QUOTATION:
        return False
    if sentence.count("`") % 2 or len(re.findall(r"(?<!\d)\"", sentence)) % 2:
        return True
    return any(sentence.rfind(opening) > max(map(sentence.rfind, closing)) for opening, closing in _PAIRS)
