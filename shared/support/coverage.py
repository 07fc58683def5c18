"""How much of a sentence some passage holds, and what of it none may lack."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations

from shared.support.facts import MONTHS, facts_of
from shared.support.names import names_of
from shared.support.negation import Denials, conflict, denials_of
from shared.support.numbers import COUNTED, Fact
from shared.support.passages import Passage, Passages, Window, spans
from shared.support.roles import swapped
from shared.support.words import content, words_of

# What a word is worth that stands in the passage, but not in these sentences of it.
ELSEWHERE = 0.5
# Sentences are held against a wider window, which finds more words by mere chance.
WIDTH = 0.02
# Of two places each must add at least this much.
ADDS = 0.15
# So many of the best windows are looked at closely.
CLOSELY = 12
_WRITTEN_OUT = content(
    [*COUNTED, *MONTHS, "percent", "prozent", "pourcent", "million", "billion", "millionen"]
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares of a sentence's words, by their rarity: what one place must hold; what two places must together;
    and what one must where a number of the sentence stands elsewhere in its passage."""

    alone: float
    together: float
    from_afar: float


# Fitted by bench/eval_support.py, on a half of the data that it does not report on.
LIMITS = Limits(alone=0.6, together=0.7, from_afar=0.75)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence says, taken apart."""

    text: str
    stems: frozenset[str]
    facts: tuple[Fact, ...]
    names: tuple[str, ...]
    denials: Denials


@dataclass(frozen=True, slots=True)
class Judged:
    """The windows that hold a claim, best first; or why none does."""

    windows: tuple[Window, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Scored:
    worth: float
    covered: float
    held: frozenset[str]
    window: Window


def claim_of(text: str) -> Claim:
    stems = content(words_of(text)) - _WRITTEN_OUT
    return Claim(text, stems, tuple(facts_of(text)), tuple(names_of(text)), denials_of(text))


def judge(claim: Claim, passages: Passages, limits: Limits = LIMITS) -> Judged:
    """The best windows that hold the claim alone, else the best two that do together, else the reasons."""
    weights = {stem: passages.rarity(stem) for stem in claim.stems}
    best = nlargest(CLOSELY, _scored(weights, passages), key=lambda scored: scored.worth)
    alone = [item for item in best if not _faults(claim, [item.window], item.covered, limits.alone, limits)]
    if alone:
        return Judged(_apart(item.window for item in alone), ())
    for one, other in combinations(best, 2):
        both = _covered(weights, one.held | other.held)
        adds = both - max(_covered(weights, one.held), _covered(weights, other.held)) >= ADDS
        pair = [one.window, other.window]
        if (adds or not weights) and not _faults(claim, pair, both, limits.together, limits):
            return Judged(_apart(pair), ())
    if not best:
        return Judged((), ("too_little_in_common",))
    nearest = min(
        (_faults(claim, [item.window], item.covered, limits.alone, limits) for item in best[:3]), key=len
    )
    return Judged((), nearest)


def _scored(weights: dict[str, float], passages: Passages) -> Iterator[_Scored]:
    for passage in passages.all:
        if not passage.sentences:
            continue
        around = frozenset(weights.keys() & passage.title)
        chunk = _covered(weights, frozenset(weights.keys() & passage.stems))
        hits = [sentence.stems & weights.keys() for sentence in passage.sentences]
        for first, last in spans(len(hits)):
            if weights and (not hits[first] or not hits[last]):
                continue
            held = around.union(*hits[first : last + 1])
            own = _covered(weights, held)
            covered = own + ELSEWHERE * (chunk - own)
            worth = covered - WIDTH * (last - first)
            yield _Scored(worth, covered, held, passages.window(passage, first, last))


def _covered(weights: dict[str, float], held: frozenset[str]) -> float:
    """The share that is held; all of it, where nothing but facts is said."""
    total = sum(weights.values())
    return sum(weight for stem, weight in weights.items() if stem in held) / total if total else 1.0


def _faults(
    claim: Claim, windows: Sequence[Window], covered: float, enough: float, limits: Limits
) -> tuple[str, ...]:
    """What speaks against these windows holding the claim."""
    passages = [window.passage for window in windows]
    near = frozenset().union(*(window.facts for window in windows))
    reasons = []
    if not claim.stems and not claim.facts:
        reasons.append("too_little_in_common")
    missing = [fact for fact in claim.facts if not _told(fact, near)]
    if missing and not _told_anywhere(missing, passages):
        reasons.append("number_not_found")
    if any(all(name not in passage.names for passage in passages) for name in claim.names):
        reasons.append("name_not_found")
    text = "\n".join(window.text for window in windows)
    if conflict(claim.denials, windows[0].denials if len(windows) == 1 else denials_of(text)):
        reasons.append("negation")
    if len(claim.names) and swapped(claim.text, text):
        reasons.append("roles_swapped")
    if covered < (max(enough, limits.from_afar) if missing else enough):
        reasons.append("too_little_in_common")
    return tuple(dict.fromkeys(reasons))


def _told(fact: Fact, forms: frozenset[str]) -> bool:
    """A count in words may be left to the reader where no number stands that it could contradict."""
    return bool(fact.accepted & forms) or (fact.soft and not any(form.startswith("bare:") for form in forms))


def _told_anywhere(facts: Iterable[Fact], passages: Sequence[Passage]) -> bool:
    return all(any(_told(fact, passage.facts) for passage in passages) for fact in facts)


def _apart(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Those that hold no text of a better one."""
    chosen: list[Window] = []
    for window in windows:
        if not any(window.overlaps(other) for other in chosen):
            chosen.append(window)
    return tuple(chosen)
