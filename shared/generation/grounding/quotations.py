"""Quotations of an answer, which a source must contain literally.

White space, the case of the first letter, the kind of quotation marks and dashes, emphasis and punctuation
before the closing mark do not count. An ellipsis omits words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from shared.generation.grounding.negation import has_negation
from shared.types import Match

_PAIRED = re.compile(
    r"`[^`]*`|“(?P<a>[^“”]*)”|„(?P<b>[^„“”]*)[“”]|«(?P<c>[^«»]*)»|»(?P<d>[^«»]*)«|‹(?P<e>[^‹›]*)›"
    r"|›(?P<k>[^‹›]*)‹|《(?P<l>[^《》]*)》||「(?P<f>[^「」]*)」|『(?P<g>[^『』]*)』|(?<!\d)\"(?P<h>[^\"]*)\"|\"(?P<i>[^\"]*)\""
    r"|(?<!\w)['‘‚](?P<j>(?=\S)(?:[^'‘’‚]|(?<=\w)['’](?=\w))*)['’‘](?!\w)"
)
# A mark whose partner is in another sentence.
_OPEN = re.compile(r"[“„«‹「『《](?P<rest>[^”»›」』》]*)$|(?<!\w)\"(?P<straight>(?=\w)[^\"]*)$")
_CLOSED = re.compile(r"^(?P<rest>[^“„«‹「『《]*)[”»›」』》]|^(?P<straight>[^\"]*[\w.,!?])(?<!\d)\"(?!\w)")
_QUOTES = dict.fromkeys("\"'“”„‟«»‹›‘’‚‛′″", "'")
_DASHES = dict.fromkeys("‐‑‒–—―−", "-")
_TYPOGRAPHY = str.maketrans(
    {**_QUOTES, **_DASHES, "…": "..."} | dict.fromkeys("*`\u200b\u200c\u200d\ufeff\u00ad", "")
)
# An ellipsis omits the end of one sentence at most.
_SENTENCE_ENDS = re.compile(r"[.!?।؟۔][\"'”’»)\]*_]*(?=\s|$)|[。！？]|\n\s*\n|\n\s*[-*#|>\d]")
_MAX_GAP = 400
_PASSES = 30
_ELLIPSIS = re.compile(r"\s*[\[(]?\.\.\.[\])]?\s*")


@dataclass(frozen=True, slots=True)
class _Quotation:
    """The span [start, end) with its marks, and `inside` without them. A complete one has both marks."""

    start: int
    end: int
    inside: tuple[int, int]
    is_complete: bool


class Quotations:
    """The texts and titles of the sources, in which quotations are searched."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._matches = matches

    @cached_property
    def _texts(self) -> list[tuple[str, list[int]]]:
        return [_normal(match.text) for match in self._matches]

    @cached_property
    def _titles(self) -> list[str]:
        return [_normal(match.title)[0].strip().casefold() for match in self._matches]

    def find(self, quotation: str) -> tuple[int, int, int] | None:
        """(index of the match, start, end in its text); None for a quotation that no match has."""
        parts = [part for part in map(_stripped, _ELLIPSIS.split(_normal(quotation)[0])) if part]
        for location, (text, offsets) in enumerate(self._texts):
            for spans in _occurrences(text, parts):
                originals = [(offsets[start], offsets[end - 1] + 1) for start, end in spans]
                gaps = [self._matches[location].text[one[1] : other[0]] for one, other in pairwise(originals)]
                if all(map(_may_be_omitted, gaps)):
                    return location, originals[0][0], originals[-1][1]
        return None

    def has(self, code: str) -> bool:
        """Whether a source contains the code literally, as whole words."""
        pattern = _whole_words(" ".join(code.split()))
        return any(pattern.search(text) for text in self._letters)

    @cached_property
    def _letters(self) -> list[str]:
        return [
            " ".join(f"{match.text} {match.title} {match.uri or ''} {match.table_header}".split())
            for match in self._matches
        ]

    def is_title(self, text: str) -> bool:
        plain = _stripped(_normal(text)[0]).casefold()
        return any(plain == _stripped(title) for title in self._titles)

    def examine(self, text: str) -> tuple[str, list[tuple[int, int, int]], bool]:
        """The text without the marks of false quotations, the locations of the true ones, and whether marks
        were removed. Removal repeats, since false quotations may be nested."""
        text, locations, is_missing = self._examine(text)
        for _ in range(_PASSES):
            rest, locations, more = self._examine(text)
            if not more:
                break
            text, is_missing = rest, True
        return text, locations, is_missing

    def _examine(self, text: str) -> tuple[str, list[tuple[int, int, int]], bool]:
        locations: list[tuple[int, int, int]] = []
        is_missing, at = False, 0
        while (quotation := _next(text, at)) is not None:
            start, end = quotation.inside
            inside = text[start:end]
            location = self.find(inside) if quotation.is_complete else None
            if location is not None:
                locations.append(location)
            elif not quotation.is_complete or (re.search(r"\w", inside) and not self.is_title(inside)):
                # Next come quotations inside this one.
                stripped = text[: quotation.start] + inside.strip()
                text, at, is_missing = stripped + text[quotation.end :], quotation.start, True
                continue
            at = quotation.end
        return text, locations, is_missing


def _next(text: str, at: int) -> _Quotation | None:
    for pair in _PAIRED.finditer(text, at):
        if pair.lastgroup:
            return _Quotation(pair.start(), pair.end(), pair.span(pair.lastgroup), True)
    for mark, offset in ((_OPEN.search(text, at), 0), (_CLOSED.search(text[at:]), at)):
        if mark and mark.lastgroup:
            start, end = mark.span(mark.lastgroup)
            inside = (start + offset, end + offset)
            return _Quotation(mark.start() + offset, mark.end() + offset, inside, False)
    return None


def _normal(text: str) -> tuple[str, list[int]]:
    """The text without typography, and the original index of each of its characters."""
    characters: list[str] = []
    offsets: list[int] = []
    for location, character in enumerate(text):
        plain = " " if character.isspace() else character.translate(_TYPOGRAPHY)
        if plain == " " and characters[-1:] in ([], [" "]):
            continue
        characters += plain
        offsets += [location] * len(plain)
    return "".join(characters), offsets


def _stripped(text: str) -> str:
    return text.strip().strip("'").strip().rstrip(".,;:!?").strip()


def _may_be_omitted(gap: str) -> bool:
    """Whether an ellipsis may omit this: at most the end of one sentence, and no negation."""
    ends = list(_SENTENCE_ENDS.finditer(gap))
    begins = len(ends) <= 1 and not (ends and gap[ends[-1].end() :].strip(" \t\n\"'“„«*_-"))
    return begins and len(gap) <= _MAX_GAP and not has_negation(gap)


def _occurrences(text: str, parts: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
    """The occurrences of all parts in order, as whole words, for each occurrence of the first part."""
    if not parts:
        return
    for first in (parts[0], parts[0][0].swapcase() + parts[0][1:]):
        for match in _whole_words(first).finditer(text):
            spans = [match.span()]
            for part in parts[1:]:
                following = _whole_words(part).search(text, spans[-1][1])
                if following is None:
                    break
                spans.append(following.span())
            else:
                yield spans


def _whole_words(part: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if part[0].isalnum() else ""
    after = r"(?!\w)" if part[-1].isalnum() else ""
    return re.compile(before + re.escape(part) + after)
