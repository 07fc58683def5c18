"""Language of a question.

The function words decide, since a question is too short for statistics of letters. Each counts for
every language that has it; an ambiguous one only beside another word that neither English nor German
has. A language that no document is read in (function_words.py) needs two such words; one is enough beside a
function word that begins a question, or in another script. The default is English.
"""

import re
from collections.abc import Mapping

from shared.text.function_words import (
    AMBIGUOUS_WORDS,
    LANGUAGE_WORDS,
    LANGUAGES_BY_WORD,
    LANGUAGES_OF_DOCUMENTS,
)
from shared.text.word_lists import keys_of_words

ENGLISH = "en"
MAX_CHARACTERS = 2_000
# A word of letters alone: E14 and S18 have none.
_WORD = re.compile(r"\b[^\W\d_]+\b")
# Months by their names and abbreviations.
MONTHS = {name: int(number) for name, number in keys_of_words(__file__, "months").items()}
MONTH_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# The first letter behind those of the Latin script.
GREEK = "\u0370"
# In a class of a regular expression: kana, Han and Thai, which put no spaces between words.
UNSPACED_SCRIPTS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
# Letters that the other languages hardly use.
_LETTERS: dict[str, re.Pattern[str]] = {
    "de": re.compile(r"[äöüß]"),
    "fr": re.compile(r"[àâèêëîïôùûçœ]"),
    "es": re.compile(r"[áíóúñ¿¡]"),
    "pt": re.compile(r"[ãõáíóúâêç]"),
    "it": re.compile(r"[àèìòù]"),
}


def language_of(question: str) -> str:
    """The language of most of the question's function words (de); letters decide between equals."""
    counts = _counts(question)
    # The first of equal languages: English.
    return max(counts, key=counts.__getitem__)


def clear_language_of(text: str, words: int) -> str | None:
    """The language that has more of the text's function words than each other one, and at least so many."""
    (language, (count, _)), (_, (second, _)) = sorted(_counts(text).items(), key=lambda item: item[1])[:-3:-1]
    return language if count >= words and count > second else None


def in_language_of(question: str, texts: Mapping[str, str]) -> str:
    """The text in the question's language, or else the English one."""
    return texts.get(language_of(question), texts[ENGLISH])


def _counts(text: str) -> dict[str, tuple[int, bool]]:
    """By language: the number of its function words, and whether the text has a letter of it."""
    text = text[:MAX_CHARACTERS].casefold()
    words = _WORD.findall(text)
    first = words[0] if words and text.rstrip().endswith("?") else ""
    by_language: dict[str, list[str]] = {language: [] for language in LANGUAGE_WORDS}
    for word in words:
        for language in LANGUAGES_BY_WORD.get(word, ()):
            by_language[language].append(word)

    def has_letter(language: str) -> bool:
        letters = _LETTERS.get(language)
        return bool(letters and letters.search(text))

    def count(language: str, own: list[str]) -> int:
        if not own:
            return 0
        telling = set(own) - LANGUAGE_WORDS["en"] - LANGUAGE_WORDS["de"]
        ambiguous = AMBIGUOUS_WORDS[language]
        if language not in LANGUAGES_OF_DOCUMENTS:
            telling -= ambiguous
            is_clear = len(telling) > 1 or (telling and first in own) or max(telling, default="") >= GREEK
            return len(own) if is_clear else 0
        if len(telling) < 2 and telling <= ambiguous:
            return sum(word not in ambiguous for word in own)
        return len(own)

    return {language: (count(language, own), has_letter(language)) for language, own in by_language.items()}
