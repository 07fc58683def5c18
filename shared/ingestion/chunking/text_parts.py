"""Parts and blocks of a text: by sentences, by its structure (recursive) or by its code.

The parts of a text have its headings, breaks, and the headers of tables and answers.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shared.ingestion.chunking.boundaries import PARAGRAPH, Boundary, Break, Heading, Span, span_index
from shared.ingestion.chunking.code_blocks import code_blocks
from shared.ingestion.chunking.document_type import boundaries_in
from shared.ingestion.chunking.strategy import BY_SENTENCES, ChunkingPlan
from shared.text.sentences import sentences

_LINE = re.compile(r"[^\n]+")
# A row, the line below that makes it the header of a table, and further rows.
_TABLE = re.compile(r"^(\|.*)\n(\|(?=[ \t:|]*-)[ \t:|-]*)$(?:\n\|.*)*", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """text[start:end], which is divided only if it is longer than a chunk. A `heading` never ends a chunk.
    `header`: the span of its table's header, or of the question that it answers."""

    start: int
    end: int
    heading: bool = False
    break_before: Break = Break.NONE
    header: Span | None = None


@dataclass(frozen=True, slots=True)
class SplitText:
    """All visible text as parts in order; its blocks in any order, some within others; the headings of its
    document type, beside those of Markdown."""

    parts: list[Part]
    blocks: list[Span]
    headings: list[Heading]


def split(text: str, plan: ChunkingPlan = BY_SENTENCES, lang: str | None = None) -> SplitText:
    """`lang` is the language of the text's sentences."""
    if plan.language is not None:
        return SplitText(*_code(text, plan.language), [])
    fences = _fences(text)
    boundaries = [
        boundary
        for boundary in boundaries_in(text, plan.document_type)
        if span_index(boundary.start, fences) is None
    ]
    parts: Iterable[Part] = (
        Part(item.start, item.end, item.heading, Break.SOFT if item.heading else Break.NONE)
        for item in sentences(text, lang, {boundary.start for boundary in boundaries})
    )
    parts = _split_at_boundaries(text, _lines_of_blocks(text, parts, fences), boundaries)
    parts = _with_table_headers(text, parts, fences, plan.document_type == "table")
    patterns = (PARAGRAPH, _LINE) if plan.strategy == "recursive" else ()
    blocks = [*fences, *(match.span() for pattern in patterns for match in pattern.finditer(text))]
    headings = [
        # Only the number of a clause is its heading.
        (item.start, item.end if item.is_heading else item.start + 1, item.level, item.title)
        for item in boundaries
        if item.level is not None and item.title is not None
    ]
    return SplitText(list(parts), blocks, headings)


def _lines_of_blocks(text: str, parts: Iterable[Part], blocks: Sequence[Span]) -> Iterator[Part]:
    """The parts, where each line of a block is a part, and the first line never ends a chunk."""
    last_block: int | None = None
    for part in parts:
        block = span_index(part.start, blocks)
        if block is None:
            yield part
        elif block != last_block:
            last_block = block
            for line in _LINE.finditer(text, *blocks[block]):
                if content := line.group().strip():
                    start = line.start() + line.group().index(content)
                    yield Part(start, start + len(content), heading=line.start() == blocks[block][0])


def _split_at_boundaries(text: str, parts: Iterable[Part], boundaries: Sequence[Boundary]) -> Iterator[Part]:
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


def _with_table_headers(
    text: str, parts: Iterable[Part], fences: Sequence[Span], all_tables: bool
) -> Iterator[Part]:
    """The parts, with headers for the rows of tables, and the line below a header as part of it. In a text of
    tables alone each one begins a chunk, and nothing is repeated."""
    tables = [table for table in _TABLE.finditer(text) if span_index(table.start(), fences) is None]
    spans = [table.span() for table in tables]
    is_joined = False
    for part in parts:
        index = span_index(part.start, spans) if text[part.start] == "|" else None
        table = tables[index] if index is not None else None
        header = part.header
        if table is not None and part.start == table.start(2) and is_joined:
            continue
        is_joined = table is not None and part.start == table.start() and part.end == _end(table, 1)
        end = _end(table, 2) if table is not None and is_joined else part.end
        if table is not None and part.start > table.start():
            header = (table.start(1), _end(table, 1))
        break_before = part.break_before
        if all_tables:
            begins = table is not None and part.start == table.start()
            break_before = max(break_before, Break.HARD if begins else Break.NO_OVERLAP)
        yield replace(part, end=end, header=header, break_before=break_before)


def _end(table: re.Match[str], group: int) -> int:
    return table.start(group) + len(table[group].rstrip())


def _fences(text: str) -> list[Span]:
    """Closed blocks of code, with their fences."""
    fences: list[Span] = []
    if "```" not in text and "~~~" not in text:
        return fences
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2].strip():
            fences.append((opened.start(), fence.end()))
            opened = None
    return fences


def _code(text: str, language: str) -> tuple[list[Part], list[Span]]:
    """Lines of code, with their indentation; pieces of long lines."""
    positions, blocks = code_blocks(text, language)
    block_starts = {start for start, _ in blocks}
    cuts = sorted(set(positions))
    parts: list[Part] = []
    for line in _LINE.finditer(text):
        start, end = line.span()
        inner_cuts = cuts[bisect_left(cuts, start + 1) : bisect_left(cuts, end)]
        for begin, after in pairwise([start, *inner_cuts, end]):
            line_text = text[begin:after].rstrip()
            if line_text:
                break_before = Break.NO_OVERLAP if begin in block_starts else Break.NONE
                parts.append(Part(begin, begin + len(line_text), break_before=break_before))
    return parts, blocks
