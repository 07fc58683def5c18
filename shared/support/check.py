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

from shared.support import markers
from shared.support.coverage import LIMITS, Claim, Judged, Limits, claim_of, judge
from shared.support.frames import frames
from shared.support.passages import Passages, letter_for_letter
from shared.support.quotations import Quotations
from shared.support.verdicts import Backing, Checked, Verdict
from shared.types import Match

MAX_BACKING = 3
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
        text = sentence if code else markers.without(sentence).strip()
        if not re.search(r"\w", text):
            return Checked(text, Verdict.FRAME, before=before)
        if found := self._passages.exact.get(letter_for_letter(text)):
            return Checked(text, Verdict.SUPPORTED, (found.backing,), (), before)
        if code:
            return self._code(text, before)
        quoted = ">" in before
        place = self._quotations.find(text) if quoted else None
        if place is not None:
            return Checked(text, Verdict.SUPPORTED, (self._backing(place),), (), before)
        if quoted:
            before = re.sub(r"> ?", "", before)
        text, places, lost = self._quotations.examine(text)
        verdict, judged = self._judge(text, heading=_HEADING.search(before) is not None)
        backing = [window.backing for window in judged.windows]
        if verdict is Verdict.SUPPORTED:
            held = {item.place for item in backing}
            backing += [self._backing(place) for place in places if place[0] not in held]
        reasons = (*(["quotation_not_found"] if lost or quoted else []), *judged.reasons)
        if verdict is Verdict.FRAME and (lost or quoted):
            verdict = Verdict.UNSUPPORTED
        return Checked(text, verdict, tuple(backing[:MAX_BACKING]), reasons, before)

    def _judge(self, text: str, *, heading: bool) -> tuple[Verdict, Judged]:
        claim = claim_of(text)
        if frames(text, heading=heading):
            missing = self._unheard_of(claim)
            return (Verdict.UNSUPPORTED if missing else Verdict.FRAME), Judged((), missing)
        judged = judge(claim, self._passages, self._limits)
        return (Verdict.UNSUPPORTED if judged.reasons else Verdict.SUPPORTED), judged

    def _unheard_of(self, claim: Claim) -> tuple[str, ...]:
        """What a heading or a lead-in may not bring up: a fact or a name of which no passage tells."""
        facts = frozenset().union(*(passage.forms for passage in self._passages.all))
        names = frozenset().union(*(passage.names for passage in self._passages.all))
        reasons = []
        if any(not fact.soft and not fact.accepted & facts for fact in claim.facts):
            reasons.append("number_not_found")
        if any(name not in names for name in claim.names):
            reasons.append("name_not_found")
        return tuple(reasons)

    def _code(self, text: str, before: str) -> Checked:
        """Code is there as a whole, or not."""
        inside = _inside(text)
        place = self._quotations.find(inside)
        if not re.search(r"\w", inside):
            return Checked(text, Verdict.FRAME, before=before)
        if place is None:
            return Checked(text, Verdict.UNSUPPORTED, (), ("code_not_found",), before)
        return Checked(text, Verdict.SUPPORTED, (self._backing(place),), (), before)

    def _backing(self, place: tuple[int, int, int]) -> Backing:
        number, start, end = place
        begin = self._matches[number].span[0]
        return Backing(number, begin + start, begin + end)


def _inside(code: str) -> str:
    """A block without its fences and the name of its language."""
    first, *more = code.splitlines()
    first = first.lstrip("`~").strip()
    if not more:
        return first.rstrip("`~").strip()
    last = more.pop().strip()
    ends = last.lstrip("`~") if last.startswith(_FENCE) else last
    return "\n".join([*([first] if len(first.split()) > 1 else []), *more, ends]).strip()
