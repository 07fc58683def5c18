"""Stems of the content words of a sentence, without numbers.

In scripts without spaces pairs of letters are the words, as in search engines.
"""

import re
from collections.abc import Iterable

from shared.text.function_words import LINKING_WORDS
from shared.text.stemming import is_unspaced, letter_pairs
from shared.text.word_lists import keys_of_words

# Longer than in search, so that organize is not organic.
LETTERS = 6
WORD = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*")
POSSESSIVE = re.compile(r"[’'](?:s|S)?$")
# Negation is judged by itself (negation.py): don't has the stem of do.
_DENIED = re.compile(r"n[’']t$", re.IGNORECASE)
_ENDINGS = (
    ("ies", "y"),
    ("ions", ""),
    ("ion", ""),
    ("ings", ""),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
    ("e", ""),
)
_IRREGULAR = keys_of_words(__file__, "irregular")


def words_in(text: str) -> list[str]:
    """Every word in order, case-folded."""
    words: list[str] = []
    for word in WORD.findall(text):
        folded = _DENIED.sub("", POSSESSIVE.sub("", word)).casefold()
        words += letter_pairs(folded) if is_unspaced(folded) else [folded]
    return [word for word in words if word]


def is_function_word(word: str) -> bool:
    return word in LINKING_WORDS


def content_stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(inflection_stem(word) for word in words if word not in LINKING_WORDS and len(word) > 1)


def inflection_stem(word: str) -> str:
    """The same stem for valve and valves, study and studies, sharing and share."""
    word = _IRREGULAR.get(word, word)
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (3 if len(word) <= LETTERS else 4):
            word = word[: len(word) - len(ending)] + replacement
            break
    return word[:LETTERS]
