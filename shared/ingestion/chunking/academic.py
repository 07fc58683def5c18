"""Boundaries of papers and theses: abstract, numbered sections, references."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shared.ingestion.chunking.boundaries import CAPITAL, START, Boundary, Break, boundary_of, span_index
from shared.ingestion.chunking.segments import LINE

_ABSTRACT = re.compile(
    START + r"(?P<mark>Abstract|ABSTRACT|Zusammenfassung|Résumé|Resumen)"
    r"(?P<rest>(?:\*\*|__)?(?:[ \t]*|[ \t]*[.:—–-].*))$",
    re.MULTILINE,
)
_REFERENCES = re.compile(
    START + r"(?:(?:[0-9]{1,2}|[IVX]{1,5})\.?[ \t]+)?(?P<mark>References|REFERENCES|Bibliography|BIBLIOGRAPHY"
    r"|Works Cited|Literature Cited|Literatur|Literaturverzeichnis|Références|Bibliographie|Referencias)"
    r"(?P<rest>(?:\*\*|__)?:?(?:\*\*|__)?[ \t]*)$",
    re.MULTILINE,
)
# "2 Methods", "2.1. Data", "IV. RESULTS", "Appendix A: Proofs".
_SECTION = re.compile(
    START + r"(?P<mark>[0-9]{1,2}(?:\.[0-9]{1,2}){0,3}\.?|[IVX]{1,5}\."
    r"|(?:Appendix|APPENDIX)[ \t]+[A-Z0-9]{1,2}[.:]?)"
    rf"(?P<rest>[ \t]+{CAPITAL}[^.;\n]{{1,80}})$",
    re.MULTILINE,
)
_AFTER_REFERENCES = re.compile(r"^(?:#{1,6} |(?:\*\*)?(?:Appendix|APPENDIX)\b)", re.MULTILINE)
_NUMBERED_ENTRY = re.compile(r"^[ \t]*(?:\[[0-9A-Za-z+]{1,12}\]|[0-9]{1,3}[.)])[ \t]+\S", re.MULTILINE)
_PARAGRAPH = re.compile(r"[^\n]+(?:\n[^\n]+)*")


def academic_boundaries(text: str) -> list[Boundary]:
    references = list(_REFERENCES.finditer(text))
    lists = _lists(text, references)
    titles = [
        match
        for match in _SECTION.finditer(text)
        if not match["rest"].rstrip(" \t*_").endswith((",", ":")) and span_index(match.start(), lists) is None
    ]
    boundaries = []
    for match in _sections(text, titles):
        depth = _depth(match)
        boundaries.append(boundary_of(match, Break.SOFT if depth else Break.HARD, 1 + depth))
    # A later boundary replaces an earlier one of the same line: "7 References" is no section.
    boundaries += [boundary_of(match, Break.HARD, 1) for match in [*_ABSTRACT.finditer(text), *references]]
    for start, end in lists:
        boundaries += _entries(text, start, end)
    return boundaries


def is_paper(text: str) -> bool:
    """Whether the text has an abstract in its first third, and references in its second half."""
    abstract = _ABSTRACT.search(text, 0, len(text) // 3)
    return bool(abstract and _REFERENCES.search(text, max(abstract.end(), len(text) // 2)))


def _depth(match: re.Match[str]) -> int:
    return match["mark"].strip(".").count(".")


def _sections(text: str, titles: Sequence[re.Match[str]]) -> Iterator[re.Match[str]]:
    """The titles without those of a list or a table of contents: nothing stands between these."""
    items: set[int] = set()
    for one, following in pairwise(titles):
        if _depth(one) == _depth(following) and not text[one.end() : following.start()].strip():
            items |= {one.start(), following.start()}
    return (match for match in titles if match.start() not in items)


def _lists(text: str, headings: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    """The spans below headings of references, up to the next heading or appendix."""
    if not headings:
        return []
    others = {match.start() for match in _AFTER_REFERENCES.finditer(text)}
    ends = sorted({*others, *(match.start() for match in headings), len(text)})
    return [(match.end(), ends[bisect_left(ends, match.end())]) for match in headings]


def _entries(text: str, start: int, end: int) -> Iterator[Boundary]:
    """A boundary for each reference. Numbers divide them, or else empty lines, or else line ends."""
    pattern = _PARAGRAPH if "\n\n" in text[start:end].strip() else LINE
    if _NUMBERED_ENTRY.search(text, start, end):
        pattern = _NUMBERED_ENTRY
    begins = [match.start() for match in pattern.finditer(text, start, end)]
    for begin, after in pairwise([*begins, end]):
        entry = text[begin:after].lstrip()
        if entry:
            yield Boundary(after - len(entry), after - len(entry), Break.NO_OVERLAP, block_end=after)
