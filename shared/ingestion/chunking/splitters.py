"""A text's parts for chunks, and what of them should stay whole where it fits: by sentences, by the text's
own structure (recursive), or by its code. Which way, a plan says. Sizes are the packing's (packer.py).
"""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise

from shared.ingestion.chunking.boundaries import Mark, Opening, within
from shared.ingestion.chunking.code import code
from shared.ingestion.chunking.document_type import marks
from shared.ingestion.chunking.segments import (
    LINE,
    PARAGRAPH,
    Part,
    Span,
    by_lines,
    marked_parts,
    under_heads,
)
from shared.ingestion.chunking.strategy import BY_SENTENCES, Plan
from shared.text.sentences import sentences

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Split:
    """Parts in order, which leave out nothing that shows. Wholes in any order; some stand within others."""

    parts: list[Part]
    wholes: list[Span] = field(default_factory=list)


def split(text: str, plan: Plan = BY_SENTENCES, lang: str | None = None) -> Split:
    """`lang` is the language of the text's sentences."""
    if plan.language is not None:
        return _code(text, plan.language)
    parts = [
        Part(item.start, item.end, item.heading, Opening.SOFT if item.heading else Opening.NONE)
        for item in sentences(text, lang)
    ]
    fences = _fences(text)
    wholes = list(fences)
    if fences:
        parts = list(by_lines(text, parts, fences))
    if type_marks := _marks(text, plan, fences):
        parts = list(marked_parts(text, parts, type_marks))
        wholes += [(mark.start, mark.until) for mark in type_marks if mark.until]
    table = plan.document_type == "table"
    if table or "\n|" in text:
        parts = list(under_heads(text, parts, fences, table))
    if plan.strategy == "recursive":
        wholes += [match.span() for pattern in (PARAGRAPH, LINE) for match in pattern.finditer(text)]
    return Split(parts, wholes)


def headings(text: str, plan: Plan) -> list[tuple[int, int, int, str]]:
    """Those that the type of a document adds to Markdown's, for its outline: start, end, level, title."""
    if plan.language is not None:
        return []
    return [
        # A clause's text is no heading, only its number.
        (mark.start, mark.end if mark.alone else mark.start + 1, mark.level, mark.title)
        for mark in _marks(text, plan, _fences(text))
        if mark.level is not None and mark.title is not None
    ]


def _marks(text: str, plan: Plan, fences: list[Span]) -> list[Mark]:
    return [mark for mark in marks(text, plan.document_type) if within(mark.start, fences) is None]


def _fences(text: str) -> list[Span]:
    """Blocks of code, with their fences. One that nobody closes is none."""
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


def _code(text: str, language: str) -> Split:
    """Lines of code, with the white space before them; parts of lines where these are long."""
    structure = code(text, language)
    begins = {start for start, _ in structure.wholes}
    cuts = sorted(set(structure.cuts))
    parts: list[Part] = []
    for line in LINE.finditer(text):
        start, end = line.span()
        inner = cuts[bisect_left(cuts, start + 1) : bisect_left(cuts, end)]
        for begin, after in pairwise([start, *inner, end]):
            line_text = text[begin:after].rstrip()
            if line_text:
                opening = Opening.CLEAN if begin in begins else Opening.NONE
                parts.append(Part(begin, begin + len(line_text), opening=opening))
    return Split(parts, structure.wholes)
