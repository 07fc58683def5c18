"""Words that are no names though sentences and headings capitalize them."""

from shared.graph.entity_types import ORGANIZATIONS, RANKS
from shared.text.language_detection import MONTHS, WEEKDAYS
from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
COMMON = _WORDS["common"] | frozenset(MONTHS)
DEMONYMS = _WORDS["demonyms"]
CONNECTORS = _WORDS["connectors"]
LOWERCASE_IN_TITLES = CONNECTORS | _WORDS["lowercase_in_titles"]
GERMAN = _WORDS["german"]
NAME_VERBS = _WORDS["name_verbs"]
AFTER_IS = _WORDS["after_is"]
INSEPARABLE = (ORGANIZATIONS | RANKS | _WORDS["inseparable"]) - {
    "cooperative", "instruments", "company", "inc", "group", "ltd", "gmbh", "corp", "llc",
}  # fmt: skip
# Some months are first names.
NEVER_LAST = (
    (frozenset(MONTHS) - {"april", "may", "june", "august", "mar"})
    | frozenset(WEEKDAYS)
    | _WORDS["never_last"]
)
