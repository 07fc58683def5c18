"""Function words of seven languages: one list a language, of which each use takes a part (words.toml)."""

from pathlib import Path
from typing import Literal, get_args

from shared.text.word_lists import read_toml

Language = Literal["en", "de", "fr", "es", "nl", "pt", "it"]
_PARTS: dict[str, dict[str, str]] = read_toml(Path(__file__).with_name("words.toml"))["function_words"]


def _words(language: str, *parts: str) -> frozenset[str]:
    return frozenset(word for part in parts for word in _PARTS[language].get(part, "").split())


# By language.
FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    language: _words(language, "questions", "all", "detection", "ambiguous")
    for language in get_args(Language)
}
# Words that tell a language.
LANGUAGE_WORDS: dict[Language, frozenset[str]] = {
    language: words | _words(language, "verbs") for language, words in FUNCTION_WORDS.items()
}
# By language: those that need another word of the language beside them to tell it.
AMBIGUOUS_WORDS: dict[Language, frozenset[str]] = {
    language: _words(language, "ambiguous") for language in get_args(Language)
}
# In a search.
STOPWORDS = _words("en", "questions")
# Of sentences that are compared: the words that are in every answer.
LINKING_WORDS = frozenset[str]().union(
    *(_words(language, "questions", "all", "grounding") for language in _PARTS)
)
