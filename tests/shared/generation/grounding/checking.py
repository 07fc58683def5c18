"""Checks of complete answers."""

from shared.generation.grounding.sentence_checker import Checker, StreamChecker
from shared.generation.grounding.types import CheckResult


def checked(checker: Checker, text: str, lang: str | None = None) -> list[CheckResult]:
    stream = StreamChecker(checker, lang)
    return [*stream.feed(text), *stream.close()]
