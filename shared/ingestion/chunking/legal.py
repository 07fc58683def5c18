"""Parts, chapters, sections, articles and clauses of laws, contracts and policies, by how lines begin."""

import re
from collections.abc import Iterator, Sequence

from shared.ingestion.chunking.boundaries import CAPITAL, START, Mark, Opening, marked

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
# Nothing after it, or a separator, or a title. "Section 5 of the Act" and "Article 5(1)" only refer to it.
_AFTER = rf"(?:\*\*|__)?(?:[ \t]*$|[ \t]*[.:—–-](?![0-9]).*|[ \t]+{CAPITAL}.*)"
_NAMED = re.compile(
    START + rf"(?P<mark>(?P<name>(?:{_NAMES})(?=[ \t])|§§?)[ \t]*(?:{_NUMBER})\b)(?P<rest>{_AFTER})$",
    re.MULTILINE,
)
_CLAUSE = re.compile(
    START + rf"(?P<mark>[0-9]{{1,3}}\.(?:[0-9]{{1,3}}\.?){{0,5}})(?P<rest>[ \t]+{CAPITAL}.*)$", re.MULTILINE
)
_CITED = re.compile(r"[ \t]+(?:Abs\.|Absatz\b|Satz\b|Nr\.|BGB\b|StGB\b|U\.S\.C|C\.F\.R)")
# The line before ends so: "as provided in", and then "Section 5."
_UNFINISHED = re.compile(r"(?:,|\b(?:and|by|from|in|of|or|per|see|the|this|to|under|with))[ \t]*\n[ \t]*\Z")


def legal(text: str) -> list[Mark]:
    """Named ones begin a chunk. Numbered clauses may be a line long: they begin one only when the one before
    is worth keeping."""
    marks = [marked(clause, Opening.SOFT, 6 + _depth(clause["mark"])) for clause in _begins(_CLAUSE, text)]
    named = [match for match in _begins(_NAMED, text) if not _CITED.match(match["rest"])]
    ranks = _ranks([match["name"].capitalize() for match in named])
    marks += [marked(match, Opening.ALWAYS, ranks[match["name"].capitalize()]) for match in named]
    return marks


def named(text: str) -> set[str]:
    """The different ones that have names, such as "Article 5"."""
    return {" ".join(match["mark"].split()).capitalize() for match in _begins(_NAMED, text)}


def _begins(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(text):
        if not _UNFINISHED.search(text, max(0, match.start() - 20), match.start()):
            yield match


def _depth(number: str) -> int:
    return number.strip(".").count(".")


def _ranks(names: Sequence[str]) -> dict[str, int]:
    """Levels, 1 to 5. Some laws have articles in sections, others sections in articles: whichever comes first
    stands above the other."""
    first = next((name for name in names if name in SECTION + ARTICLE), "")
    order = (TOP, CHAPTER, *((ARTICLE, SECTION) if first in ARTICLE else (SECTION, ARTICLE)), CLAUSE + SIGN)
    return {name: level for level, group in enumerate(order, 1) for name in group}
