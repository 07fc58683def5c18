"""Function words by language: one list a language, of which each use takes a part (words.toml)."""

from pathlib import Path

from shared.text.word_lists import read_toml

# The languages whose words count in every text.
LANGUAGES_OF_DOCUMENTS = ("en", "de", "fr", "es", "nl")
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
# Those that are left out of a question's words, by language. Stems leave out English question words; the
# other English ones made no difference. Without the function words of the languages that are only
# recognized, fewer questions were answered rightly (docs/decisions/answers.md).
LEFT_OUT_OF_QUESTIONS = {
    language: FUNCTION_WORDS[language] for language in ("de", "fr", "es", "nl", "pt", "it")
}
# Words that tell a language.
LANGUAGE_WORDS: dict[str, frozenset[str]] = {
    language: words | _words(language, "verbs") for language, words in FUNCTION_WORDS.items()
}
# The languages that have a word.
LANGUAGES_BY_WORD: dict[str, list[str]] = {}
for _language, _own in LANGUAGE_WORDS.items():
    for _word in _own:
        LANGUAGES_BY_WORD.setdefault(_word, []).append(_language)
# By language: those that need another word of the language beside them to tell it.
AMBIGUOUS_WORDS: dict[str, frozenset[str]] = {language: _words(language, "ambiguous") for language in _PARTS}
# In a search.
STOPWORDS = _words("en", "questions")
# Of sentences that are compared: the words that are in every answer.
LINKING_WORDS = frozenset[str]().union(
    *(_words(language, "questions", "all", "grounding") for language in _PARTS)
)
