"""Sentences of a model's answer that its passages do not support."""

from collections.abc import Sequence

from shared.generation.grounding.checker import Checker
from shared.generation.grounding.stream import Stream
from shared.generation.grounding.types import Verdict
from shared.types import Match


def unsupported_sentences(text: str, matches: Sequence[Match]) -> tuple[str, ...]:
    """In order, as the answer writes them but for citation marks."""
    stream = Stream(Checker(matches), matches[0].lang if matches else None)
    return tuple(
        checked.text
        for checked in (*stream.feed(text), *stream.close())
        if checked.verdict is Verdict.UNSUPPORTED
    )
