"""Conflicts of sentences: two documents give other values (numbers or dates) for the same thing.

Two sentences conflict if they differ in values alone, or if one has all words of the other and other values
of a unit, and their documents are versions of one: the titles differ by a year or a revision. A sentence of a
newer document that withdraws a value conflicts with an older one that states it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from shared.generation.document_versions import version_of
from shared.generation.grounding.numbers import COUNTED, UNITS
from shared.generation.passage_statements import begins_with_pronoun
from shared.generation.value_tokens import NUMBER_TOKEN, YEAR_TOKEN, tokens_of
from shared.text.function_words import ALL_FUNCTION_WORDS, STOPWORDS
from shared.text.language_detection import MONTHS
from shared.text.stemming import stem
from shared.text.word_lists import word_sets
from shared.types import ExtractedSentence, Match

# The least number of words of two equal sentences, and of two others.
MIN_WORDS, MIN_WORDS_OF_VERSION = 2, 3
_KEY = re.compile(r"[^.:]{1,60}: ")
_WITHDRAWN_WORDS = word_sets(__file__)["withdrawn"]
_NO_LONGER = re.compile(r"\bno longer\b|\bnicht mehr\b|\bn(?:e |['’])\w+ plus\b|\bya no\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ValueConflict:
    """The newer sentence by the dates of the documents, else by years and revisions in their titles, else by
    years in the sentences, else the first. Each with the values that only it has, as `tokens_of`."""

    newer: ExtractedSentence
    older: ExtractedSentence
    newer_values: frozenset[str]
    older_values: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Reading:
    """`frame`: the tokens, with a zero for each value; `values`: each value with its unit; `title`: its words
    without years and revisions, which are its `version`."""

    sentence: ExtractedSentence
    frame: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    words: frozenset[str]
    years: frozenset[str]
    title: frozenset[str]
    version: tuple[tuple[int, ...], ...]


def conflicting(sentences: Sequence[ExtractedSentence]) -> tuple[ValueConflict, ...]:
    """Each pair of sentences that conflict, in their order."""
    readings = [reading for sentence in sentences if (reading := _read(sentence))]
    pairs = [(one, other) for one, other in combinations(readings, 2) if _conflict(one, other)]
    return tuple(_by_age(one, other) for one, other in pairs)


def has_withdrawal(text: str, match: Match, others: Sequence[tuple[str, Match]]) -> bool:
    """Whether this sentence withdraws a quantity of one of the others, or one of them a quantity of it."""
    own = _read(ExtractedSentence(text, 0, match, 0, len(text), frozenset()))
    readings = (_read(ExtractedSentence(other, 0, of, 0, len(other), frozenset())) for other, of in others)
    return own is not None and any(
        reading and (_withdraws(reading, own) or _withdraws(own, reading)) for reading in readings
    )


def _conflict(one: _Reading, other: _Reading) -> bool:
    return _differ_in_values(one, other) or _withdraws(one, other) or _withdraws(other, one)


def _withdraws(one: _Reading, other: _Reading) -> bool:
    """Whether `one`, of a newer document, says that a quantity of the other is no longer valid."""
    dates = one.sentence.match.occurred_at, other.sentence.match.occurred_at
    # The unit is one of the common words.
    has_common_word = len(one.words & other.words) >= MIN_WORDS
    if dates[0] is None or dates[1] is None or dates[0] <= dates[1] or not has_common_word:
        return False
    values = {value for value in other.values if value[1] not in ("", "time")}
    is_withdrawn = not _WITHDRAWN_WORDS.isdisjoint(tokens_of(one.sentence.text))
    return not values.isdisjoint(one.values) and (
        is_withdrawn or _NO_LONGER.search(one.sentence.text) is not None
    )


def _differ_in_values(one: _Reading, other: _Reading) -> bool:
    changed = [pair for pair in zip(one.values, other.values, strict=False) if pair[0][0] != pair[1][0]]
    # Each of two sentences may be about its own year.
    own_years = one.years and other.years and one.years != other.years and len(changed) > 1
    if own_years or not changed or one.sentence.match.document_id == other.sentence.match.document_id:
        return False
    if one.title == other.title:
        if one.frame == other.frame:
            # The number of a row is its name.
            return one.frame[0] != "0"
        fewer, more = sorted((one, other), key=lambda reading: len(reading.words))
        return len(fewer.words) >= MIN_WORDS_OF_VERSION and fewer.words <= more.words and _differ(one, other)
    # Documents on two products say the same of each. A row or a pronoun is about the subject of its document.
    are_siblings = len(one.title & other.title) * 2 >= min(len(one.title), len(other.title))
    has_subject = len(one.words) >= MIN_WORDS and not (
        _KEY.match(one.sentence.text) or begins_with_pronoun(one.sentence.text, one.sentence.match.lang)
    )
    has_units = all(unit for (_, unit), _ in changed)
    return one.frame == other.frame and has_subject and has_units and not are_siblings


def _differ(one: _Reading, other: _Reading) -> bool:
    """Whether the sentences have values of one unit, and none in common."""
    units = {unit for _, unit in one.values if unit} & {unit for _, unit in other.values}
    return any(not {pair for pair in one.values if pair[1] == unit} & set(other.values) for unit in units)


def _read(sentence: ExtractedSentence) -> _Reading | None:
    """None for a sentence without values."""
    tokens = tokens_of(sentence.text)
    positions = [position for position in range(len(tokens)) if _is_value(tokens, position)]
    if not positions:
        return None
    frame = tuple("0" if position in positions else token for position, token in enumerate(tokens))
    values = tuple((tokens[position], _unit(tokens, position)) for position in positions)
    words = frozenset(stem(word) for word in frame if word not in STOPWORDS) - {"0"}
    years = frozenset(value for value, _ in values if YEAR_TOKEN.fullmatch(value))
    return _Reading(sentence, frame, values, words, years, *version_of(sentence.match.title))


def _is_value(tokens: Sequence[str], position: int) -> bool:
    token = tokens[position]
    if token in MONTHS:
        return any(map(NUMBER_TOKEN.fullmatch, tokens[max(0, position - 1) : position + 2]))
    return token in COUNTED or NUMBER_TOKEN.fullmatch(token) is not None


def _unit(tokens: Sequence[str], position: int) -> str:
    """The unit of a value. A number behind a word of content may be a label ("truck 27"): it has none."""
    before, value, after = ("", *tokens, "")[position : position + 3]
    if ":" in value or YEAR_TOKEN.fullmatch(value) or {before, value, after} & MONTHS.keys():
        return "time"
    counted = after if before in ALL_FUNCTION_WORDS and after not in ALL_FUNCTION_WORDS else ""
    return UNITS.get(after) or UNITS.get(before) or counted


def _by_age(one: _Reading, other: _Reading) -> ValueConflict:
    dates = one.sentence.match.occurred_at, other.sentence.match.occurred_at
    is_newer = one.version >= other.version
    if one.version == other.version and one.years and other.years:
        is_newer = max(one.years) >= max(other.years)
    if dates[0] and dates[1] and dates[0] != dates[1]:
        is_newer = dates[0] > dates[1]
    newer, older = (one, other) if is_newer else (other, one)
    values, older_values = (frozenset(value for value, _ in reading.values) for reading in (newer, older))
    return ValueConflict(newer.sentence, older.sentence, values - older_values, older_values - values)
