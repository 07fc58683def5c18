"""An answer put together from sentences that were checked: what holds is kept and numbered, the rest is left
out. Pure; sentence by sentence, so that it can be shown while it is still being written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.answering.cited.types import ComposedAnswer, NumberedCitation, Reference, Sentence
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from shared.text.citations import with_marks
from shared.types import Match


@dataclass(slots=True)
class Composer:
    """Over the matches that the answer is written from. `cites`: whether numbers stand in the text. What
    states nothing waits for something that holds: alone it is no answer."""

    matches: Sequence[Match]
    cites: bool = True
    text: str = ""
    sentences: list[Sentence] = field(default_factory=list)
    citations: list[NumberedCitation] = field(default_factory=list)
    # Why sentences were left out, a list a sentence.
    dropped: list[tuple[str, ...]] = field(default_factory=list)
    is_grounded: bool = False
    _waiting: list[CheckResult] = field(default_factory=list)
    _space: str = ""

    def add(self, checked: CheckResult) -> str:
        """What the next sentence adds to the text: nothing where it does not hold."""
        if checked.verdict is Verdict.UNSUPPORTED:
            self.dropped.append(checked.reasons)
            # A paragraph that began with it begins with the next.
            if checked.before.count("\n") > self._space.count("\n"):
                self._space = "\n" * checked.before.count("\n")
            return ""
        if not self.is_grounded and checked.verdict is Verdict.FRAME:
            self._waiting.append(checked)
            return ""
        self.is_grounded = True
        waiting, self._waiting = self._waiting, []
        return "".join(map(self._write, (*waiting, checked)))

    def say(self, text: str) -> str:
        """Something that states nothing, in the place of an answer."""
        self.sentences.append(Sentence(0, len(text), ()))
        self.text = text
        return text

    def composed(self) -> ComposedAnswer:
        """All of it."""
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
        shown, rest = with_marks(checked.text, list(numbers) if self.cites else [])
        start = len(self.text) + len(before)
        self.sentences.append(Sentence(start, start + len(shown), references))
        said = f"{before}{shown}{rest}"
        self.text += said
        return said

    def _reference(self, evidence: Evidence) -> Reference:
        match = self.matches[evidence.match_index]
        for cited in self.citations:
            if cited.match.chunk_id == match.chunk_id:
                return Reference(cited.number, evidence.start, evidence.end)
        self.citations.append(NumberedCitation(len(self.citations) + 1, match))
        return Reference(len(self.citations), evidence.start, evidence.end)
