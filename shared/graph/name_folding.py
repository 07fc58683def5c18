"""When two spellings are one name, and whether a text names something: by folded comparison.

Much as rag.entity_key folds, which decides what is one entity: case, accents, punctuation, a leading article
and a trailing parenthesis do not count.
"""

import re
import unicodedata
from functools import lru_cache

from shared.text.stemming import unspaced

_PARENTHESIS = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）]\s*\Z")
_ARTICLE = re.compile(r"\A(?:the|an?) (?=.)")
# Accents only: the signs of Indic scripts are vowels, and those of kana make other letters.
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652]+")
_APART = re.compile(r"[\W_]+")
_HANGUL = re.compile("[\uac00-\ud7a3]")


@lru_cache(8192)
def fold(name: str) -> str:
    """The name as it is compared."""
    folded = _letters(_PARENTHESIS.sub("", name))
    return _ARTICLE.sub("", folded)


def folded_text(text: str) -> str:
    """A text to look up many names in."""
    return f" {_letters(text)} "


def found_in(name: str, folded: str) -> bool:
    """Whether a folded text names it, in whole words where the script has spaces."""
    folded_name = fold(name)
    if not folded_name:
        return False
    if unspaced(folded_name) or _HANGUL.search(folded_name):
        return folded_name in folded
    return f" {folded_name} " in folded


def _letters(text: str) -> str:
    if text.isascii():
        return " ".join(_APART.sub(" ", text.lower()).split())
    parted = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    composed = unicodedata.normalize("NFC", parted).casefold()
    return " ".join(_APART.sub(_mark, composed).split())


def _mark(match: re.Match[str]) -> str:
    """Vowel signs belong to their letters."""
    return "".join(one if unicodedata.category(one)[0] == "M" else " " for one in match[0])
