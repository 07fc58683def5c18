"""Abstract, numbered sections and references of papers and theses, by how lines begin."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shared.ingestion.chunking.boundaries import CAPITAL, START, Mark, Opening, marked, within
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


def academic(text: str) -> list[Mark]:
    references = list(_REFERENCES.finditer(text))
    lists = _lists(text, references)
    titles = [
        match
        for match in _SECTION.finditer(text)
        if not match["rest"].rstrip(" \t*_").endswith((",", ":")) and within(match.start(), lists) is None
    ]
    marks = []
    for match in _sections(text, titles):
        depth = _depth(match)
        marks.append(marked(match, Opening.SOFT if depth else Opening.ALWAYS, 1 + depth))
    # After those, so that "7 References" is one of these.
    marks += [marked(match, Opening.ALWAYS, 1) for match in [*_ABSTRACT.finditer(text), *references]]
    for start, end in lists:
        marks += _entries(text, start, end)
    return marks


def has_the_parts_of_a_paper(text: str) -> bool:
    """An abstract in its first third, and after it references in its second half."""
    abstract = _ABSTRACT.search(text, 0, len(text) // 3)
    return bool(abstract and _REFERENCES.search(text, max(abstract.end(), len(text) // 2)))


def _depth(match: re.Match[str]) -> int:
    return match["mark"].strip(".").count(".")


def _sections(text: str, titles: Sequence[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Those of one depth with nothing between them are items of a list, or contents."""
    items: set[int] = set()
    for one, following in pairwise(titles):
        if _depth(one) == _depth(following) and not text[one.end() : following.start()].strip():
            items |= {one.start(), following.start()}
    return (match for match in titles if match.start() not in items)


def _lists(text: str, headings: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    """What stands below each heading of references, up to the next heading or appendix."""
    if not headings:
        return []
    others = {match.start() for match in _AFTER_REFERENCES.finditer(text)}
    ends = sorted({*others, *(match.start() for match in headings), len(text)})
    return [(match.end(), ends[bisect_left(ends, match.end())]) for match in headings]


def _entries(text: str, start: int, end: int) -> Iterator[Mark]:
    """References, told apart by their numbers, or else by empty lines, or else a line each."""
    pattern = _PARAGRAPH if "\n\n" in text[start:end].strip() else LINE
    if _NUMBERED_ENTRY.search(text, start, end):
        pattern = _NUMBERED_ENTRY
    begins = [match.start() for match in pattern.finditer(text, start, end)]
    for begin, after in pairwise([*begins, end]):
        entry = text[begin:after].lstrip()
        if entry:
            yield Mark(after - len(entry), after - len(entry), Opening.CLEAN, until=after)
