"""Whether a sentence of an answer stands in the passages that it was written from, told by their words.

It is compared with every one to three sentences in a row of each passage: how much of what it says they hold,
rare words counting more; and then its numbers, dates, identifiers and addresses, its names, what it denies
and its quotations must be theirs too. A sentence may draw on two places.

What words cannot tell is not seen: a relation of words that all occur (who did what to whom beyond two names
around one verb, cause and effect turned round), an unlisted opposite, a stress, what a pronoun stands for. An
answer in another language than its sources shares no words with them and is unsupported, apart from names and
numbers, quotations aside: they are compared as they are.
"""

import re
from collections.abc import Sequence

from shared.generation.grounding import citation_markers, markup, meta_sentences
from shared.generation.grounding.coverage import (
    LIMITS,
    Claim,
    Judged,
    Limits,
    claim_of,
    contradictions,
    judge,
)
from shared.generation.grounding.evidence_windows import Passages, letter_for_letter
from shared.generation.grounding.quotations import Quotations
from shared.generation.grounding.types import Checked, Evidence, Verdict
from shared.types import Match

MAX_BACKING = 3
# That so many words in one place are not told of is only so where they are.
TOLD_AT_LEAST = 3
_TO_THE_LETTER = Limits(alone=1.0, together=1.0, from_afar=1.0)
_LEAD = re.compile(r"\s*(?:>[ \t]*)*")
_HEADING = re.compile(r"(?:^|\n)[ \t]*#{1,6}[ \t]+$")
_FENCE = ("```", "~~~")


class Checker:
    """Checks sentences against these matches, which it reads once. Not for several threads at a time."""

    def __init__(self, matches: Sequence[Match], limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._matches = matches
        self._passages = Passages(matches)
        self._quotations = Quotations(matches)

    def check(self, sentence: str, before: str = "") -> Checked:
        """One sentence, table row or block of code. `before` is what led it: a list's marker or a ">"."""
        lead = _LEAD.match(sentence)
        assert lead is not None  # noqa: S101  # it also matches nothing
        before, code = before + lead.group(), sentence[lead.end() :].startswith(_FENCE)
        sentence = sentence[lead.end() :].rstrip()
        text = sentence if code else markup.plain(citation_markers.without(sentence)).strip()
        if not re.search(r"\w", text):
            return Checked(text, Verdict.FRAME, before=before)
        if not code and markup.has_picture(text):
            return Checked(text, Verdict.UNSUPPORTED, (), ("picture",), before)
        if exact_window := self._passages.exact.get(letter_for_letter(text)):
            return Checked(text, Verdict.SUPPORTED, (exact_window.backing,), (), before)
        if code:
            return self._code(text, before)
        quoted = ">" in before
        place = self._quotations.find(text) if quoted else None
        if place is not None:
            return Checked(text, Verdict.SUPPORTED, (self._backing(place),), (), before)
        if quoted:
            before = re.sub(r"> ?", "", before)
        text, places, is_missing = self._quotations.examine(text)
        verdict, judged = self._judge(text, heading=_HEADING.search(before) is not None)
        backing = [window.backing for window in judged.windows]
        if verdict is Verdict.SUPPORTED:
            backed_places = {item.place for item in backing}
            backing += [self._backing(place) for place in places if place[0] not in backed_places]
        reasons = (*(["quotation_not_found"] if is_missing or quoted else []), *judged.reasons)
        if verdict is Verdict.FRAME and (is_missing or quoted):
            verdict = Verdict.UNSUPPORTED
        return Checked(text, verdict, tuple(backing[:MAX_BACKING]), reasons, before)

    def _judge(self, text: str, *, heading: bool) -> tuple[Verdict, Judged]:
        plain = meta_sentences.without_emphasis(text)
        claim = claim_of(plain)
        missing_literals = self._missing_literals(text)
        unheard_of = (*self._unheard_of(claim), *missing_literals)
        if meta_sentences.says_nothing_at_all(plain):
            return _framed(unheard_of)
        if (rest := meta_sentences.nothing_found(plain)) is not None:
            return _framed(unheard_of or self._told_after_all(rest))
        in_sources = claim.stems <= self._passages.stems | meta_sentences.ABOUT_ANSWERS
        if meta_sentences.asks(plain) and not in_sources:
            return _framed((*unheard_of, "too_little_in_common"))
        if in_sources and (meta_sentences.asks(plain) or meta_sentences.labels(text, heading=heading)):
            return _framed(unheard_of or contradictions(claim, self._passages))
        judged = judge(claim, self._passages, self._limits)
        if missing_literals:
            judged = Judged((), (*judged.reasons, *missing_literals))
        return (Verdict.UNSUPPORTED if judged.reasons else Verdict.SUPPORTED), judged

    def _unheard_of(self, claim: Claim) -> tuple[str, ...]:
        """What a heading or a lead-in may not bring up: a fact or a name of which no passage tells."""
        reasons = []
        if any(not fact.soft and not fact.accepted & self._passages.forms for fact in claim.facts):
            reasons.append("number_not_found")
        if any(name not in self._passages.names for name in claim.names):
            reasons.append("name_not_found")
        return tuple(reasons)

    def _missing_literals(self, text: str) -> tuple[str, ...]:
        """Of what must stand in a source by the letter, what does not: code, where links lead to."""
        reasons = []
        if not all(map(self._quotations.has, markup.code_in(text))):
            reasons.append("code_not_found")
        if not all(map(self._quotations.has, markup.targets(text))):
            reasons.append("link_not_found")
        return tuple(reasons)

    def _told_after_all(self, rest: str) -> tuple[str, ...]:
        """What is said not to be told, and is."""
        claim = claim_of(rest)
        if len(claim.stems) < TOLD_AT_LEAST or judge(claim, self._passages, _TO_THE_LETTER).reasons:
            return ()
        return ("negation",)

    def _code(self, text: str, before: str) -> Checked:
        """Code is there as a whole, or not."""
        inside = _inside(text)
        place = self._quotations.find(inside)
        if not re.search(r"\w", inside):
            return Checked(text, Verdict.FRAME, before=before)
        if place is None:
            return Checked(text, Verdict.UNSUPPORTED, (), ("code_not_found",), before)
        return Checked(text, Verdict.SUPPORTED, (self._backing(place),), (), before)

    def _backing(self, place: tuple[int, int, int]) -> Evidence:
        number, start, end = place
        begin = self._matches[number].span[0]
        return Evidence(number, begin + start, begin + end)


def _framed(reasons: tuple[str, ...]) -> tuple[Verdict, Judged]:
    return (Verdict.UNSUPPORTED if reasons else Verdict.FRAME), Judged((), reasons)


def _inside(code: str) -> str:
    """A block without its fences and the name of its language."""
    first, *more = code.splitlines()
    first = first.lstrip("`~").strip()
    if not more:
        return first.rstrip("`~").strip()
    last = more.pop().strip()
    ends = last.lstrip("`~") if last.startswith(_FENCE) else last
    return "\n".join([*([first] if len(first.split()) > 1 else []), *more, ends]).strip()
