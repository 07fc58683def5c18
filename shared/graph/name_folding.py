"""Comparison of names: without case, accents, punctuation, leading article and trailing parenthesis.

The SQL function rag.entity, which decides about the identity of entities, folds much the same.
"""

import re
import unicodedata
from functools import lru_cache

PARENTHESIS = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）]\s*\Z")
_ARTICLE = re.compile(r"\A(?:the|an?) (?=.)")
# Only accents: signs of Indic scripts are vowels, and signs of kana make other letters.
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652]+")
_APART = re.compile(r"[\W_]+")


@lru_cache(8192)
def fold(name: str) -> str:
    """The key by which a name is compared."""
    return _ARTICLE.sub("", _letters(PARENTHESIS.sub("", name)))


def _letters(text: str) -> str:
    if text.isascii():
        return " ".join(_APART.sub(" ", text.lower()).split())
    parted = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    composed = unicodedata.normalize("NFC", parted).casefold()
    return " ".join(_APART.sub(_mark, composed).split())


def _mark(match: re.Match[str]) -> str:
    """Vowel signs belong to their letters."""
    return "".join(one if unicodedata.category(one)[0] == "M" else " " for one in match[0])
