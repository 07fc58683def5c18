"""Kind of a name by its words: legal forms of companies, nouns such as team, ranks."""

import re
from functools import lru_cache

from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
ORGANIZATIONS = _WORDS["organizations"]
TEAMS = _WORDS["teams"]
SERVICES = _WORDS["services"]
PLACES = _WORDS["places"]
HONORIFICS = _WORDS["honorifics"]
RANKS = _WORDS["ranks"]
_HEADS = (
    (TEAMS, "team"),
    (SERVICES, "service"),
    (ORGANIZATIONS, "organization"),
    (PLACES, "place"),
    (_WORDS["works"], "work"),
)
_WORD = re.compile(r"[^\W_]+")
_NUMERAL = re.compile(r"(?=[IVX])(?:X{0,2}(?:IX|IV|V?I{0,3}))")
_OF = frozenset({"of", "for", "de", "der", "du", "für", "des"})


@lru_cache(8192)
def kind_of(name: str) -> str:
    """The kind by the name's words; `name` where they do not decide."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return "name"
    last = words[-1].removesuffix("s")
    for heads, kind in _HEADS:
        if len(words) > 1 and (last in heads or words[-1] in heads):
            return kind
    for index, word in enumerate(words[1:], 1):
        if word in _OF and words[index - 1] in ORGANIZATIONS:
            return "organization"
        if word in _OF and words[index - 1] in PLACES:
            return "place"
    if words[0] in {"mount", "lake", "river", "saint", "gulf", "cape", "port"} and len(words) > 1:
        return "place"
    if not _WORDS["numbered"].isdisjoint(words):
        return "name"
    if words[0] in RANKS or _NUMERAL.fullmatch(name.rsplit(" ", 1)[-1]):
        return "person"
    if len(words) > 1 and re.search(r"\b[A-Z]\. ", name):
        return "person"
    return "name"


def kind_of_identifier(identifier: str) -> str:
    """`service` or `team` by the last part, as in billing-service; else `identifier`."""
    last = re.split(r"[-_]", identifier.lower())[-1].removesuffix("s")
    if last in TEAMS:
        return "team"
    return "service" if last in SERVICES | {"db", "bot", "job", "store", "lambda"} else "identifier"
