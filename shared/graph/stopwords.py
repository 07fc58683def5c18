"""Words that are no names though sentences and headings capitalize them."""

from shared.graph.entity_types import ORGANIZATIONS, RANKS
from shared.text.language_detection import FUNCTION_WORDS, MONTHS, WEEKDAYS
from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
_FUNCTION_WORDS = frozenset(word for words in FUNCTION_WORDS.values() for word in words if len(word) > 1)
# Without function words that are also names, or parts of names.
COMMON = (_WORDS["common"] | _FUNCTION_WORDS | {*MONTHS, *WEEKDAYS, *(f"{day}s" for day in WEEKDAYS)}) - {
    "ai", "al", "allen", "da", "del", "dos", "pro",
}  # fmt: skip
DEMONYMS = _WORDS["demonyms"]
CONNECTORS = _WORDS["connectors"]
GERMAN_CONNECTORS = frozenset({"von", "van", "of", "de"})
LOWERCASE_IN_TITLES = CONNECTORS | _WORDS["lowercase_in_titles"]
INSEPARABLE = ORGANIZATIONS | RANKS | _WORDS["inseparable"]
NEVER_FIRST = _WORDS["never_first"]
# Some months are first names.
NEVER_LAST = (
    (frozenset(MONTHS) - {"april", "may", "june", "august", "mar"})
    | frozenset(WEEKDAYS)
    | _WORDS["never_last"]
)
