"""Coverage of an assertion by windows of passages, and reasons against them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain, combinations

from shared.generation.grounding.cjk_overlap import covers_unspaced_text
from shared.generation.grounding.evidence_windows import (
    EvidencePassage,
    EvidencePassages,
    SentenceWindow,
    window_spans,
)
from shared.generation.grounding.facts import facts_in
from shared.generation.grounding.negation import Negations, contradicts, is_modal, negations_in
from shared.generation.grounding.numbers import COUNTED, Fact
from shared.generation.grounding.out_of_context import is_out_of_context
from shared.generation.grounding.proper_names import names_in
from shared.generation.grounding.role_order import has_swapped_roles
from shared.generation.grounding.terms import content_stems, words_in
from shared.text.language_detection import MONTHS

# The share that each window of a pair must add.
MIN_GAIN = 0.15
# The share that a window may have less than the nearest one.
MAX_DEFICIT = 0.1
# A window with this share is about the same subject.
MIN_SHARED = 0.4
# A label of fewer words states nothing.
MIN_CLAUSE_WORDS = 3
# The windows that are compared in full: altogether, and of each passage.
CANDIDATES, CANDIDATES_PER_PASSAGE = 12, 5
_NUMBER_WORDS = content_stems(
    [*COUNTED, *MONTHS, "percent", "prozent", "pourcent", "million", "billion", "millionen"]
)


@dataclass(frozen=True, slots=True)
class SupportThresholds:
    """Least shares of a sentence's words, weighted by rarity: of one window; of two together."""

    alone: float
    together: float


# Fitted by bench/eval_support.py on one half of the data; it reports on the other.
LIMITS = SupportThresholds(alone=0.6, together=0.75)


@dataclass(frozen=True, slots=True)
class Assertion:
    text: str
    stems: frozenset[str]
    facts: tuple[Fact, ...]
    names: tuple[str, ...]
    negations: Negations


@dataclass(frozen=True, slots=True)
class Support:
    """The windows that support an assertion, best first; or the reasons why none does."""

    windows: tuple[SentenceWindow, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One or two windows, their stems, and their share of the assertion's stems."""

    windows: tuple[SentenceWindow, ...]
    stems: frozenset[str]
    share: float


def assertion_of(text: str) -> Assertion:
    stems = content_stems(word for word in words_in(text) if not is_modal(word)) - _NUMBER_WORDS
    return Assertion(text, stems, tuple(facts_in(text)), tuple(names_in(text)), negations_in(text))


def find_support(
    assertion: Assertion, passages: EvidencePassages, limits: SupportThresholds = LIMITS
) -> Support:
    """The best windows that support the assertion alone, else the best two that do together, else the
    reasons."""
    support = _Comparison(assertion, passages, limits).support()
    if support.windows and is_out_of_context(assertion.text, assertion.names, passages):
        return Support((), ("out_of_context",))
    return support


def contradiction_reasons(assertion: Assertion, passages: EvidencePassages) -> tuple[str, ...]:
    """The reasons why the nearest windows contradict the assertion, however small their share of it."""
    windows = _Comparison(assertion, passages, LIMITS).near_windows()
    return _reasons(
        negation=any(
            contradicts(assertion.negations, window.negations, MIN_CLAUSE_WORDS) for window in windows
        ),
        roles_swapped=any(has_swapped_roles(assertion.text, window.text) for window in windows),
    )


class _Comparison:
    """An assertion against all passages."""

    def __init__(self, assertion: Assertion, passages: EvidencePassages, limits: SupportThresholds) -> None:
        self._assertion = assertion
        self._passages = passages
        self._limits = limits
        self._weights = {stem: passages.rarity(stem) for stem in assertion.stems}
        best_of_each = (nlargest(CANDIDATES_PER_PASSAGE, self._windows(one), _share) for one in passages.all)
        self._best = sorted(chain(*best_of_each), key=_share, reverse=True)

    def near_windows(self) -> list[SentenceWindow]:
        return [item.windows[0] for item in self._best[:CANDIDATES] if item.share >= MIN_SHARED]

    def support(self) -> Support:
        best, limits = self._best, self._limits
        if not best:
            return Support((), ("too_little_in_common",))
        # The nearest window is the source of the sentence. Where it contradicts the sentence, windows with
        # much less in common are no support.
        minimum = best[0].share - MAX_DEFICIT
        threshold = max(limits.alone, minimum)
        supporting = [
            item
            for item in best[:CANDIDATES]
            if item.share >= threshold and not self._faults(item, threshold)
        ]
        if supporting:
            return Support(_without_overlaps(item.windows[0] for item in supporting), ())
        for pair in self._pairs(max(limits.together, minimum)):
            if not self._faults(pair, limits.together):
                return Support(_without_overlaps(pair.windows), ())
        fewest = min((self._faults(item, limits.alone) for item in best[:3]), key=len)
        return Support((), fewest or self._faults(best[0], limits.alone))

    def _windows(self, passage: EvidencePassage) -> Iterator[_Candidate]:
        context = frozenset(self._weights.keys() & passage.context_stems)
        hits = [sentence.stems & self._weights.keys() for sentence in passage.sentences]
        for first, last in window_spans(len(hits)):
            if not self._weights or _needs_both_ends(hits[first : last + 1]):
                stems = context.union(*hits[first : last + 1])
                yield _Candidate((self._passages.window(passage, first, last),), stems, self._share(stems))

    def _pairs(self, minimum: float) -> list[_Candidate]:
        """The best pairs with this share, of which each window adds to the other."""
        pairs: list[_Candidate] = []
        for one, other in combinations(self._best[: 2 * CANDIDATES], 2):
            stems = one.stems | other.stems
            share = self._share(stems)
            adds = share - max(one.share, other.share) >= MIN_GAIN or not self._weights
            if share >= minimum and adds:
                pairs.append(_Candidate(one.windows + other.windows, stems, share))
        return nlargest(CANDIDATES, pairs, _share)

    def _share(self, stems: frozenset[str]) -> float:
        """The weight of these stems among the assertion's; 1 for an assertion of facts alone."""
        total = sum(self._weights.values())
        shared = sum(weight for stem, weight in self._weights.items() if stem in stems)
        return shared / total if total else 1.0

    def _faults(self, candidate: _Candidate, threshold: float) -> tuple[str, ...]:
        """The reasons why these windows do not support the assertion."""
        assertion, windows = self._assertion, candidate.windows
        forms = frozenset[str]().union(*(window.forms for window in windows))
        return _reasons(
            number_not_found=not all(_states(fact, forms) for fact in assertion.facts),
            name_not_found=any(
                all(name not in each.passage.names for each in windows) for name in assertion.names
            ),
            negation=any(contradicts(assertion.negations, window.negations) for window in windows),
            roles_swapped=any(has_swapped_roles(assertion.text, window.text) for window in windows),
            too_little_in_common=not covers_unspaced_text(assertion.text, candidate.stems)
            or candidate.share < threshold
            or not (assertion.stems or assertion.facts),
        )


def _share(candidate: _Candidate) -> float:
    return candidate.share


def _reasons(**faults: bool) -> tuple[str, ...]:
    return tuple(reason for reason, is_fault in faults.items() if is_fault)


def _needs_both_ends(hits: Sequence[frozenset[str]]) -> bool:
    """Whether the first and the last sentence each have a stem that no other has: a window does not grow for
    the sake of a number."""
    return all(
        hits[index] - frozenset().union(*hits[:index], *hits[index + 1 or len(hits) :]) for index in (0, -1)
    )


def _states(fact: Fact, forms: frozenset[str]) -> bool:
    """Whether a source with these forms states the fact. A source without numbers may leave out a count."""
    return bool(fact.accepted & forms) or (
        fact.is_soft and not any(form.startswith("bare:") for form in forms)
    )


def _without_overlaps(windows: Iterable[SentenceWindow]) -> tuple[SentenceWindow, ...]:
    chosen: list[SentenceWindow] = []
    for window in windows:
        if not any(window.overlaps(other) for other in chosen):
            chosen.append(window)
    return tuple(chosen)
