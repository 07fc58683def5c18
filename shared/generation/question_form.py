"""Form of a question: what it asks for, by its first words, and what it names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Self

from shared.generation.grounding.proper_names import names_in
from shared.text.function_words import LINKING_WORDS
from shared.text.identifiers import names_one_thing
from shared.text.language_detection import clear_language_of
from shared.text.stemming import WORDS, content_words, question_words, stem
from shared.text.word_lists import word_sets_by_language

_WORD = re.compile(r"[\w-]+")
_DIGIT = re.compile(r"\d")
# Not a number alone.
_IDENTIFIER = re.compile(r"(?=.*\d)[^\W\d_]")
# A year, a quarter or a version.
_VERSION = re.compile(r"(?:19|20)\d\d|q[1-4]|v\d+(?:\.\d+)*|\d+(?:\.\d+){2,}")
lists_of_question_form = word_sets_by_language(__file__)
MAX_PARTS = 3


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """`words`: its stems; `names`: those of names, numbers and identifiers. The others say whether it asks
    for a `value` (a number or a time), a reason, yes or no, `several` things or a way, `something` (one thing
    or several), or has a `superlative`. `words_of_parts`: the stems of each of the questions that "and"
    joins."""

    text: str
    words: frozenset[str]
    names: frozenset[str]
    value: bool
    reason: bool
    yes_or_no: bool
    several: bool
    superlative: bool
    something: bool
    words_of_parts: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, text: str, previous: str = "") -> Self:
        """`previous`: the question that a follow-up continues, for its words and names."""
        # Without the s of a possessive.
        words = question_words(f"{previous} {text}") - {"s"}
        lists = lists_of_question_form(clear_language_of(text, 1))
        first, second = _first_words(text, lists)
        is_which, is_how = first in lists["which"], first in lists["how"]
        # Not "how long".
        is_way = is_how and (
            second == "to" or second in lists["yes_or_no"]
            if first == "how"
            else second not in lists["quantities"]
        )
        is_plural = len(second) > 3 and second.endswith("s") and not second.endswith("ss")
        # The first word has a capital in any case.
        names = content_words(
            " ".join(name for part in (previous, text) for name in names_in(part[:1].lower() + part[1:]))
        )
        tokens = _WORD.findall(text.casefold())
        return cls(
            text,
            words,
            names | {word for word in words if names_one_thing(word)},
            value=first in lists["value"] or (is_how and not is_way),
            reason=not lists["reason"].isdisjoint(tokens),
            yes_or_no=not lists["yes_or_no"].isdisjoint(tokens[:1]),
            several=is_way
            or first in lists["several"]
            or (is_which and (second == "are" or (is_plural and second not in lists["yes_or_no"]))),
            superlative=not lists["superlative"].isdisjoint(tokens),
            # Also words without a question mark, as in "partner api endpoints".
            something=is_which or not text.rstrip().endswith(("?", "？")),
            words_of_parts=tuple(words & content_words(part) for part in _parts(text, lists)),
        )

    @property
    def parts(self) -> int:
        """Of how many questions it consists."""
        return len(self.words_of_parts)

    def names_sibling_in(self, words: frozenset[str]) -> bool:
        """Whether the words have, instead of an identifier of the question, another of its form: E-17, not
        E-55."""
        forms = {_form(word) for word in words if names_one_thing(word)}
        return any(
            name not in words and _form(name) in forms for name in self.names if _IDENTIFIER.search(name)
        )

    def replaced_version(self, text: str) -> str | None:
        """The year, quarter, version or ordinal of the question instead of which the text has another: 2023,
        not 2024; the first quarter, not the third. None for a question for yes or no; only ordinals for a
        number or a time."""
        if self.yes_or_no:
            return None
        words = content_words(text)
        if not self.value and any(map(_VERSION.fullmatch, words)):
            missing = {word for word in self.words - words if _VERSION.fullmatch(word)}
            if missing:
                return min(missing)
        ordinals = _ordinals(text)
        stems = {stem(word) for word, _ in ordinals}
        nouns = frozenset[str]().union(*(nouns for _, nouns in ordinals))
        own = _ordinals(self.text)
        return next((word for word, of in own if of & nouns and stem(word) not in stems), None)


def _ordinals(text: str) -> list[tuple[str, frozenset[str]]]:
    """Each ordinal, with the stems of the words behind it, at most two, up to a function word ("third fiscal
    quarter"). A word behind a number is none ("30 second")."""
    words = WORDS.findall(text.casefold())
    return [
        (
            word,
            frozenset(map(stem, takewhile(lambda item: item not in LINKING_WORDS, words[at + 1 : at + 3]))),
        )
        for at, word in enumerate(words)
        if word in lists_of_question_form(None)["ordinals"] and not (at and _DIGIT.match(words[at - 1]))
    ]


def _question_words(lists: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return lists["how"] | lists["which"] | lists["value"]


def _parts(text: str, lists: Mapping[str, frozenset[str]]) -> list[str]:
    """The questions that "and" joins, at most MAX_PARTS. A preposition may precede the question word."""
    first_words = _question_words(lists) | lists["reason"] | lists["part"]
    words = [*_WORD.finditer(text)]
    ends = [
        words[at + 1].start()
        for at, word in enumerate(words[:-1])
        if word.group().casefold() in lists["and"]
        and any(next_word.group().casefold() in first_words for next_word in words[at + 1 : at + 3])
    ][: MAX_PARTS - 1]
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)])]


def without_replaced(previous: str, question: str) -> str:
    """The previous question without the numbers and identifiers in whose place a follow-up has others of the
    same form ("And E-17?" after a question about E-55)."""
    forms = {_form(word) for word in WORDS.findall(question) if _DIGIT.search(word)}
    return WORDS.sub(lambda word: "" if _form(word.group()) in forms else word.group(), previous)


def _form(word: str) -> str:
    return _DIGIT.sub("0", word.casefold())


def has_word(text: str, name: str, language: str | None) -> bool:
    """Whether the text has a word of the list. `language`: a tag of the text's, if known."""
    return not lists_of_question_form(language)[name].isdisjoint(_WORD.findall(text.casefold()))


def _first_words(text: str, lists: Mapping[str, frozenset[str]]) -> tuple[str, str]:
    """The question word, behind two others at most ("Until when", "For how long"), else the first word; and
    the word behind it."""
    words = [*_WORD.findall(text.casefold()), "", ""]
    question_words = _question_words(lists)
    start = next((index for index, word in enumerate(words[:3]) if word in question_words), 0)
    return words[start], words[start + 1]
