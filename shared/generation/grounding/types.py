"""Result of checking a sentence of an answer."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """FRAME: a sentence without an assertion, such as a heading, or that nothing was found."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    FRAME = "frame"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The span [start, end) of a document's text that supports a sentence; the index of its match, from 0."""

    match_index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A sentence as it may be shown: without citation markers, with quotation marks only around quotations.
    The best evidence comes first. `reasons` are codes. `before`: white space and marker before the text."""

    text: str
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    reasons: tuple[str, ...] = ()
    before: str = ""
