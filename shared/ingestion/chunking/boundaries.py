"""Boundaries of a document type: an article of a law, a section of a paper, a question."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import itemgetter

Span = tuple[int, int]
# Start, end, level, title.
Heading = tuple[int, int, int, str]
# Up to a blank line.
PARAGRAPH = re.compile(r"[^\n]+(?:\n(?![ \t]*(?:\n|\Z))[^\n]+)*")
# Markdown's headings have the levels 1 to 6; the headings of a document type stand below them.
BELOW_MARKDOWN = 6
MAX_TITLE = 100
# The beginning of every pattern. Its group `mark` identifies the line, `rest` is the text behind it.
START = r"^[ \t]*(?P<hash>#{1,6} +)?(?:\*\*|__)?"
# The beginning of a title: a capital, or a letter of a script without case.
CAPITAL = r"[(\"“]?[^\W\d_a-zß-öø-ÿ]"


class Break(IntEnum):
    """The break of chunks before a part of a text."""

    NONE = 0
    # The end of the chunk before is not repeated.
    NO_OVERLAP = 1
    # The part begins a chunk once the chunk before has a useful length.
    SOFT = 2
    # The part begins a chunk, unless only headings stand before it.
    HARD = 3


@dataclass(frozen=True, slots=True)
class Boundary:
    """text[start:end], a line or its beginning, where a part of the document begins.

    `title` and `level`: an entry of the outline. The embedder reads a question with each part of its answer.
    """

    start: int
    end: int
    break_before: Break
    title: str | None = None
    level: int | None = None
    is_heading: bool = False
    is_question: bool = False


def boundary_of(match: re.Match[str], break_before: Break, level: int) -> Boundary:
    """The boundary of a line that a pattern with START matched.

    A short line that is no sentence is a heading; the title of another line is its `mark`.
    """
    line = match.group()
    start, end = match.start() + len(line) - len(line.lstrip()), match.start() + len(line.rstrip())
    if match["hash"]:
        return Boundary(start, end, break_before, is_heading=True)
    text = line.strip().strip("*_ ")
    nothing_else = not match["rest"].strip(" \t.:—–-*_")
    short = len(text) <= MAX_TITLE and not text.endswith((".", ";", ",", ":"))
    title = text if short and not nothing_else else " ".join(match["mark"].split()).rstrip(".")
    return Boundary(start, end, break_before, title, BELOW_MARKDOWN + level, short or nothing_else)


def span_index(position: int, spans: Sequence[Span]) -> int | None:
    """The index of the span that contains the position; the spans are in order and do not overlap."""
    index = bisect_right(spans, position, key=itemgetter(0)) - 1
    return index if index >= 0 and position < spans[index][1] else None
