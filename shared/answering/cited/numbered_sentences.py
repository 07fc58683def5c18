"""The supported sentences of an answer, with citations numbered by first use; others are removed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.answering.cited.types import CitedSentence, ComposedAnswer, NumberedCitation, Reference
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from shared.text.citation_marks import with_marks
from shared.types import Match


@dataclass(slots=True)
class Composer:
    """`cites`: the text has the numbers of citations. Sentences that state nothing wait for a supported one:
    alone they are no answer."""

    matches: Sequence[Match]
    cites: bool = True
    text: str = ""
    sentences: list[CitedSentence] = field(default_factory=list)
    citations: list[NumberedCitation] = field(default_factory=list)
    # The reasons of each dropped sentence.
    dropped: list[tuple[str, ...]] = field(default_factory=list)
    is_grounded: bool = False
    _pending: list[CheckResult] = field(default_factory=list)
    _space: str = ""

    def add(self, checked: CheckResult) -> str:
        """The text that the next sentence adds: empty if it is unsupported."""
        if checked.verdict is Verdict.UNSUPPORTED:
            self.dropped.append(checked.reasons)
            # A dropped sentence leaves the beginning of its paragraph to the next one.
            if checked.before.count("\n") > self._space.count("\n"):
                self._space = "\n" * checked.before.count("\n")
            return ""
        if not self.is_grounded and checked.verdict is Verdict.FRAME:
            self._pending.append(checked)
            return ""
        self.is_grounded = True
        pending, self._pending = self._pending, []
        return "".join(map(self._write, (*pending, checked)))

    def write_note(self, text: str) -> str:
        """The addition of a paragraph of our own, such as a refusal, without citations."""
        addition = f"\n\n{text}" if self.text else text
        self.text += addition
        self.sentences.append(CitedSentence(len(self.text) - len(text), len(self.text), ()))
        self._space = "\n\n"
        return addition

    def answer(self) -> ComposedAnswer:
        return ComposedAnswer(self.text, tuple(self.sentences), tuple(self.citations), tuple(self.dropped))

    def _write(self, checked: CheckResult) -> str:
        before = checked.before
        if not self.text:
            before = before.lstrip()
        elif self._space.count("\n") > before.count("\n"):
            before = self._space + before.lstrip()
        self._space = ""
        references = tuple(map(self._reference, checked.evidence))
        numbers = dict.fromkeys(reference.number for reference in references)
        text, rest = with_marks(checked.text, list(numbers) if self.cites else [])
        start = len(self.text) + len(before)
        self.sentences.append(CitedSentence(start, start + len(text), references))
        addition = f"{before}{text}{rest}"
        self.text += addition
        return addition

    def _reference(self, evidence: Evidence) -> Reference:
        match = self.matches[evidence.match_index]
        numbers = {citation.match.chunk_id: citation.number for citation in self.citations}
        number = numbers.get(match.chunk_id, len(self.citations) + 1)
        if number > len(self.citations):
            self.citations.append(NumberedCitation(number, match))
        return Reference(number, match, evidence.start, evidence.end)
