"""Relation types in a question, and questions about connections."""

import re
from functools import lru_cache

from shared.graph.relation_patterns import RELATIONS, question_words, words_of_key
from shared.text.word_lists import word_sets

# The text behind these is not read.
MAX_QUESTION_CHARACTERS = 2000
_WORDS = re.compile(r"\w+(?:-\w+)*")
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
    words = [word.casefold() for word in _WORDS.findall(question[:MAX_QUESTION_CHARACTERS].replace("’", "'"))]
    lexicon = _lexicon()
    types: dict[str, None] = {}
    for index, word in enumerate(words):
        two = "-".join(words[index : index + 2])
        three = "-".join(words[index : index + 3])
        for phrase in (three, two, word):
            types |= dict.fromkeys(lexicon.get(phrase, ()))
        if word in _LISTS["children"]:
            types["CHILD_OF"] = None
    return tuple(types)


@lru_cache(1)
def _lexicon() -> dict[str, tuple[str, ...]]:
    """The relation types that each word asks about."""
    lexicon: dict[str, dict[str, None]] = {}
    for type_ in RELATIONS:
        for word in [*question_words(type_), *words_of_key(type_, "questions")]:
            if word not in _LISTS["common"]:
                lexicon.setdefault(word, {})[type_] = None
    for type_ in RELATIONS:
        for word in words_of_key(type_, "sure_questions"):
            lexicon.setdefault(word, {})[type_] = None
    return {word: tuple(types) for word, types in lexicon.items()}


def asks_about_connection(question: str) -> bool:
    """Whether the question asks about the connection of entities by any relation."""
    return _CONNECTS.search(question[:MAX_QUESTION_CHARACTERS]) is not None
