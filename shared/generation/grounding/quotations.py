"""What stands between quotation marks must stand in a source, letter for letter.

White space, the first letter's case, the kind of quotation marks and dashes, emphasis and a full stop or
comma before the closing mark are typography; an ellipsis leaves words out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from shared.generation.grounding.negation import denies
from shared.types import Match

_PAIRED = re.compile(
    r"`[^`]*`|“(?P<a>[^“”]*)”|„(?P<b>[^„“”]*)[“”]|«(?P<c>[^«»]*)»|»(?P<d>[^«»]*)«|‹(?P<e>[^‹›]*)›"
    r"|›(?P<k>[^‹›]*)‹|《(?P<l>[^《》]*)》||「(?P<f>[^「」]*)」|『(?P<g>[^『』]*)』|(?<!\d)\"(?P<h>[^\"]*)\"|\"(?P<i>[^\"]*)\""
    r"|(?<!\w)['‘‚](?P<j>(?=\S)(?:[^'‘’‚]|(?<=\w)['’](?=\w))*)['’‘](?!\w)"
)
# A mark whose partner is in another sentence: up to here, or from here on.
_OPEN = re.compile(r"[“„«‹「『《](?P<rest>[^”»›」』》]*)$|(?<!\w)\"(?P<straight>(?=\w)[^\"]*)$")
_CLOSED = re.compile(r"^(?P<rest>[^“„«‹「『《]*)[”»›」』》]|^(?P<straight>[^\"]*[\w.,!?])(?<!\d)\"(?!\w)")
_QUOTES = dict.fromkeys("\"'“”„‟«»‹›‘’‚‛′″", "'")
_DASHES = dict.fromkeys("‐‑‒–—―−", "-")
_TYPOGRAPHY = str.maketrans(
    {**_QUOTES, **_DASHES, "…": "..."} | dict.fromkeys("*`\u200b\u200c\u200d\ufeff\u00ad", "")
)
# What may not lie between the parts of a quotation that leaves words out: what would deny them, more than the
# end of one sentence.
_SENTENCE_ENDS = re.compile(r"[.!?।؟۔][\"'”’»)\]*_]*(?=\s|$)|[。！？]|\n\s*\n|\n\s*[-*#|>\d]")
_LONGEST_GAP = 400
_PASSES = 30
_ELLIPSIS = re.compile(r"\s*[\[(]?\.\.\.[\])]?\s*")


@dataclass(frozen=True, slots=True)
class _Quotation:
    """[start, end) with its marks; `inside` without them; `whole`: whether both are there."""

    start: int
    end: int
    inside: tuple[int, int]
    whole: bool


class Quotations:
    """The sources' texts, as quotations are looked up in them."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._matches = matches

    @cached_property
    def _texts(self) -> list[tuple[str, list[int]]]:
        return [_normal(match.text) for match in self._matches]

    @cached_property
    def _titles(self) -> list[str]:
        return [_normal(match.title)[0].strip().casefold() for match in self._matches]

    def find(self, quotation: str) -> tuple[int, int, int] | None:
        """(place of the match, start, end in its text), or None where no match has it."""
        parts = [part for part in map(_bare, _ELLIPSIS.split(_normal(quotation)[0])) if part]
        for place, (text, offsets) in enumerate(self._texts):
            for spans in _placed(text, parts):
                originals = [(offsets[start], offsets[end - 1] + 1) for start, end in spans]
                gaps = [self._matches[place].text[one[1] : other[0]] for one, other in pairwise(originals)]
                if all(map(_may_be_left_out, gaps)):
                    return place, originals[0][0], originals[-1][1]
        return None

    def has(self, code: str) -> bool:
        """Whether it stands somewhere by the letter, not as a part of something longer."""
        pattern = _whole(" ".join(code.split()))
        return any(pattern.search(text) for text in self._letters)

    @cached_property
    def _letters(self) -> list[str]:
        return [" ".join(f"{match.text} {match.title} {match.uri or ''}".split()) for match in self._matches]

    def is_title(self, text: str) -> bool:
        plain = _bare(_normal(text)[0]).casefold()
        return any(plain == _bare(title) for title in self._titles)

    def examine(self, text: str) -> tuple[str, list[tuple[int, int, int]], bool]:
        """The text without the marks of what is no quotation, where its quotations stand, and whether some
        lost their marks. What has lost some is looked at again: others may have been around them."""
        text, places, is_missing = self._examine(text)
        for _ in range(_PASSES):
            rest, places, more = self._examine(text)
            if not more:
                break
            text, is_missing = rest, True
        return text, places, is_missing

    def _examine(self, text: str) -> tuple[str, list[tuple[int, int, int]], bool]:
        places: list[tuple[int, int, int]] = []
        is_missing, at = False, 0
        while (quotation := _next(text, at)) is not None:
            start, end = quotation.inside
            inside = text[start:end]
            place = self.find(inside) if quotation.whole else None
            if place is not None:
                places.append(place)
            elif not quotation.whole or (re.search(r"\w", inside) and not self.is_title(inside)):
                # What is quoted inside of it is looked at next.
                bare = text[: quotation.start] + inside.strip()
                text, at, is_missing = bare + text[quotation.end :], quotation.start, True
                continue
            at = quotation.end
        return text, places, is_missing


def _next(text: str, at: int) -> _Quotation | None:
    for match in _PAIRED.finditer(text, at):
        if match.lastgroup:
            return _Quotation(match.start(), match.end(), match.span(match.lastgroup), True)
    for pattern in (_OPEN, _CLOSED):
        alone = pattern.search(text, at) if pattern is _OPEN else pattern.search(text[at:])
        if alone and alone.lastgroup:
            by = 0 if pattern is _OPEN else at
            start, end = alone.span(alone.lastgroup)
            return _Quotation(alone.start() + by, alone.end() + by, (start + by, end + by), False)
    return None


def _normal(text: str) -> tuple[str, list[int]]:
    """The text without its typography, and where each of its characters came from."""
    characters: list[str] = []
    offsets: list[int] = []
    for place, character in enumerate(text):
        plain = " " if character.isspace() else character.translate(_TYPOGRAPHY)
        if plain == " " and characters[-1:] in ([], [" "]):
            continue
        characters += plain
        offsets += [place] * len(plain)
    return "".join(characters), offsets


def _bare(text: str) -> str:
    return text.strip().strip("'").strip().rstrip(".,;:!?").strip()


def _may_be_left_out(gap: str) -> bool:
    """One sentence's end, where what follows begins the next; nothing that denies."""
    ends = list(_SENTENCE_ENDS.finditer(gap))
    begins = len(ends) <= 1 and not (ends and gap[ends[-1].end() :].strip(" \t\n\"'“„«*_-"))
    return begins and len(gap) <= _LONGEST_GAP and not denies(gap)


def _placed(text: str, parts: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
    """Where the parts stand one after the other, whole words at either end; every first place is tried."""
    if not parts:
        return
    for first in (parts[0], parts[0][0].swapcase() + parts[0][1:]):
        for match in _whole(first).finditer(text):
            spans = [match.span()]
            for part in parts[1:]:
                following = _whole(part).search(text, spans[-1][1])
                if following is None:
                    break
                spans.append(following.span())
            else:
                yield spans


def _whole(part: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if part[0].isalnum() else ""
    after = r"(?!\w)" if part[-1].isalnum() else ""
    return re.compile(before + re.escape(part) + after)
