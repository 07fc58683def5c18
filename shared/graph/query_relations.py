"""Relation types in a question, and questions about connections."""

import re

from shared.graph.relation_words import types_named_in
from shared.text.word_lists import word_sets

# The text behind these is not read.
MAX_QUESTION_CHARACTERS = 2000
_LISTS = word_sets(__file__)
_CONNECTS = re.compile(
    r"\b(?:relationships?|relations?|connections?|links?|ties|dependenc(?:y|ies))\b.{0,80}?\b(?:between|among|with|to)\b"
    r"|\bhow\b.{0,80}\b(?:related|connected|linked|tied|interact|interacts|fit together)\b"
    r"|\b(?:related|connected|linked) to\b|\bin common\b|\b(?:path|chain)\b.{0,40}\b(?:from|between)\b"
    r"|\bimpact(?:ed|s)? (?:by|of|on)\b|\bwho (?:else )?(?:is|was|are) (?:involved|affected)\b"
    r"|\b(?:zusammenhang|beziehung|verbindung)\b.{0,40}\bzwischen\b|\b(?:rapport|relation|lien)\b.{0,40}\bentre\b"
    r"|\brelación\b.{0,40}\bentre\b",
    re.IGNORECASE,
)


def relation_types_in(question: str) -> tuple[str, ...]:
    """The relation types that the question asks about, in the order of its words."""
    words = re.findall(r"\w+(?:-\w+)*", question[:MAX_QUESTION_CHARACTERS])
    return tuple(types_named_in(" ".join(word for word in words if word.lower() not in _LISTS["common"])))


def asks_about_connection(question: str) -> bool:
    """Whether the question asks about the connection of entities by any relation."""
    return _CONNECTS.search(question[:MAX_QUESTION_CHARACTERS]) is not None
