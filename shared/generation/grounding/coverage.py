"""How much of a sentence some passage holds, and what of it none may lack."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations

from shared.generation.grounding.cjk_overlap import joined_words_held
from shared.generation.grounding.evidence_windows import Passage, Passages, Window, spans
from shared.generation.grounding.facts import facts_of
from shared.generation.grounding.negation import Denials, conflict, denials_of, only_permits
from shared.generation.grounding.numbers import COUNTED, Fact
from shared.generation.grounding.proper_names import names_of
from shared.generation.grounding.role_order import swapped
from shared.generation.grounding.terms import content, words_of
from shared.text.languages import MONTHS

# What a word is worth that stands in the passage, but not in these sentences of it.
ELSEWHERE = 0.5
# Sentences are held against a wider window, which finds more words by mere chance.
WIDTH = 0.02
# Of two places each must add at least this much.
ADDS = 0.15
# How much less than the nearest window another may hold.
MARGIN = 0.1
# What speaks of so much of it speaks of the same.
AT_ISSUE = 0.4
# A label of fewer words says of nothing that it is so.
LEAST = 3
# So many of the best windows are looked at closely, of each passage so many.
CLOSELY, OF_A_PASSAGE = 12, 5
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
LIMITS = Limits(alone=0.6, together=0.75, from_afar=0.9)


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
    own: float
    held: frozenset[str]
    window: Window


def claim_of(text: str) -> Claim:
    stems = content(word for word in words_of(text) if not only_permits(word)) - _WRITTEN_OUT
    return Claim(text, stems, tuple(facts_of(text)), tuple(names_of(text)), denials_of(text))


def judge(claim: Claim, passages: Passages, limits: Limits = LIMITS) -> Judged:
    """The best windows that hold the claim alone, else the best two that do together, else the reasons."""
    weights = {stem: passages.rarity(stem) for stem in claim.stems}
    best = _nearest(weights, passages)
    if not best:
        return Judged((), ("too_little_in_common",))
    # What comes closest is what the sentence was made of: where that contradicts it, others that have less in
    # common with it are no support.
    least = best[0].covered - MARGIN
    alone = [
        item for item in best[:CLOSELY] if _holds(claim, [item], weights, max(limits.alone, least), limits)
    ]
    if alone:
        return Judged(_apart(item.window for item in alone), ())
    for pair in _pairs(best, weights, max(limits.together, least)):
        if not _faults(claim, pair, weights, limits.together, limits):
            return Judged(_apart(item.window for item in pair), ())
    nearest = min((_faults(claim, [item], weights, limits.alone, limits) for item in best[:3]), key=len)
    return Judged((), nearest or _faults(claim, best[:1], weights, limits.alone, limits))


def contradictions(claim: Claim, passages: Passages) -> tuple[str, ...]:
    """What the nearest windows have against it, however little they hold of it."""
    near = _nearest({stem: passages.rarity(stem) for stem in claim.stems}, passages)[:CLOSELY]
    windows = [item.window for item in near if item.own >= AT_ISSUE]
    faults = {
        "negation": any(conflict(claim.denials, window.denials, LEAST) for window in windows),
        "roles_swapped": any(swapped(claim.text, window.text) for window in windows),
    }
    return tuple(reason for reason, is_fault in faults.items() if is_fault)


def _nearest(weights: Mapping[str, float], passages: Passages) -> list[_Scored]:
    """The best windows of every passage, the best of all first."""
    scored = [
        item
        for passage in passages.all
        for item in nlargest(OF_A_PASSAGE, _scored(weights, passages, passage), key=lambda item: item.worth)
    ]
    return sorted(scored, key=lambda item: -item.worth)


def _pairs(best: Sequence[_Scored], weights: Mapping[str, float], least: float) -> list[tuple[_Scored, ...]]:
    """The best of those that hold as much together, and of which each adds to the other."""
    pairs: list[tuple[float, tuple[_Scored, ...]]] = []
    for one, other in combinations(best[: 2 * CLOSELY], 2):
        both = _covered(weights, one.held | other.held)
        adds = both - max(one.own, other.own) >= ADDS or not weights
        if both >= least and adds:
            pairs.append((both, (one, other)))
    return [pair for _, pair in nlargest(CLOSELY, pairs, key=lambda item: item[0])]


def _scored(weights: Mapping[str, float], passages: Passages, passage: Passage) -> Iterator[_Scored]:
    around = frozenset(weights.keys() & passage.title)
    chunk = _covered(weights, frozenset(weights.keys() & passage.stems))
    hits = [sentence.stems & weights.keys() for sentence in passage.sentences]
    for first, last in spans(len(hits)):
        if not weights or _needed(hits[first : last + 1]):
            stems_inside = around.union(*hits[first : last + 1])
            own = _covered(weights, stems_inside)
            covered = own + ELSEWHERE * (chunk - own)
            worth = covered - WIDTH * (last - first)
            yield _Scored(worth, covered, own, stems_inside, passages.window(passage, first, last))


def _needed(hits: Sequence[frozenset[str]]) -> bool:
    """Whether the first and the last sentence each hold a word that no other does: a window does not grow for
    the sake of a number."""
    return all(
        hits[place] - frozenset().union(*hits[:place], *hits[place + 1 or len(hits) :]) for place in (0, -1)
    )


def _covered(weights: Mapping[str, float], stems_inside: frozenset[str]) -> float:
    """The share that is held; all of it, where nothing but facts is said."""
    total = sum(weights.values())
    return sum(weight for stem, weight in weights.items() if stem in stems_inside) / total if total else 1.0


def _holds(
    claim: Claim, scored: Sequence[_Scored], weights: Mapping[str, float], enough: float, limits: Limits
) -> bool:
    # Most windows hold too little, which is told at once.
    return _share(scored, weights) >= enough and not _faults(claim, scored, weights, enough, limits)


def _share(scored: Sequence[_Scored], weights: Mapping[str, float]) -> float:
    return scored[0].covered if len(scored) == 1 else _covered(weights, scored[0].held | scored[1].held)


def _faults(
    claim: Claim, scored: Sequence[_Scored], weights: Mapping[str, float], enough: float, limits: Limits
) -> tuple[str, ...]:
    """What speaks against these windows holding the claim."""
    windows = [item.window for item in scored]
    passages = [window.passage for window in windows]
    missing = _missing(claim, windows)
    stems_inside = frozenset[str]().union(*(item.held for item in scored))
    faults = {
        "number_not_found": bool(missing) and not _told_around(claim, missing, windows),
        "name_not_found": any(all(name not in each.names for each in passages) for name in claim.names),
        "negation": any(conflict(claim.denials, window.denials) for window in windows),
        "roles_swapped": any(swapped(claim.text, window.text) for window in windows),
        "too_little_in_common": not joined_words_held(claim.text, stems_inside)
        or _share(scored, weights) < (max(enough, limits.from_afar) if missing else enough)
        or not (claim.stems or claim.facts),
    }
    return tuple(reason for reason, is_fault in faults.items() if is_fault)


def _missing(claim: Claim, windows: Sequence[Window]) -> list[Fact]:
    near = frozenset[str]().union(*(window.forms for window in windows))
    return [fact for fact in claim.facts if not _told(fact, near)]


def _told(fact: Fact, forms: frozenset[str]) -> bool:
    """A count in words may be left to the reader where no number stands that it could contradict."""
    return bool(fact.accepted & forms) or (fact.soft and not any(form.startswith("bare:") for form in forms))


def _told_around(claim: Claim, missing: Iterable[Fact], windows: Sequence[Window]) -> bool:
    """Whether the rest of the passages tells what the windows do not, and they have nothing in its place."""
    claimed = frozenset[str]().union(*(fact.forms for fact in claim.facts))
    own = [fact for window in windows for fact in window.facts]
    if len(own) >= len(claim.facts) or any(not fact.forms & claimed for fact in own):
        return False
    return all(any(_told(fact, window.passage.forms) for window in windows) for fact in missing)


def _apart(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Those that hold no text of a better one."""
    chosen: list[Window] = []
    for window in windows:
        if not any(window.overlaps(other) for other in chosen):
            chosen.append(window)
    return tuple(chosen)
