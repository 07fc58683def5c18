"""An answer put together from sentences that were checked: what holds is kept and numbered, the rest is left
out. Pure; sentence by sentence, so that it can be shown while it is still being written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.searched import Cited, Composed, Reference, Sentence
from shared.support.verdicts import Backing, Checked, Verdict
from shared.types import Match


@dataclass(slots=True)
class Composer:
    """Over the matches that the answer is written from. `cites`: whether numbers stand in the text."""

    matches: Sequence[Match]
    cites: bool = True
    text: str = ""
    sentences: list[Sentence] = field(default_factory=list)
    citations: list[Cited] = field(default_factory=list)
    # Why sentences were left out, a list a sentence.
    dropped: list[tuple[str, ...]] = field(default_factory=list)
    _space: str = ""

    @property
    def is_grounded(self) -> bool:
        """Whether anything that it states holds."""
        return any(sentence.references for sentence in self.sentences)

    def add(self, checked: Checked) -> str:
        """What the next sentence adds to the text: nothing where it does not hold."""
        if checked.verdict is Verdict.UNSUPPORTED:
            self.dropped.append(checked.reasons)
            # A paragraph that began with it begins with the next.
            if checked.before.count("\n") > self._space.count("\n"):
                self._space = "\n" * checked.before.count("\n")
            return ""
        before = checked.before
        if not self.text:
            before = before.lstrip()
        elif self._space.count("\n") > before.count("\n"):
            before = self._space + before.lstrip()
        self._space = ""
        references = tuple(map(self._reference, checked.backing))
        start = len(self.text) + len(before)
        self.sentences.append(Sentence(start, start + len(checked.text), references))
        numbers = dict.fromkeys(reference.number for reference in references)
        marks = "".join(f" [{number}]" for number in numbers) if self.cites else ""
        said = f"{before}{checked.text}{marks}"
        self.text += said
        return said

    def say(self, text: str) -> str:
        """Something that states nothing, as a paragraph of its own."""
        said = f"\n\n{text}" if self.text else text
        self.sentences.append(
            Sentence(len(self.text) + len(said) - len(text), len(self.text) + len(said), ())
        )
        self.text += said
        return said

    def composed(self) -> Composed:
        """All of it."""
        return Composed(self.text, tuple(self.sentences), tuple(self.citations), tuple(self.dropped))

    def _reference(self, backing: Backing) -> Reference:
        match = self.matches[backing.place]
        for cited in self.citations:
            if cited.match.chunk_id == match.chunk_id:
                return Reference(cited.number, backing.start, backing.end)
        self.citations.append(Cited(len(self.citations) + 1, match))
        return Reference(len(self.citations), backing.start, backing.end)
