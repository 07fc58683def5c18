"""Segments of an answer: sentences, table rows, block quotations, blocks of code.

The end of a segment depends on its text and a few characters behind it, so a stream has the same segments as
the whole text. sentencex decides where a sentence ends, by the rules of `lang`; a line ends one too. Segments
have a maximum length. Positions that were searched once are not searched again with the next token.
"""

import re
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

from shared.generation.grounding.markers_of_models import end_of_markers, may_be_marker

# A longer quotation may lack its end, and is divided.
MAX_QUOTATION = 600
# Longer than any sentence. Text without an end would take minutes.
MAX_UNIT = 1500
# The characters before a mark by which sentencex recognizes an abbreviation.
_CONTEXT = 200
_SPACE = re.compile(r"\s*")
# A line of these characters alone may become any kind of segment.
_UNDECIDED = re.compile(r"[-*+•–>#|`~\d.)\s]*")
_LIST = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]+")
_QUOTE = re.compile(r"(?:>[ \t]*)+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_END = re.compile(r"[.!?…।؟۔]+[\"'”’»›)\]*_]*|[。！？]+[」』”’）]*")
_UNSPACED = re.compile(r"[。！？]")
# These marks always end a sentence.
_PLAIN_END = re.compile(r"[।؟۔]")
_NUMBER = re.compile(r"\(?\d{1,3}[.)]")
_BLANKS = re.compile(r"[ \t]*")
_LOOKAHEAD = 9
_FIRST = re.compile(rf"[ \t]+[^\w\n]{{0,{_LOOKAHEAD - 1}}}(\w)")
_PAIRS = (("“", "”"), ("„", "“”"), ("«", "»"), ("「", "」"), ("『", "』"))
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Segment:
    """`before`: white space and markers before the text."""

    before: str
    text: str


class Segmenter:
    """Returns the segments of a text that arrives in pieces, each as soon as its end is known."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        self._text = ""
        # Whether the segment begins a line, its start, and the end of the searched text.
        self._begins_line, self._start, self._scanned = True, 0, 0

    def feed(self, text: str) -> None:
        self._text += text

    def next(self, *, last: bool = False) -> Segment | None:
        """The next segment; None where its end is not known yet, or, with `last`, at the end of the text."""
        if not self._is_decided(last=last):
            return None
        start, end = self._bounds(last=last)
        if end is None:
            return None
        content = self._text[start:end].rstrip()
        segment = Segment(self._text[:start], content)
        self._text = self._text[start + len(content) :]
        self._begins_line, self._start, self._scanned = False, 0, 0
        return segment

    def _is_decided(self, *, last: bool) -> bool:
        """Skip white space and empty lines of a quotation. Returns whether the kind of segment is known."""
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
        """Start of the segment behind its marker, and its end; None for an end that is not known yet."""
        text, start, is_one_line = self._text, self._start, False
        if self._begins_line:
            if fence := _FENCE.match(text, start):
                return start, self._end_of_code(fence, last=last)
            if marker := _QUOTE.match(text, start) or _HEADING.match(text, start):
                start, is_one_line = marker.end(), True
            elif marker := _LIST.match(text, start):
                start = marker.end()
            is_one_line = is_one_line or text.startswith("|", start)
        line = text.find("\n", start)
        is_closed = line >= 0 or last
        limit = line if line >= 0 else len(text)
        if not is_one_line:
            return start, self._end_of_sentence(start, limit, is_closed=is_closed)
        if limit - start > MAX_UNIT:
            return start, _forced_end(text, start)
        return start, limit if is_closed else None

    def _end_of_code(self, fence: re.Match[str], *, last: bool) -> int | None:
        text = self._text
        line = text.find("\n", fence.end())
        if line < 0:
            return len(text) if last else None
        if "`" in fence.group() and "`" in text[fence.end() : line]:
            # Inline code.
            return line
        closing = re.compile(rf"\n[ \t]*{re.escape(fence.group())}[^\n]*(?=\n)")
        # The search begins at the line that was incomplete before.
        if closing_fence := closing.search(text, max(line, self._scanned)):
            return closing_fence.end()
        self._scanned = text.rfind("\n")
        return len(text) if last else None

    def _end_of_sentence(self, start: int, limit: int, *, is_closed: bool) -> int | None:
        """`limit`: where the line ends, or, unless it `ends`, where the text does so far."""
        text = self._text
        for mark in _END.finditer(text, max(start, self._scanned), limit):
            if mark.start() >= start + MAX_UNIT:
                break
            if not is_closed and mark.end() == limit:
                return None
            behind = end_of_markers(text, mark.end())
            blank = _BLANKS.match(text, behind, limit)
            assert blank is not None  # noqa: S101  # it also matches nothing
            if not is_closed and (blank.end() == limit or may_be_marker(text[:limit], behind)):
                return None
            first = _FIRST.match(text, behind, limit)
            if first is None and not is_closed and limit - blank.end() < _LOOKAHEAD:
                return None
            spaced = blank.end() > behind
            if _ends_sentence(text[start : mark.end()], first and first.group(1), self._lang, spaced=spaced):
                return behind
            self._scanned = mark.end()
        if limit - start > MAX_UNIT:
            return _forced_end(text, start)
        return limit if is_closed else None


def _forced_end(text: str, start: int) -> int:
    """The last white space within the maximum length, else the maximum."""
    end = start + MAX_UNIT
    spaces = list(re.finditer(r"\s", text[start : end + 1]))
    return start + spaces[-1].start() if spaces and spaces[-1].start() else end


def _ends_sentence(sentence: str, follows: str | None, lang: str, *, spaced: bool) -> bool:
    """Whether the sentence ends before this character."""
    if _NUMBER.fullmatch(sentence) or _is_open(sentence):
        return False
    if _UNSPACED.match(sentence, len(sentence.rstrip("」』”’）")) - 1):
        return True
    if not spaced:
        return False
    if follows is None or _PLAIN_END.match(sentence, len(sentence) - 1):
        return True
    # sentencex takes one line, and no surrogates.
    near = _SURROGATE.sub("\ufffd", sentence[-_CONTEXT:].lstrip())
    boundaries = get_sentence_boundaries(lang, f"{near} {follows}")
    return any(len(near) <= item["start_index"] <= len(near) + 1 for item in boundaries)


def _is_open(sentence: str) -> bool:
    """Whether a quotation or inline code is open."""
    if len(sentence) > MAX_QUOTATION:
        return False
    if sentence.count("`") % 2 or len(re.findall(r"(?<!\d)\"", sentence)) % 2:
        return True
    return any(sentence.rfind(opening) > max(map(sentence.rfind, closing)) for opening, closing in _PAIRS)
