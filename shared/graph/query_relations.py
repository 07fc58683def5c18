"""What a question asks of the graph: which relations, and how things are connected."""

import re
from functools import lru_cache

from shared.graph.relation_patterns import RELATIONS, words_of, words_under
from shared.text.word_lists import word_sets

# Questions are shorter; what comes after is not read.
MOST_LETTERS = 2000
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


def relations_asked(question: str) -> tuple[str, ...]:
    """The types of relation that the question asks about, in the order of its words."""
    words = [word.casefold() for word in _WORDS.findall(question[:MOST_LETTERS].replace("’", "'"))]
    lexicon = _lexicon()
    types: dict[str, None] = {}
    for place, word in enumerate(words):
        two = "-".join(words[place : place + 2])
        three = "-".join(words[place : place + 3])
        for phrase in (three, two, word):
            types |= dict.fromkeys(lexicon.get(phrase, ()))
        if word in _LISTS["children"]:
            types["CHILD_OF"] = None
    return tuple(types)


@lru_cache(1)
def _lexicon() -> dict[str, tuple[str, ...]]:
    """Of each word that asks, the relations it asks about."""
    lexicon: dict[str, dict[str, None]] = {}
    for type_ in RELATIONS:
        for word in [*words_of(type_), *words_under(type_, "questions")]:
            if word not in _LISTS["common"]:
                lexicon.setdefault(word, {})[type_] = None
    for type_ in RELATIONS:
        for word in words_under(type_, "sure_questions"):
            lexicon.setdefault(word, {})[type_] = None
    return {word: tuple(types) for word, types in lexicon.items()}


def connects(question: str) -> bool:
    """Whether it asks how things are connected, whatever the relation."""
    return _CONNECTS.search(question[:MOST_LETTERS]) is not None
