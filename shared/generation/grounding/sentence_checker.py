"""Check of an answer's sentences against its passages, by words, whole or streamed.

A sentence is compared with each run of one to three sentences of a passage: they must share most of its
words, weighted by rarity, and all of its numbers, dates, identifiers, addresses, names, negations and
quotations. Two runs may support a sentence together.

Words do not show some errors: other relations between the same words (beyond two names around one verb), an
unlisted opposite, the referent of a pronoun. An answer in another language than its sources is unsupported,
apart from its quotations.
"""

import re
from collections.abc import Sequence

from shared.generation.grounding import markers_of_models, markup, meta_sentences
from shared.generation.grounding.answer_segmenter import Segmenter
from shared.generation.grounding.evidence_windows import EvidencePassages, normalized_text
from shared.generation.grounding.quotations import Quotations
from shared.generation.grounding.sentence_support import (
    LIMITS,
    Assertion,
    Support,
    SupportThresholds,
    assertion_of,
    contradiction_reasons,
    find_support,
)
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from shared.types import Match

MAX_BACKING = 3
# A shorter statement that something is missing is not checked.
MIN_STEMS = 3
_EXACT = SupportThresholds(alone=1.0, together=1.0)
_LEAD = re.compile(r"\s*(?:>[ \t]*)*")
_HEADING = re.compile(r"(?:^|\n)[ \t]*#{1,6}[ \t]+$")
_FENCE = ("```", "~~~")


class Checker:
    """Checks sentences against the same matches. Not safe for several threads at a time."""

    def __init__(self, matches: Sequence[Match], limits: SupportThresholds = LIMITS) -> None:
        self._limits = limits
        self._matches = matches
        self._passages = EvidencePassages(matches)
        self._quotations = Quotations(matches)

    def check(self, sentence: str, before: str = "") -> CheckResult:
        """Check a sentence, a table row or a block of code. `before`: the marker of a list or quotation."""
        lead = _LEAD.match(sentence)
        assert lead is not None  # noqa: S101  # it also matches nothing
        before, code = before + lead.group(), sentence[lead.end() :].startswith(_FENCE)
        sentence = sentence[lead.end() :].rstrip()
        text = sentence if code else markup.displayable(markers_of_models.without_markers(sentence)).strip()
        if not re.search(r"\w", text):
            return CheckResult(text, Verdict.FRAME, before=before)
        if not code and markup.has_picture(text):
            return CheckResult(text, Verdict.UNSUPPORTED, (), ("picture",), before)
        if exact_window := self._passages.exact.get(normalized_text(text)):
            return CheckResult(text, Verdict.SUPPORTED, (exact_window.evidence,), (), before)
        if code:
            return self._code(text, before)
        quoted = ">" in before
        location = self._quotations.find(text) if quoted else None
        if location is not None:
            return CheckResult(text, Verdict.SUPPORTED, (self._evidence_at(location),), (), before)
        if quoted:
            before = re.sub(r"> ?", "", before)
        text, locations, is_missing = self._quotations.examine(text)
        verdict, judgement = self._judge(text, heading=_HEADING.search(before) is not None)
        evidence = [window.evidence for window in judgement.windows]
        if verdict is Verdict.SUPPORTED:
            supported_matches = {item.match_index for item in evidence}
            evidence += [
                self._evidence_at(location) for location in locations if location[0] not in supported_matches
            ]
        reasons = (*(["quotation_not_found"] if is_missing or quoted else []), *judgement.reasons)
        if verdict is Verdict.FRAME and (is_missing or quoted):
            verdict = Verdict.UNSUPPORTED
        return CheckResult(text, verdict, tuple(evidence[:MAX_BACKING]), reasons, before)

    def _judge(self, text: str, *, heading: bool) -> tuple[Verdict, Support]:
        plain = meta_sentences.without_emphasis(text)
        assertion = assertion_of(plain)
        missing_literals = self._missing_literals(text)
        new_facts = (*self._new_facts(assertion), *missing_literals)
        if meta_sentences.is_lead_in(plain):
            return _frame(new_facts)
        if (rest := meta_sentences.missing_subject(plain)) is not None:
            return _frame(new_facts or self._contradicted_absence(rest))
        in_sources = assertion.stems <= self._passages.stems | meta_sentences.ABOUT_ANSWERS
        if meta_sentences.is_question(plain) and not in_sources:
            return _frame((*new_facts, "too_little_in_common"))
        if in_sources and (
            meta_sentences.is_question(plain) or meta_sentences.is_label(text, heading=heading)
        ):
            return _frame(new_facts or contradiction_reasons(assertion, self._passages))
        judgement = find_support(assertion, self._passages, self._limits)
        if missing_literals:
            judgement = Support((), (*judgement.reasons, *missing_literals))
        return (Verdict.UNSUPPORTED if judgement.reasons else Verdict.SUPPORTED), judgement

    def _new_facts(self, assertion: Assertion) -> tuple[str, ...]:
        """The reasons against a heading or a lead-in with a fact or a name that no passage has."""
        reasons = []
        if any(not fact.is_soft and not fact.accepted & self._passages.forms for fact in assertion.facts):
            reasons.append("number_not_found")
        if any(name not in self._passages.names for name in assertion.names):
            reasons.append("name_not_found")
        return tuple(reasons)

    def _missing_literals(self, text: str) -> tuple[str, ...]:
        """The reasons against code and link targets that no source contains literally."""
        reasons = []
        if not all(map(self._quotations.has, markup.code_spans(text))):
            reasons.append("code_not_found")
        if not all(map(self._quotations.has, markup.link_targets(text))):
            reasons.append("link_not_found")
        return tuple(reasons)

    def _contradicted_absence(self, rest: str) -> tuple[str, ...]:
        """The reason against a statement that the sources lack something that they have."""
        assertion = assertion_of(rest)
        if len(assertion.stems) < MIN_STEMS or find_support(assertion, self._passages, _EXACT).reasons:
            return ()
        return ("negation",)

    def _code(self, text: str, before: str) -> CheckResult:
        code = _code_of_block(text)
        location = self._quotations.find(code)
        if not re.search(r"\w", code):
            return CheckResult(text, Verdict.FRAME, before=before)
        if location is None:
            return CheckResult(text, Verdict.UNSUPPORTED, (), ("code_not_found",), before)
        return CheckResult(text, Verdict.SUPPORTED, (self._evidence_at(location),), (), before)

    def _evidence_at(self, location: tuple[int, int, int]) -> Evidence:
        number, start, end = location
        begin = self._matches[number].span[0]
        return Evidence(number, begin + start, begin + end)


class StreamChecker:
    """Checks the tokens of a model. The results do not depend on how the text is divided into tokens."""

    def __init__(self, checker: Checker, lang: str | None = None) -> None:
        self._checker = checker
        self._segmenter = Segmenter((lang or "en").split("-")[0].lower())

    def feed(self, text: str) -> list[CheckResult]:
        """The sentences that the text completes."""
        self._segmenter.feed(text)
        return self._checked(last=False)

    def close(self) -> list[CheckResult]:
        """The remaining sentences, without white space at the end of the text."""
        return self._checked(last=True)

    def _checked(self, *, last: bool) -> list[CheckResult]:
        results: list[CheckResult] = []
        while segment := self._segmenter.next(last=last):
            results.append(self._checker.check(segment.text, segment.before))
        return results


def check_text(text: str, matches: Sequence[Match]) -> list[CheckResult]:
    """The sentences of a whole answer."""
    stream = StreamChecker(Checker(matches), matches[0].lang if matches else None)
    return [*stream.feed(text), *stream.close()]


def _frame(reasons: tuple[str, ...]) -> tuple[Verdict, Support]:
    return (Verdict.UNSUPPORTED if reasons else Verdict.FRAME), Support((), reasons)


def _code_of_block(code: str) -> str:
    """The code without its fences and language."""
    first, *more = code.splitlines()
    first = first.lstrip("`~").strip()
    if not more:
        return first.rstrip("`~").strip()
    last = more.pop().strip()
    ends = last.lstrip("`~") if last.startswith(_FENCE) else last
    return "\n".join([*([first] if len(first.split()) > 1 else []), *more, ends]).strip()
