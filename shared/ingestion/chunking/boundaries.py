"""The lines of a text at which something begins, as those find them who know kinds of documents
(document_type.py): an article of a law, a section of a paper, a question.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import itemgetter

# Markdown's own headings have the levels 1 to 6, and stand above those that only look like headings.
BELOW_MARKDOWN = 6
MAX_TITLE = 100
# Of a line, before what it is known by: how patterns of such lines begin, and what their groups are called.
# `mark` is what it is known by, `rest` what follows it on the line.
START = r"^[ \t]*(?P<hash>#{1,6} +)?(?:\*\*|__)?"
# How a title begins: with a capital, or in a script that has none.
CAPITAL = r"[(\"“]?[^\W\d_a-zß-öø-ÿ]"


class Opening(IntEnum):
    """What a part of a text does to the chunk before it; each does what those above it here do."""

    # It goes on. Where it must begin a chunk, the end of the one before may be repeated before it.
    NONE = 0
    # Nothing is repeated before it.
    CLEAN = 1
    # It begins a chunk once the one before is worth keeping.
    SOFT = 2
    # It begins a chunk, unless only headings stand before it.
    ALWAYS = 3


@dataclass(frozen=True, slots=True)
class Mark:
    """text[start:end], a line or its beginning.

    `title` and `level` are for the outline, None where it has it already or needs none. `alone` says that it
    heads what follows it; `asks`, that it is a question, which is known to the embedder with every part of
    its answer; `until`, where that ends which should stay whole from here.
    """

    start: int
    end: int
    opening: Opening
    title: str | None = None
    level: int | None = None
    alone: bool = False
    asks: bool = False
    until: int | None = None


def marked(match: re.Match[str], opening: Opening, level: int) -> Mark:
    """The mark of a line that a pattern with START matched.

    A short line that is no sentence is a heading and its own title; of another, what it is known by is.
    """
    line = match.group()
    start, end = match.start() + len(line) - len(line.lstrip()), match.start() + len(line.rstrip())
    if match["hash"]:
        return Mark(start, end, opening, alone=True)
    text = line.strip().strip("*_ ")
    nothing_else = not match["rest"].strip(" \t.:—–-*_")
    short = len(text) <= MAX_TITLE and not text.endswith((".", ";", ",", ":"))
    title = text if short and not nothing_else else " ".join(match["mark"].split()).rstrip(".")
    return Mark(start, end, opening, title, BELOW_MARKDOWN + level, short or nothing_else)


def within(place: int, spans: Sequence[tuple[int, int]]) -> int | None:
    """Which of the spans, which are in order and apart, the place is in."""
    index = bisect_right(spans, place, key=itemgetter(0)) - 1
    return index if index >= 0 and place < spans[index][1] else None
