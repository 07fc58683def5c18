"""Parts of a text for chunks, with their headings, breaks and headers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from shared.ingestion.chunking.boundaries import Boundary, Break, span_index

Span = tuple[int, int]
LINE = re.compile(r"[^\n]+")
# Up to a blank line.
PARAGRAPH = re.compile(r"[^\n]+(?:\n(?![ \t]*(?:\n|\Z))[^\n]+)*")
# A row, the line below that makes it the header of a table, and further rows.
_TABLE = re.compile(r"^(\|.*)\n\|(?=[ \t:|]*-)[ \t:|-]*$(?:\n\|.*)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """text[start:end], which is divided only if it is longer than a chunk. A `heading` never ends a chunk.
    `header`: the span of its table's header, or of the question that it answers."""

    start: int
    end: int
    heading: bool = False
    break_before: Break = Break.NONE
    header: Span | None = None


def lines_of_blocks(text: str, parts: Iterable[Part], blocks: Sequence[Span]) -> Iterator[Part]:
    """The parts, where each line of a block is a part, and the first line never ends a chunk."""
    last_block: int | None = None
    for part in parts:
        block = span_index(part.start, blocks)
        if block is None:
            yield part
        elif block != last_block:
            last_block = block
            for line in LINE.finditer(text, *blocks[block]):
                if content := line.group().strip():
                    start = line.start() + line.group().index(content)
                    yield Part(start, start + len(content), heading=line.start() == blocks[block][0])


def split_at_boundaries(text: str, parts: Iterable[Part], boundaries: Sequence[Boundary]) -> Iterator[Part]:
    """The parts, where each heading or question of a boundary is a part."""
    by_start = {boundary.start: boundary for boundary in boundaries}
    covered = 0
    question: Span | None = None
    for part in parts:
        remainder = part
        boundary = by_start.get(part.start)
        if part.heading:
            question = None
        if boundary is not None:
            question = (boundary.start, boundary.end) if boundary.is_question else None
            if boundary.is_heading or boundary.is_question:
                covered = boundary.end
                yield Part(boundary.start, boundary.end, boundary.is_heading, boundary.break_before)
            else:
                remainder = replace(part, break_before=max(part.break_before, boundary.break_before))
        if part.start < covered:
            content = text[covered : part.end].lstrip()
            remainder = replace(part, start=part.end - len(content), heading=False, break_before=Break.NONE)
        if remainder.start < remainder.end:
            yield replace(remainder, header=question)


def with_table_headers(
    text: str, parts: Iterable[Part], fences: Sequence[Span], all_tables: bool
) -> Iterator[Part]:
    """The parts, with headers for the rows of tables. In a text of tables alone each one begins a chunk, and
    nothing is repeated."""
    tables = [table for table in _TABLE.finditer(text) if span_index(table.start(), fences) is None]
    spans = [table.span() for table in tables]
    for part in parts:
        index = span_index(part.start, spans) if text[part.start] == "|" else None
        table = tables[index] if index is not None else None
        header = part.header
        if table is not None and part.start > table.start():
            header = (table.start(1), table.start(1) + len(table[1].rstrip()))
        break_before = part.break_before
        if all_tables:
            begins = table is not None and part.start == table.start()
            break_before = max(break_before, Break.HARD if begins else Break.NO_OVERLAP)
        yield replace(part, header=header, break_before=break_before)
