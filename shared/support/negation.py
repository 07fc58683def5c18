"""Whether a sentence denies what its source says, or says what that denies.

A negation is taken to deny the next word that says something, or the last one where none follows ("startet
nicht"). That word must be denied on both sides, or on neither.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared.support.words import says_nothing, stem

NEAR = 5
_NEGATORS = frozenset(
    """
    not no never none neither nor without cannot nobody nothing nowhere
    nicht kein keine keinen keinem keiner keines nie niemals ohne weder niemand nichts
    pas jamais sans aucun aucune ningún ninguna nunca jamás sin niet geen
    """.split()  # noqa: SIM905  # a list of strings would be a page long
)
# Not only is no negation, and No. 5 and "No, it ..." deny nothing of what follows.
_NO_NEGATION = re.compile(
    r"\b(?:not (?:only|just|merely)|nicht nur|non seulement|no solo)\b|\bno\.?\s*(?=\d)"
    r"|^\W*(?:no|nein|non)\s*[,.!]",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*|[,;:.!?]")
_TURN = frozenset(
    ("but", "however", "although", "whereas", "while", "aber", "sondern", "jedoch", "mais", "pero")
)
_SUBJECT = frozenset(
    "it they he she we you i this these that which who es er sie wir il elle ils".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class _Word:
    stem: str
    clause: int
    negates: bool
    says: bool


@dataclass(frozen=True, slots=True)
class Denials:
    """Of a text, the stems that stand near a negation, those that also stand free of one, and the denied."""

    near: frozenset[str]
    free: frozenset[str]
    denied: frozenset[str]


def denials_of(text: str) -> Denials:
    words = _words(text)
    negators = [place for place, word in enumerate(words) if word.negates]
    near: set[str] = set()
    free: set[str] = set()
    for place, word in enumerate(words):
        if word.says:
            beside = any(abs(at - place) <= NEAR and words[at].clause == word.clause for at in negators)
            (near if beside else free).add(word.stem)
    denied = {target for at in negators if (target := _target(words, at)) is not None}
    return Denials(frozenset(near), frozenset(free), frozenset(denied))


def denies(text: str) -> bool:
    """Whether some word of it negates."""
    return any(word.negates for word in _words(text))


def conflict(sentence: Denials, source: Denials) -> bool:
    """Whether either denies what the other says without a negation."""
    return _denies(sentence, source) or _denies(source, sentence)


def _denies(one: Denials, other: Denials) -> bool:
    return any(word in other.free - other.near for word in one.denied - one.free)


def _words(text: str) -> list[_Word]:
    heard = [said.casefold().replace("’", "'") for said in _TOKEN.findall(_NO_NEGATION.sub(" ", text))]
    words: list[_Word] = []
    clause = 0
    for place, said in enumerate(heard):
        after = heard[place + 1] if place + 1 < len(heard) else ""
        if said in ";:.!?" or said in _TURN or (said == "," and after in _SUBJECT):
            clause += 1
        if said[0].isalpha():
            negates = said in _NEGATORS or said.endswith("n't") or said.startswith("n'")
            bare = said.removeprefix("n'").removesuffix("n't")
            says = not negates and not says_nothing(bare) and len(bare) > 1
            words.append(_Word(stem(bare), clause, negates, says))
    return words


def _target(words: Sequence[_Word], at: int) -> str | None:
    clause = words[at].clause
    after = words[at + 1 : at + 1 + NEAR]
    before = reversed(words[max(0, at - NEAR) : at])
    return next((word.stem for word in (*after, *before) if word.says and word.clause == clause), None)
