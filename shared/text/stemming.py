"""Stems of content words: their first five letters, so that caused matches cause.

Truncation serves every language alike (McNamee and Mayfield 2004 found five letters nearly as good as a
stemmer). A shorter word loses a final s, so that vans matches van. Words with a digit are identifiers or
numbers, and are not cut.
"""

import re
from collections.abc import Iterable

from shared.text.function_words import LEFT_OUT_OF_QUESTIONS, STOPWORDS
from shared.text.language_detection import UNSPACED_SCRIPTS, language_of

LETTERS = 5
_PLURAL = re.compile(rf".{{2,{LETTERS - 2}}}[^s]s")
_UNSPACED = re.compile(rf"[{UNSPACED_SCRIPTS}]")
# People write CO2.
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
WORDS = re.compile(r"\w+(?:[-./,:]\w+)*")


def content_words(text: str) -> frozenset[str]:
    """The stems of the text's words, without stopwords."""
    return stems({word.casefold() for word in WORDS.findall(text.translate(_SUBSCRIPTS))})


def question_words(question: str) -> frozenset[str]:
    """The stems of the question's words, without function words of its language (function_words.py)."""
    function_words = LEFT_OUT_OF_QUESTIONS.get(language_of(question), frozenset[str]())
    words = WORDS.findall(question.translate(_SUBSCRIPTS))
    return stems({*map(str.casefold, words)} - function_words)


def stems(words: Iterable[str]) -> frozenset[str]:
    """The stems of case-folded words, without stopwords."""
    return frozenset(stem(word) for word in words if word not in STOPWORDS)


def stem(word: str) -> str:
    if not word.isalpha():
        return word
    return word[:-1] if _PLURAL.fullmatch(word) else word[:LETTERS]


def is_unspaced(word: str) -> bool:
    """Whether the word is in a script without spaces, and may be several words."""
    return _UNSPACED.search(word) is not None


def letter_pairs(word: str) -> list[str]:
    """Pairs of letters, which are the words in scripts without spaces, as in search engines."""
    return [word[index : index + 2] for index in range(max(1, len(word) - 1))]
