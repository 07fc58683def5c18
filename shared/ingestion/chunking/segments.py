"""The smallest parts of a text for chunks, and what is known of them: which are headings, what they open,
what should be read before them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from shared.ingestion.chunking.boundaries import Mark, Opening, within

Span = tuple[int, int]
LINE = re.compile(r"[^\n]+")
# Up to a line in which nothing shows.
PARAGRAPH = re.compile(r"[^\n]+(?:\n(?![ \t]*(?:\n|\Z))[^\n]+)*")
# A row, the line below that makes it the head of a table, and the rows after.
_TABLE = re.compile(r"^(\|.*)\n\|(?=[ \t:|]*-)[ \t:|-]*$(?:\n\|.*)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """text[start:end], which is cut only when it alone is longer than a chunk.

    A `heading` never ends a chunk. `under` is what should be read before the part where it begins a chunk:
    the head of its table, or the question that it answers.
    """

    start: int
    end: int
    heading: bool = False
    opening: Opening = Opening.NONE
    under: Span | None = None


def by_lines(text: str, parts: Iterable[Part], blocks: Sequence[Span]) -> Iterator[Part]:
    """The parts, but within the blocks each line is one, and the first never ends a chunk."""
    done: int | None = None
    for part in parts:
        block = within(part.start, blocks)
        if block is None:
            yield part
        elif block != done:
            done = block
            for line in LINE.finditer(text, *blocks[block]):
                if content := line.group().strip():
                    start = line.start() + line.group().index(content)
                    yield Part(start, start + len(content), heading=line.start() == blocks[block][0])


def marked_parts(text: str, parts: Iterable[Part], marks: Sequence[Mark]) -> Iterator[Part]:
    """The parts, where headings and questions that marks know are one each, and know what they open."""
    at = {mark.start: mark for mark in marks}
    covered = 0
    question: Span | None = None
    for part in parts:
        rest = part
        mark = at.get(part.start)
        if part.heading:
            question = None
        if mark is not None:
            question = (mark.start, mark.end) if mark.asks else None
            if mark.alone or mark.asks:
                covered = mark.end
                yield Part(mark.start, mark.end, mark.alone, mark.opening)
            else:
                rest = replace(part, opening=max(part.opening, mark.opening))
        if part.start < covered:
            content = text[covered : part.end].lstrip()
            rest = replace(part, start=part.end - len(content), heading=False, opening=Opening.NONE)
        if rest.start < rest.end:
            yield replace(rest, under=question)


def under_heads(text: str, parts: Iterable[Part], fences: Sequence[Span], alone: bool) -> Iterator[Part]:
    """The parts, where rows of tables know their heads. In a text that is all tables, each table begins a
    chunk, and nothing is repeated."""
    tables = [found for found in _TABLE.finditer(text) if within(found.start(), fences) is None]
    spans = [table.span() for table in tables]
    for found in parts:
        part = found
        index = within(part.start, spans) if text[part.start] == "|" else None
        table = tables[index] if index is not None else None
        if table is not None and part.start > table.start():
            part = replace(part, under=(table.start(1), table.start(1) + len(table[1].rstrip())))
        if alone:
            head = table is not None and part.start == table.start()
            part = replace(part, opening=max(part.opening, Opening.ALWAYS if head else Opening.CLEAN))
        yield part
