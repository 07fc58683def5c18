"""Which words of a text say what it is about, cut so that caused meets cause.

Truncation serves every language alike (McNamee and Mayfield 2004 found five letters nearly as good as a
stemmer); what holds a digit is an identifier or a number and stays whole.
"""

import re
from collections.abc import Iterable

from shared.text.languages import UNSPACED_SCRIPTS
from shared.text.word_lists import word_sets

LETTERS = 5
_UNSPACED = re.compile(rf"[{UNSPACED_SCRIPTS}]")
WORDS = re.compile(r"\w+(?:[-./,:]\w+)*")
STOPWORDS = word_sets(__file__)["stopwords"]


def content_words(text: str) -> frozenset[str]:
    """The text's words without those that only ask, cut."""
    return stems({word.casefold() for word in WORDS.findall(text)})


def stems(words: Iterable[str]) -> frozenset[str]:
    """Of case-folded words, those that are not only asking, cut."""
    return frozenset(stem(word) for word in words if word not in STOPWORDS)


def stem(word: str) -> str:
    return word[:LETTERS] if word.isalpha() else word


def unspaced(word: str) -> bool:
    """Whether it is of a script that puts no spaces between words: what looks like one word may be many."""
    return _UNSPACED.search(word) is not None


def pairs(word: str) -> list[str]:
    """Pairs of its letters, which stand for words there, as in search engines."""
    return [word[place : place + 2] for place in range(max(1, len(word) - 1))]
