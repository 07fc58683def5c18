"""What stands between quotation marks must stand in a source, letter for letter.

White space, the first letter's case, the kind of quotation marks and dashes, emphasis and a full stop or
comma before the closing mark are typography; an ellipsis leaves words out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shared.types import Match

_PAIRED = re.compile(
    r"`[^`]*`|“(?P<a>[^“”]*)”|„(?P<b>[^„“”]*)[“”]|«(?P<c>[^«»]*)»|»(?P<d>[^«»]*)«|‹(?P<e>[^‹›]*)›"
    r"|「(?P<f>[^「」]*)」|『(?P<g>[^『』]*)』|(?<!\d)\"(?P<h>[^\"]*)\"|\"(?P<i>[^\"]*)\""
    r"|(?<!\w)['‘‚](?P<j>(?=\S)(?:[^'‘’‚]|(?<=\w)['’](?=\w))*)['’‘](?!\w)"
)
# A mark whose partner is in another sentence: up to here, or from here on.
_OPEN = re.compile(r"[“„«「『](?P<rest>[^”»」』]*)$|(?<!\w)\"(?P<straight>(?=\w)[^\"]*)$")
_CLOSED = re.compile(r"^(?P<rest>[^“„«「『]*)[”»」』]|^(?P<straight>[^\"]*[\w.,!?])(?<!\d)\"(?!\w)")
_QUOTES = dict.fromkeys("\"'“”„‟«»‹›‘’‚‛′″", "'")
_DASHES = dict.fromkeys("‐‑‒–—―−", "-")
_TYPOGRAPHY = str.maketrans(
    {**_QUOTES, **_DASHES, "…": "..."} | dict.fromkeys("*`\u200b\u200c\u200d\ufeff\u00ad", "")
)
_ELLIPSIS = re.compile(r"\s*[\[(]?\.\.\.[\])]?\s*")


@dataclass(frozen=True, slots=True)
class _Quotation:
    """[start, end) with its marks; `inside` without them."""

    start: int
    end: int
    inside: tuple[int, int]


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
            if found := _find(text, parts):
                return place, offsets[found[0]], offsets[found[1] - 1] + 1
        return None

    def has(self, code: str) -> bool:
        """Whether it stands somewhere by the letter, not as a part of something longer."""
        found = _whole(" ".join(code.split()))
        return any(found.search(text) for text in self._letters)

    @cached_property
    def _letters(self) -> list[str]:
        return [" ".join(f"{match.text} {match.title} {match.uri or ''}".split()) for match in self._matches]

    def is_title(self, text: str) -> bool:
        plain = _bare(_normal(text)[0]).casefold()
        return any(plain == _bare(title) for title in self._titles)

    def examine(self, text: str) -> tuple[str, list[tuple[int, int, int]], bool]:
        """The text without the marks of what is no quotation, where its quotations stand, and whether some
        lost their marks."""
        found: list[tuple[int, int, int]] = []
        lost, at = False, 0
        while (quotation := _next(text, at)) is not None:
            start, end = quotation.inside
            inside = text[start:end]
            if (place := self.find(inside)) is not None:
                found.append(place)
            elif re.search(r"\w", inside) and not self.is_title(inside):
                # What is quoted inside of it is looked at next.
                bare = text[: quotation.start] + inside.strip()
                text, at, lost = bare + text[quotation.end :], quotation.start, True
                continue
            at = quotation.end
        return text, found, lost


def _next(text: str, at: int) -> _Quotation | None:
    for found in _PAIRED.finditer(text, at):
        if found.lastgroup:
            return _Quotation(found.start(), found.end(), found.span(found.lastgroup))
    for pattern in (_OPEN, _CLOSED):
        alone = pattern.search(text, at) if pattern is _OPEN else pattern.search(text[at:])
        if alone and alone.lastgroup:
            by = 0 if pattern is _OPEN else at
            start, end = alone.span(alone.lastgroup)
            return _Quotation(alone.start() + by, alone.end() + by, (start + by, end + by))
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


def _find(text: str, parts: Sequence[str]) -> tuple[int, int] | None:
    """Where the parts stand one after the other, whole words at either end; every first place is tried."""
    if not parts:
        return None
    for first in (parts[0], parts[0][0].swapcase() + parts[0][1:]):
        for found in _whole(first).finditer(text):
            end = found.end()
            for part in parts[1:]:
                following = _whole(part).search(text, end)
                if following is None:
                    break
                end = following.end()
            else:
                return found.start(), end
    return None


def _whole(part: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if part[0].isalnum() else ""
    after = r"(?!\w)" if part[-1].isalnum() else ""
    return re.compile(before + re.escape(part) + after)
