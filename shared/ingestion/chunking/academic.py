"""Boundaries of papers and theses: abstract, numbered sections, references."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shared.ingestion.chunking.boundaries import CAPITAL, START, Boundary, Break, boundary_of

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


def academic_boundaries(text: str) -> list[Boundary]:
    references = list(_REFERENCES.finditer(text))
    # Numbers below the references are entries.
    end = references[-1].start() if references else len(text)
    titles = [
        match
        for match in _SECTION.finditer(text)
        if not match["rest"].rstrip(" \t*_").endswith((",", ":"))
        and (match.start() < end or match["hash"] or match["mark"].lower().startswith("appendix"))
    ]
    boundaries = []
    for match in _sections(text, titles):
        depth = _depth(match)
        boundaries.append(boundary_of(match, Break.SOFT if depth else Break.HARD, 1 + depth))
    # A later boundary replaces an earlier one of the same line: "7 References" is no section.
    return boundaries + [
        boundary_of(match, Break.HARD, 1) for match in [*_ABSTRACT.finditer(text), *references]
    ]


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
