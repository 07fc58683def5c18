"""Rarest noun of a question that an answer's sentences do not mention.

The sentence may tell a neighbouring fact: the wave limit in the place of the wind limit. Verbs and adjectives
are too often replaced by others of the same meaning, so a word counts only after an article, a preposition or
"which", or before a word that is mentioned, not as the verb behind a question word ("what happens above it"),
and only where no sentence answers directly or the sentences mention half of the question's words.
"""

import re
from collections.abc import Iterable, Sequence

from shared.generation.confidence_features import is_other_language
from shared.generation.grounding.numbers import COUNTED
from shared.generation.names_missing_in_passages import missing_names
from shared.generation.question_form import QuestionForm, lists_of_question_form
from shared.generation.refusal_texts import not_mentioned
from shared.text.function_words import FUNCTION_WORDS, STOPWORDS
from shared.text.language_detection import language_of
from shared.text.stemming import LETTERS, WORDS, content_words, is_unspaced, stem
from shared.text.word_lists import word_sets_by_language
from shared.types import ExtractedSentence, GeneratedText, Match

_lists_of = word_sets_by_language(__file__)
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
# Not bus, address or basis.
_THIRD_PERSON = re.compile(r"[^isu]s$")
MIN_SHARE = 0.5
# A longer text is no question.
MAX_WORDS = 60
# An inflected form differs in its last letters: bus and buses, city and cities.
MIN_PREFIX, MAX_SUFFIX = 3, 3


def replaced_version(question: str, draft: GeneratedText) -> str | None:
    """The year, quarter, version or ordinal of the question in whose place the answer's sentences, with their
    titles, have another. Those of an excerpt only show that it is mentioned."""
    version = QuestionForm.of(question).replaced_version(
        _with_titles(one for one in draft.sentences if not one.is_excerpt)
    )
    if version is None or stem(version) in content_words(_with_titles(draft.sentences)):
        return None
    return next((word for word in WORDS.findall(question) if version == word.casefold()), version)


def _with_titles(sentences: Iterable[ExtractedSentence]) -> str:
    return " ".join(f"{one.text} {one.match.title} {one.match.section_title}" for one in sentences)


def unmentioned_word(question: str, draft: GeneratedText, matches: Sequence[Match]) -> str | None:
    """The word, as the question writes it, that the answer's sentences do not mention; the one in the fewest
    matches. None for an answer in another language, or without such a word."""
    quoted = [sentence.match for sentence in draft.sentences]
    texts = [sentence.text for sentence in draft.sentences]
    if not texts or is_unspaced(question) or any(is_other_language(question, match) for match in quoted):
        return None
    context = [f"{match.title} {match.section_title} {match.header}" for match in quoted]
    headings = [line for match in quoted for line in _HEADING.findall(match.text)]
    words = WORDS.findall(question)
    if len(words) > MAX_WORDS:
        return None
    mentioned = _words(" ".join((*texts, *context, *headings)))
    stems = frozenset(map(stem, mentioned))
    language = language_of(question)
    lists = _lists_of(language)
    ignored = STOPWORDS | FUNCTION_WORDS[language] | lists["kinds"] | lists["prepositions"]
    auxiliaries = lists_of_question_form(language)["yes_or_no"]
    before_nouns = lists["before_nouns"]
    # Numbers, dates and codes have hints of their own (confidence.py).
    is_content = [
        len(word) >= MIN_PREFIX
        and word.casefold() not in ignored | COUNTED.keys()
        and not re.search(r"\d", word)
        for word in words
    ]
    is_missing = [
        content and not _is_mentioned(word.casefold(), mentioned, stems)
        for word, content in zip(words, is_content, strict=True)
    ]
    if not draft.is_indirect and sum(is_missing) > (1 - MIN_SHARE) * sum(is_content):
        return None

    def is_noun(position: int) -> bool:
        before = words[position - 1].casefold() if position else ""
        after = position + 1
        is_first_part = after < len(words) and is_content[after] and not is_missing[after]
        # A noun has its verb behind it: "which insurance covers", "which insurance is". In English the word
        # may be the verb of an object or adverb: "what triggers errors", "which applies abroad".
        may_be_verb = language == "en" and _THIRD_PERSON.search(words[position])
        has_verb = after < len(words) and (
            words[after].casefold() in auxiliaries or (is_content[after] and not may_be_verb)
        )
        if before in lists["persons"] or (before in lists["subjects"] and not has_verb):
            return False
        return before in before_nouns or is_first_part

    missing = [position for position, is_one in enumerate(is_missing) if is_one]
    stems_of_matches = [content_words(f"{match.title} {match.text}") for match in matches]

    def rarity(position: int) -> tuple[int, int]:
        word = words[position].casefold()
        return sum(stem(word) in stems for stems in stems_of_matches), -len(word)

    rarest = min(missing, key=rarity, default=None)
    return None if rarest is None or not is_noun(rarest) else words[rarest]


def unmentioned_note(question: str, draft: GeneratedText, matches: Sequence[Match]) -> str:
    """The sentence before an indirect answer that names the noun that no match mentions, unless it is among
    the missing names, which have a sentence of their own; empty for another answer."""
    word = unmentioned_word(question, draft, matches) if draft.is_indirect else None
    if word is None or word in missing_names(question, matches):
        return ""
    own = content_words(word)
    is_mentioned = any(own <= content_words(f"{match.title} {match.text}") for match in matches)
    return "" if is_mentioned else not_mentioned(question, [word])


def _words(text: str) -> frozenset[str]:
    return frozenset(WORDS.findall(text.casefold()))


def _is_mentioned(word: str, words: frozenset[str], stems: frozenset[str]) -> bool:
    """Whether the words have this one, in any form, perhaps in a compound. `stems`: those of the words."""
    own = stem(word)
    return own in stems or any(
        (len(own) >= LETTERS and own in other) or _is_inflected(word, other) for other in words
    )


def _is_inflected(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    # A final e or y may change: city and cities.
    prefix = shorter[:-1] if shorter[-1] in "ey" else shorter
    return len(prefix) >= MIN_PREFIX and longer.startswith(prefix) and len(longer) - len(prefix) <= MAX_SUFFIX
