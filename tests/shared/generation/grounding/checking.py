"""Checks of complete answers."""

from shared.generation.grounding.answer_check import Stream
from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import CheckResult


def checked(checker: Checker, text: str, lang: str | None = None) -> list[CheckResult]:
    stream = Stream(checker, lang)
    return [*stream.feed(text), *stream.close()]
