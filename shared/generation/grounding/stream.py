"""Checks an answer while it is being written: each sentence as soon as it is over."""

from shared.generation.grounding.checker import Checker
from shared.generation.grounding.segmenter import Cutter
from shared.generation.grounding.types import Checked


class Stream:
    """Takes a model's tokens as they come. However they are cut, what comes out is the same."""

    def __init__(self, checker: Checker, lang: str | None = None) -> None:
        self._checker = checker
        self._lang = (lang or "en").split("-")[0].lower()
        self._cutter = Cutter(self._lang)

    def feed(self, text: str) -> list[Checked]:
        """What is over with these characters: often nothing, at times several sentences."""
        self._cutter.feed(text)
        return self._over(last=False)

    def close(self) -> list[Checked]:
        """What is left. White space at the very end belongs to nothing and is dropped."""
        results = self._over(last=True)
        self._cutter = Cutter(self._lang)
        return results

    def _over(self, *, last: bool) -> list[Checked]:
        results: list[Checked] = []
        while unit := self._cutter.next(last=last):
            results.append(self._checker.check(unit.text, unit.before))
        return results


def checked(checker: Checker, text: str, lang: str | None = None) -> list[Checked]:
    """A whole answer at once."""
    stream = Stream(checker, lang)
    return [*stream.feed(text), *stream.close()]
