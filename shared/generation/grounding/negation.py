"""Contradictions between a sentence and its source: negations and opposites.

A negation negates the next content word, or the last one where none follows ("startet nicht"). Both texts
must negate that word, or neither, and so for clauses of the same words. "Need not" is a third sense.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.generation.grounding.terms import inflection_stem, is_function_word
from shared.text.stemming import is_unspaced, letter_pairs
from shared.text.word_lists import read_toml, word_sets

MAX_DISTANCE = 5
_WORDS = word_sets(__file__)
_DENYING = re.compile(
    r"forb[ia]d|prohibit|disallow|disabl|exclud|refus|reject|verbiet|verbot|interdi[st]|prohib"
)
# Negations that are joined to their word.
_JOINED = re.compile(r"[不没沒無无非]|ない|ません|なかっ|않|없|못")
# Words of permission and obligation.
_PERMITTED = "allow allowed allows permit permitted permits possible able erlaubt möglich permis posible"
_MAY = frozenset(
    inflection_stem(word)
    for word in f"{_PERMITTED} grant granted enable included accepted required must need have approve".split()
)
_PERMITTING = frozenset(_PERMITTED.split())
_NEED_NOT = re.compile(
    r"\b(?:(?:do|does|did)(?: not|n't) (?:have|need) to|need(?: not|n't)(?: to)?"
    r"|(?:is|are|was|were)(?: not|n't) (?:required|obliged|obligated|necessary|mandatory)(?: to)?)\b",
    re.IGNORECASE,
)
_NEED_NOT_WORD = "neednot"
# Clauses that share so much must have the same sense.
SAME_SHARE = 0.7
_OPPOSITES = tuple(
    (frozenset(one.split()), frozenset(other.split()))
    for one, other in read_toml(Path(__file__).with_name("words.toml"))["negation"]["opposites"].items()
)
# "Not only", "No. 5" and "No, it ..." negate nothing.
_NO_NEGATION = re.compile(
    r"\b(?:not (?:only|just|merely)|nicht nur|non seulement|no solo)\b|\bno\.?\s*(?=\d)"
    r"|^\W*(?:no|nein|non)\s*[,.!]",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*|[,;:.!?。！？、，；]")


@dataclass(frozen=True, slots=True)
class _Word:
    stem: str
    clause: int
    is_negation: bool
    has_content: bool
    text: str


@dataclass(frozen=True, slots=True)
class Negations:
    """Stems near a negation, stems without one, negated stems; the clauses, each with its sense:
    affirmed (+), negated (-) or optional (0); every word."""

    negated_nearby: frozenset[str]
    unnegated: frozenset[str]
    negated: frozenset[str]
    clauses: tuple[tuple[frozenset[str], str], ...]
    words: frozenset[str]


def negations_in(text: str) -> Negations:
    words = _words(text)
    # A negation in a script without spaces has no text and no target.
    negators = [index for index, word in enumerate(words) if word.is_negation and word.text]
    negated_nearby: set[str] = set()
    unnegated: set[str] = set()
    for index, word in enumerate(words):
        if word.has_content:
            beside = any(
                abs(at - index) <= MAX_DISTANCE and words[at].clause == word.clause for at in negators
            )
            (negated_nearby if beside else unnegated).add(word.stem)
    negated = {target for at in negators if (target := _target(words, at)) is not None}
    all_words = frozenset(word.text for word in words)
    return Negations(
        frozenset(negated_nearby), frozenset(unnegated), frozenset(negated), _clauses(words), all_words
    )


def has_negation(text: str) -> bool:
    return any(word.is_negation for word in _words(text))


def is_modal(word: str) -> bool:
    """Whether a case-folded word only expresses permission or negation."""
    return word in _PERMITTING or _is_negation(word)


def contradicts(sentence: Negations, source: Negations, min_words: int = 1) -> bool:
    """Whether either text negates what the other affirms. `min_words`: the content words of a clause that is
    compared."""
    return (
        _negates_target(sentence, source)
        or _negates_target(source, sentence)
        or any(
            len(clause) >= min_words and _has_other_sense(clause, sense, sentence, source)
            for clause, sense in sentence.clauses
        )
        or any(
            _says_opposite(sentence.words, source.words, *sides)
            or _says_opposite(source.words, sentence.words, *sides)
            for sides in _OPPOSITES
        )
    )


def _has_other_sense(clause: frozenset[str], sense: str, sentence: Negations, source: Negations) -> bool:
    """Whether the source's most similar clause has another sense."""
    if len(clause) == 1 and len(sentence.clauses) > 1:
        return False
    shares = [(len(clause & stems) / len(clause), other) for stems, other in source.clauses]
    same = max((share for share, other in shares if other == sense), default=0.0)
    return any(share >= SAME_SHARE and share > same for share, other in shares if other != sense)


def _says_opposite(
    words: frozenset[str], source: frozenset[str], one: frozenset[str], other: frozenset[str]
) -> bool:
    return bool(words & one and source & other) and not (words & other or source & one)


def _clauses(words: Sequence[_Word]) -> tuple[tuple[frozenset[str], str], ...]:
    clauses = []
    for number in sorted({word.clause for word in words}):
        own = [word for word in words if word.clause == number]
        negated = sum(word.is_negation for word in own) % 2
        sense = "0" if any(word.text == _NEED_NOT_WORD for word in own) else "+-"[negated]
        stems = frozenset(word.stem for word in own if word.has_content) - _MAY
        if stems:
            clauses.append((stems, sense))
    return tuple(clauses)


def _negates_target(one: Negations, other: Negations) -> bool:
    return any(word in other.unnegated - other.negated_nearby for word in one.negated - one.unnegated)


def _words(text: str) -> list[_Word]:
    plain = _NEED_NOT.sub(f" {_NEED_NOT_WORD} ", _NO_NEGATION.sub(" ", text.replace("’", "'")))
    pieces = [piece.casefold() for piece in _TOKEN.findall(plain)]
    words: list[_Word] = []
    clause, in_subclause = 0, False
    for index, piece in enumerate(pieces):
        after = pieces[index + 1] if index + 1 < len(pieces) else ""
        begins_clause = (piece in ",，、" and after in _WORDS["subjects"]) or (
            (piece in ",，、" or piece in _WORDS["and"]) and _is_negation(after)
        )
        if (
            piece in ";:.!?。！？；"
            or piece in _WORDS["turns"]
            or begins_clause
            or (piece in ",，、" and in_subclause)
        ):
            # A clause that such a word begins ends with a comma: without approval, ...
            clause, in_subclause = clause + 1, piece in _WORDS["turns"]
        if is_unspaced(piece):
            words += [_Word(pair, clause, False, True, pair) for pair in letter_pairs(piece)]
            words += [_Word("", clause, True, False, "") for _ in _JOINED.findall(piece)]
        elif piece[0].isalpha():
            words.append(_word(piece, clause))
    return words


def _is_negation(word: str) -> bool:
    return (
        word in _WORDS["negators"]
        or word.endswith("n't")
        or word.startswith("n'")
        or _DENYING.match(word) is not None
        or _JOINED.search(word) is not None
    )


def _word(text: str, clause: int) -> _Word:
    is_negation = _is_negation(text)
    stem_text = text.removeprefix("n'").removesuffix("n't")
    has_content = (
        not is_negation and text != _NEED_NOT_WORD and not is_function_word(stem_text) and len(stem_text) > 1
    )
    return _Word(inflection_stem(stem_text), clause, is_negation, has_content, text)


def _target(words: Sequence[_Word], at: int) -> str | None:
    clause = words[at].clause
    after = words[at + 1 : at + 1 + MAX_DISTANCE]
    before = reversed(words[max(0, at - MAX_DISTANCE) : at])
    return next((word.stem for word in (*after, *before) if word.has_content and word.clause == clause), None)
