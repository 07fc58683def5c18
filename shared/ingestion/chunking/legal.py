"""Boundaries of laws, contracts and policies: parts, chapters, sections, articles, clauses."""

import re
from collections.abc import Iterator, Sequence

from shared.ingestion.chunking.boundaries import CAPITAL, START, Boundary, Break, boundary_of

TOP = (
    "Part", "Book", "Title", "Schedule", "Annex", "Appendix", "Exhibit", "Teil", "Buch", "Anlage", "Anhang",
    "Partie", "Livre", "Titre", "Annexe", "Libro", "Anexo",
)  # fmt: skip
CHAPTER = ("Chapter", "Kapitel", "Chapitre", "Capítulo")
SECTION = ("Section", "Abschnitt", "Sección")
ARTICLE = ("Article", "Artikel", "Artículo", "Art.")
CLAUSE = ("Clause", "Klausel", "Cláusula")
SIGN = ("§", "§§")
_NAMES = "|".join(
    re.escape(spelling)
    for name in TOP + CHAPTER + SECTION + ARTICLE + CLAUSE
    for spelling in {name, name.upper()}
)
_NUMBER = r"[0-9]{1,4}[A-Za-z]?(?:\.[0-9]{1,4}){0,3}|[IVXLCDM]{1,8}|[A-Z]"
# A line end, a separator or a title follows. "Section 5 of the Act" and "Article 5(1)" are references.
_AFTER = rf"(?:\*\*|__)?(?:[ \t]*$|[ \t]*[.:—–-](?![0-9]).*|[ \t]+{CAPITAL}.*)"
_NAMED = re.compile(
    START + rf"(?P<mark>(?P<name>(?:{_NAMES})(?=[ \t])|§§?)[ \t]*(?:{_NUMBER})\b)(?P<rest>{_AFTER})$",
    re.MULTILINE,
)
_CLAUSE = re.compile(
    START + rf"(?P<mark>[0-9]{{1,3}}\.(?:[0-9]{{1,3}}\.?){{0,5}})(?P<rest>[ \t]+{CAPITAL}.*)$", re.MULTILINE
)
_CITED = re.compile(r"[ \t]+(?:Abs\.|Absatz\b|Satz\b|Nr\.|BGB\b|StGB\b|U\.S\.C|C\.F\.R)")
# The line before is unfinished: "as provided in", and then "Section 5."
_UNFINISHED = re.compile(r"(?:,|\b(?:and|by|from|in|of|or|per|see|the|this|to|under|with))[ \t]*\n[ \t]*\Z")


def legal_boundaries(text: str) -> list[Boundary]:
    """Named provisions begin a chunk. Numbered clauses, which may be short, have a soft break."""
    boundaries = [
        boundary_of(clause, Break.SOFT, 6 + _depth(clause["mark"])) for clause in _begins(_CLAUSE, text)
    ]
    provisions = [match for match in _begins(_NAMED, text) if not _CITED.match(match["rest"])]
    ranks = _ranks([match["name"].capitalize() for match in provisions])
    boundaries += [boundary_of(match, Break.HARD, ranks[match["name"].capitalize()]) for match in provisions]
    return boundaries


def provisions_in(text: str) -> set[str]:
    """The different provisions: named ("Article 5"), or clauses of clauses ("4.3") that are no headings."""
    named = {" ".join(match["mark"].split()).capitalize() for match in _begins(_NAMED, text)}
    clauses = [clause for clause in _begins(_CLAUSE, text) if not clause["hash"]]
    return named | {clause["mark"] for clause in clauses if _depth(clause["mark"])}


def _begins(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(text):
        if not _UNFINISHED.search(text, max(0, match.start() - 20), match.start()):
            yield match


def _depth(number: str) -> int:
    return number.strip(".").count(".")


def _ranks(names: Sequence[str]) -> dict[str, int]:
    """Levels, 1 to 5. Articles stand above sections where an article comes first."""
    first = next((name for name in names if name in SECTION + ARTICLE), "")
    order = (TOP, CHAPTER, *((ARTICLE, SECTION) if first in ARTICLE else (SECTION, ARTICLE)), CLAUSE + SIGN)
    return {name: level for level, group in enumerate(order, 1) for name in group}
