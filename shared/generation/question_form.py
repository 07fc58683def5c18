"""Form of a question: what it asks for, by its first words, and what it names."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from shared.generation.grounding.proper_names import names_in
from shared.text.identifiers import names_one_thing
from shared.text.stemming import WORDS, content_words
from shared.text.word_lists import word_sets

_WORD = re.compile(r"[\w-]+")
_DIGIT = re.compile(r"\d")
# Not a number alone.
_IDENTIFIER = re.compile(r"(?=.*\d)[^\W\d_]")
# A year, a quarter, or a number with parts.
_VERSION = re.compile(r"(?:19|20)\d\d|q[1-4]|v?\d+(?:\.\d+)+")
# A relative clause behind a noun, in English, German, French and Spanish.
_NESTED = re.compile(
    r"\b(?:the|an?|this|those) (?:[\w-]+ ){1,3}(?:(?:in|of|to|for|by) )?(?:where|whom?|whose|that|which) "
    r"|\w, (?:(?:in|an|auf|aus|bei|mit|von|zu|für) )?(?:der|die|das|dem|den|dessen|deren|denen|wo) "
    r"|\w (?:où|dont|donde|cuy[oa]s?) ",
    re.IGNORECASE,
)
# A question for a number or a time, whatever the words behind it mean.
_NUMBER_ASKED = re.compile(
    r"\b(?:how (?:many|much|long|old|tall|far|often|big|large)"
    r"|(?:since |until |till )?when (?:is|are|was|were|do|does|did|will|can|must|has|have|had)"
    r"|(?:what|which) (?:percentage|percent|year|date|day|hour|time|number of|share of)"
    r"|wie (?:viele?|lange|oft|hoch|alt|weit|teuer)|wann|combien|quand|à quelle heure|cuánt[oa]s?|cuándo)\b",
    re.IGNORECASE,
)
_WORDS = word_sets(__file__)
_QUESTION_WORDS = _WORDS["how"] | _WORDS["which"] | _WORDS["value"]
_PART_WORDS = _QUESTION_WORDS | _WORDS["reason"] | _WORDS["part"]
MAX_PARTS = 3


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """`words`: its stems; `names`: those of names, numbers and identifiers. The others say whether it asks
    for a `value` (a number or a time; `number`: certainly), a reason, yes or no, `several`
    things or a way, `something` (one thing or several), or has a `superlative` or a `nested` description of
    what it asks about ("the state where ..."). `words_of_parts`: the stems of each of the questions that
    "and" joins."""

    text: str
    words: frozenset[str]
    names: frozenset[str]
    value: bool
    number: bool
    reason: bool
    yes_or_no: bool
    several: bool
    superlative: bool
    nested: bool
    something: bool
    words_of_parts: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, text: str, previous: str = "") -> Self:
        """`previous`: the question that a follow-up continues, for its words and names."""
        words = content_words(f"{previous} {text}")
        first, second = _first_words(text)
        is_which, is_how = first in _WORDS["which"], first in _WORDS["how"]
        # Not "how long".
        is_way = is_how and (
            second == "to" or second in _WORDS["yes_or_no"]
            if first == "how"
            else second not in _WORDS["quantities"]
        )
        asks_value = is_which and not _WORDS["value_nouns"].isdisjoint(_WORD.findall(text.casefold())[1:5])
        is_plural = len(second) > 3 and second.endswith("s") and not second.endswith("ss")
        # The first word has a capital in any case.
        names = content_words(
            " ".join(name for part in (previous, text) for name in names_in(part[:1].lower() + part[1:]))
        )
        return cls(
            text,
            words,
            names | {word for word in words if names_one_thing(word)},
            value=first in _WORDS["value"] or (is_how and not is_way) or asks_value,
            # "When" may also be "if".
            number=_NUMBER_ASKED.search(text) is not None,
            reason=has_word(text, "reason"),
            yes_or_no=any(word in _WORDS["yes_or_no"] for word in _WORD.findall(text.casefold())[:1]),
            several=is_way
            or first in _WORDS["several"]
            or (is_which and (second == "are" or (is_plural and second not in _WORDS["yes_or_no"]))),
            superlative=has_word(text, "superlative"),
            nested=_NESTED.search(text) is not None,
            # Also words without a question mark, as in "partner api endpoints".
            something=is_which or not text.rstrip().endswith(("?", "？")),
            words_of_parts=tuple(map(content_words, _parts(text))),
        )

    @property
    def parts(self) -> int:
        """Of how many questions it consists."""
        return len(self.words_of_parts)

    def replaced_in(self, words: frozenset[str], context: frozenset[str] = frozenset()) -> str | None:
        """The identifier, year or version of the question instead of which the words have another of its
        form: E-17, not E-55; 2023, not 2024. None for one that the context has."""
        forms = {_form(word) for word in words if names_one_thing(word) or _VERSION.fullmatch(word)}
        replaced = (
            name
            for name in sorted(self.names | self.words)
            if (_IDENTIFIER.search(name) or _VERSION.fullmatch(name))
            and name not in words | context
            and _form(name) in forms
        )
        return next(replaced, None)


def _parts(text: str) -> list[str]:
    """The questions that "and" joins, at most MAX_PARTS."""
    ends = [
        word.start()
        for before, word in pairwise(_WORD.finditer(text))
        if before.group().casefold() in _WORDS["and"] and word.group().casefold() in _PART_WORDS
    ][: MAX_PARTS - 1]
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)])]


def without_replaced(previous: str, question: str) -> str:
    """The previous question without the numbers and identifiers in whose place a follow-up has others of the
    same form ("And E-17?" after a question about E-55)."""
    forms = {_form(word) for word in WORDS.findall(question) if _DIGIT.search(word)}
    return WORDS.sub(lambda word: "" if _form(word.group()) in forms else word.group(), previous)


def _form(word: str) -> str:
    return _DIGIT.sub("0", word.casefold())


def has_word(text: str, name: str) -> bool:
    """Whether the text has a word of the list."""
    return not _WORDS[name].isdisjoint(_WORD.findall(text.casefold()))


def _first_words(text: str) -> tuple[str, str]:
    """The question word, behind two others at most ("Until when", "For how long"), else the first word; and
    the word behind it."""
    words = [*_WORD.findall(text.casefold()), "", ""]
    start = next((index for index, word in enumerate(words[:3]) if word in _QUESTION_WORDS), 0)
    return words[start], words[start + 1]
