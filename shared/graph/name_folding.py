"""Comparison of names: without case, accents, punctuation, leading article and trailing parenthesis.

The SQL function rag.entity, which decides about the identity of entities, folds much the same.
"""

import re
import unicodedata
from functools import lru_cache

from shared.text.normalize import without_accents

PARENTHESIS = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）]\s*\Z")
_ARTICLE = re.compile(r"\A(?:the|an?) (?=.)")
_APART = re.compile(r"[\W_]+")


@lru_cache(8192)
def fold(name: str) -> str:
    """The key by which a name is compared."""
    letters = without_accents(PARENTHESIS.sub("", name))
    apart = _APART.sub(" " if letters.isascii() else _mark, letters)
    return _ARTICLE.sub("", " ".join(apart.split()))


def _mark(match: re.Match[str]) -> str:
    """Vowel signs belong to their letters."""
    return "".join(one if unicodedata.category(one)[0] == "M" else " " for one in match[0])
