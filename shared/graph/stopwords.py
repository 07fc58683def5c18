"""Words that a capital does not make a name, since sentences and headings begin with them."""

from shared.graph.entity_types import ORGANIZATIONS, RANKS
from shared.text.languages import MONTHS, WEEKDAYS
from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
COMMON = _WORDS["common"] | frozenset(MONTHS)
DEMONYMS = _WORDS["demonyms"]
CONNECTORS = _WORDS["connectors"]
SMALL = CONNECTORS | _WORDS["small"]
GERMAN = _WORDS["german"]
ACTS = _WORDS["acts"]
IS = _WORDS["is"]
WHOLE = (ORGANIZATIONS | RANKS | _WORDS["whole"]) - {
    "cooperative", "instruments", "company", "inc", "group", "ltd", "gmbh", "corp", "llc",
}  # fmt: skip
# Some months are first names.
ENDLESS = (
    (frozenset(MONTHS) - {"april", "may", "june", "august", "mar"}) | frozenset(WEEKDAYS) | _WORDS["endless"]
)
