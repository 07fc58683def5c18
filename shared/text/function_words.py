"""Function words by language: one list a language, of which each use takes a part (words.toml)."""

from pathlib import Path

from shared.text.word_lists import read_toml

# The languages whose words count in every text, and those whose words a question is judged without. The
# others are only recognized: without their function words, fewer questions were answered rightly
# (docs/decisions/answers.md).
LANGUAGES_OF_DOCUMENTS = ("en", "de", "fr", "es", "nl")
LANGUAGES_OF_QUESTIONS = (*LANGUAGES_OF_DOCUMENTS, "pt", "it")
_PARTS: dict[str, dict[str, str]] = read_toml(Path(__file__).with_name("words.toml"))["function_words"]


def _words(language: str, *parts: str) -> frozenset[str]:
    return frozenset(word for part in parts for word in _PARTS[language].get(part, "").casefold().split())


# By language.
FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: _words(language, "questions", "all", "detection", "ambiguous") for language in _PARTS
}
ALL_FUNCTION_WORDS = frozenset[str]().union(
    *(FUNCTION_WORDS[language] for language in LANGUAGES_OF_DOCUMENTS)
)
# Words that tell a language.
LANGUAGE_WORDS: dict[str, frozenset[str]] = {
    language: words | _words(language, "verbs") for language, words in FUNCTION_WORDS.items()
}
# By language: those that need another word of the language beside them to tell it.
AMBIGUOUS_WORDS: dict[str, frozenset[str]] = {language: _words(language, "ambiguous") for language in _PARTS}
# In a search.
STOPWORDS = _words("en", "questions")
# Of sentences that are compared: the words that are in every answer.
LINKING_WORDS = frozenset[str]().union(
    *(_words(language, "questions", "all", "grounding") for language in _PARTS)
)
