"""What the check of an answer's sentence says."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """FRAME: says nothing of the world, such as a heading, or that nothing was found."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    FRAME = "frame"


@dataclass(frozen=True, slots=True)
class Evidence:
    """[start, end) of a document's text, which holds the sentence; `place`: which match's, from 0."""

    place: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Checked:
    """A sentence of an answer, as it may be shown.

    `text` has no citation markers, and quotation marks only around what is a quotation; `backing` comes best
    first; `reasons` say what is missing, by machine names; `before`: the white space and the marker of a list
    or of a quotation that lead it.
    """

    text: str
    verdict: Verdict
    backing: tuple[Evidence, ...] = ()
    reasons: tuple[str, ...] = ()
    before: str = ""
