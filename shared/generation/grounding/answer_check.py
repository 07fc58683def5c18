"""Check of an answer, whole or streamed: each sentence as soon as it is complete."""

from collections.abc import Sequence

from shared.generation.grounding.answer_segmenter import Segmenter
from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import CheckResult
from shared.types import Match


class Stream:
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
    stream = Stream(Checker(matches), matches[0].lang if matches else None)
    return [*stream.feed(text), *stream.close()]
