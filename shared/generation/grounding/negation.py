"""Whether a sentence denies what its source says, or says what that denies.

A negation is taken to deny the next word that says something, or the last one where none follows ("startet
nicht"). That word must be denied on both sides, or on neither; and so must whole clauses that say the same:
it is forbidden to record them, they may be recorded. What need not be is neither.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared.generation.grounding.terms import says_nothing, stem
from shared.text.stemming import pairs, unspaced
from shared.text.word_lists import word_sets

NEAR = 5
_WORDS = word_sets(__file__)
_DENYING = re.compile(
    r"forb[ia]d|prohibit|disallow|disabl|exclud|refus|reject|verbiet|verbot|interdi[st]|prohib"
)
# Scripts that join it to the word, or put no spaces.
_JOINED = re.compile(r"[不没沒無无非]|ない|ません|なかっ|않|없|못")
# Whether something may be is said with many words.
_PERMITTED = "allow allowed allows permit permitted permits possible able erlaubt möglich permis posible"
_MAY = frozenset(
    stem(word)
    for word in f"{_PERMITTED} grant granted enable included accepted required must need have approve".split()
)
_PERMITTING = frozenset(_PERMITTED.split())
_NEED_NOT = re.compile(
    r"\b(?:(?:do|does|did)(?: not|n't) (?:have|need) to|need(?: not|n't)(?: to)?"
    r"|(?:is|are|was|were)(?: not|n't) (?:required|obliged|obligated|necessary|mandatory)(?: to)?)\b",
    re.IGNORECASE,
)
_OPTION = "neednot"
# Of a clause that says so much of the same, the sense must be the same.
SAME = 0.7
_OPPOSITES = (
    ("above over exceed exceeds exceeding", "below under"),
    ("minimum min least", "maximum max most"),
    ("before prior", "after following"),
    ("increase increases increased increasing rise rises rose", "decrease decreases decreased fell falls"),
    ("open opens opened", "close closes closed"),
    ("more", "less fewer"),
    ("start starts started begins", "stop stops stopped ends"),
    ("mandatory required", "optional voluntary"),
    ("higher greater", "lower smaller"),
    ("public", "private"),
)
_SIDES = tuple((frozenset(one.split()), frozenset(other.split())) for one, other in _OPPOSITES)
# Not only is no negation, and No. 5 and "No, it ..." deny nothing of what follows.
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
    negates: bool
    says: bool
    whole: str


@dataclass(frozen=True, slots=True)
class Denials:
    """Of a text, the stems that stand near a negation, those that also stand free of one, and the denied; its
    clauses, each with whether it is so (+), is not (-) or need not be (0); every word."""

    near: frozenset[str]
    free: frozenset[str]
    denied: frozenset[str]
    clauses: tuple[tuple[frozenset[str], str], ...]
    words: frozenset[str]


def denials_of(text: str) -> Denials:
    words = _words(text)
    # Where a script joins all words, only how often is told, not what.
    negators = [place for place, word in enumerate(words) if word.negates and word.whole]
    near: set[str] = set()
    free: set[str] = set()
    for place, word in enumerate(words):
        if word.says:
            beside = any(abs(at - place) <= NEAR and words[at].clause == word.clause for at in negators)
            (near if beside else free).add(word.stem)
    denied = {target for at in negators if (target := _target(words, at)) is not None}
    wholes = frozenset(word.whole for word in words)
    return Denials(frozenset(near), frozenset(free), frozenset(denied), _clauses(words), wholes)


def denies(text: str) -> bool:
    """Whether some word of it negates."""
    return any(word.negates for word in _words(text))


def only_permits(word: str) -> bool:
    """Whether a case-folded word only says that something may be, or may not: its sense is judged here."""
    return word in _PERMITTING or _negates(word)


def conflict(sentence: Denials, source: Denials, least: int = 1) -> bool:
    """Whether either denies what the other says without a negation. Of clauses, those of at least so many
    words that say something are held against each other."""
    return (
        _denies(sentence, source)
        or _denies(source, sentence)
        or any(
            len(clause) >= least and _turned(clause, sense, sentence, source)
            for clause, sense in sentence.clauses
        )
        or any(
            _opposed(sentence.words, source.words, *sides) or _opposed(source.words, sentence.words, *sides)
            for sides in _SIDES
        )
    )


def _turned(clause: frozenset[str], sense: str, sentence: Denials, source: Denials) -> bool:
    """Whether the source's clause that says most of this one says it in another sense, and none as much in
    this one."""
    if len(clause) == 1 and len(sentence.clauses) > 1:
        return False
    shares = [(len(clause & stems) / len(clause), other) for stems, other in source.clauses]
    same = max((share for share, other in shares if other == sense), default=0.0)
    return any(share >= SAME and share > same for share, other in shares if other != sense)


def _opposed(
    words: frozenset[str], source: frozenset[str], one: frozenset[str], other: frozenset[str]
) -> bool:
    return bool(words & one and source & other) and not (words & other or source & one)


def _clauses(words: Sequence[_Word]) -> tuple[tuple[frozenset[str], str], ...]:
    clauses = []
    for number in sorted({word.clause for word in words}):
        own = [word for word in words if word.clause == number]
        denied = sum(word.negates for word in own) % 2
        sense = "0" if any(word.whole == _OPTION for word in own) else "+-"[denied]
        stems = frozenset(word.stem for word in own if word.says) - _MAY
        if stems:
            clauses.append((stems, sense))
    return tuple(clauses)


def _denies(one: Denials, other: Denials) -> bool:
    return any(word in other.free - other.near for word in one.denied - one.free)


def _words(text: str) -> list[_Word]:
    plain = _NEED_NOT.sub(f" {_OPTION} ", _NO_NEGATION.sub(" ", text.replace("’", "'")))
    pieces = [piece.casefold() for piece in _TOKEN.findall(plain)]
    words: list[_Word] = []
    clause, aside = 0, False
    for place, piece in enumerate(pieces):
        after = pieces[place + 1] if place + 1 < len(pieces) else ""
        listed = piece in ",，、" and (after in _WORDS["subjects"] or _negates(after))
        if piece in ";:.!?。！？；" or piece in _WORDS["turns"] or listed or (piece in ",，、" and aside):
            # What such a word opens at a sentence's beginning ends with a comma: without approval, ...
            clause, aside = clause + 1, piece in _WORDS["turns"]
        if unspaced(piece):
            words += [_Word(pair, clause, False, True, pair) for pair in pairs(piece)]
            words += [_Word("", clause, True, False, "") for _ in _JOINED.findall(piece)]
        elif piece[0].isalpha():
            words.append(_word(piece, clause))
    return words


def _negates(word: str) -> bool:
    return (
        word in _WORDS["negators"]
        or word.endswith("n't")
        or word.startswith("n'")
        or _DENYING.match(word) is not None
        or _JOINED.search(word) is not None
    )


def _word(text: str, clause: int) -> _Word:
    negates = _negates(text)
    bare = text.removeprefix("n'").removesuffix("n't")
    says = not negates and text != _OPTION and not says_nothing(bare) and len(bare) > 1
    return _Word(stem(bare), clause, negates, says, text)


def _target(words: Sequence[_Word], at: int) -> str | None:
    clause = words[at].clause
    after = words[at + 1 : at + 1 + NEAR]
    before = reversed(words[max(0, at - NEAR) : at])
    return next((word.stem for word in (*after, *before) if word.says and word.clause == clause), None)
