"""Parts and blocks of a text: by sentences, by its structure (recursive) or by its code."""

import re
from bisect import bisect_left
from itertools import pairwise

from shared.ingestion.chunking.boundaries import Boundary, Break, span_index
from shared.ingestion.chunking.code_languages import code_structure
from shared.ingestion.chunking.document_type import boundaries_in
from shared.ingestion.chunking.headings_and_table_headers import (
    LINE,
    PARAGRAPH,
    Part,
    Span,
    lines_of_blocks,
    split_at_boundaries,
    with_table_headers,
)
from shared.ingestion.chunking.strategy import BY_SENTENCES, ChunkingPlan
from shared.text.sentences import sentences

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def split(
    text: str, plan: ChunkingPlan = BY_SENTENCES, lang: str | None = None
) -> tuple[list[Part], list[Span]]:
    """All visible text as parts in order, and its blocks in any order, some within others. `lang` is the
    language of the text's sentences."""
    if plan.language is not None:
        return _code(text, plan.language)
    parts = [
        Part(item.start, item.end, item.heading, Break.SOFT if item.heading else Break.NONE)
        for item in sentences(text, lang)
    ]
    fences = _fences(text)
    blocks = list(fences)
    if fences:
        parts = list(lines_of_blocks(text, parts, fences))
    if boundaries := _boundaries(text, plan, fences):
        parts = list(split_at_boundaries(text, parts, boundaries))
    table = plan.document_type == "table"
    if table or "\n|" in text:
        parts = list(with_table_headers(text, parts, fences, table))
    if plan.strategy == "recursive":
        blocks += [match.span() for pattern in (PARAGRAPH, LINE) for match in pattern.finditer(text)]
    return parts, blocks


def headings(text: str, plan: ChunkingPlan) -> list[tuple[int, int, int, str]]:
    """The headings of the document type, beside Markdown's: start, end, level, title."""
    if plan.language is not None:
        return []
    return [
        # Only the number of a clause is its heading.
        (
            boundary.start,
            boundary.end if boundary.is_heading else boundary.start + 1,
            boundary.level,
            boundary.title,
        )
        for boundary in _boundaries(text, plan, _fences(text))
        if boundary.level is not None and boundary.title is not None
    ]


def _boundaries(text: str, plan: ChunkingPlan, fences: list[Span]) -> list[Boundary]:
    return [
        boundary
        for boundary in boundaries_in(text, plan.document_type)
        if span_index(boundary.start, fences) is None
    ]


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
    places, blocks = code_structure(text, language)
    block_starts = {start for start, _ in blocks}
    cuts = sorted(set(places))
    parts: list[Part] = []
    for line in LINE.finditer(text):
        start, end = line.span()
        inner_cuts = cuts[bisect_left(cuts, start + 1) : bisect_left(cuts, end)]
        for begin, after in pairwise([start, *inner_cuts, end]):
            line_text = text[begin:after].rstrip()
            if line_text:
                break_before = Break.NO_OVERLAP if begin in block_starts else Break.NONE
                parts.append(Part(begin, begin + len(line_text), break_before=break_before))
    return parts, blocks
