"""Citation markers as models write them: [1], [2, 3], [^1], 【1】, (source 1). None of them is for a
reader."""

import re

_NUMBERS = r"\d{1,3}(?:\s*(?:[,;&–-]|and|und|et|y)\s*(?:sources?\s*)?\d{1,3})*"
_NOUN = r"(?:sources?|citations?|documents?|docs?|excerpts?|passages?|refs?|quellen?|fuentes?)"
MARKER = re.compile(
    rf"\[\^?{_NUMBERS}\](?!\()|【{_NUMBERS}[^】\n]{{0,30}}】|[(\[]{_NOUN}\s*[:#.]?\s*{_NUMBERS}[)\]]",
    re.IGNORECASE,
)
# So long a marker may become, while it is still being written.
LONGEST = 60
_OPENED = re.compile(r"[ \t]*[\[【(][^\]】)\n]*")
# Code keeps its brackets.
_CODE_OR_MARKER = re.compile(rf"(`[^`]*`)|\s*(?:{MARKER.pattern})", re.IGNORECASE)
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)|(\d+)")
_WIDEST = 20


def without(text: str) -> tuple[str, tuple[int, ...]]:
    """The text without its markers, and the numbers that they name, each once."""
    named: list[int] = []

    def taken(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        named.extend(_numbers(found[0]))
        return ""

    rest = _CODE_OR_MARKER.sub(taken, text)
    return rest, tuple(dict.fromkeys(named))


def _numbers(marker: str) -> list[int]:
    # What follows a dagger is a place in the source, not its number.
    told: list[int] = []
    for first, last, alone in _RANGE.findall(marker.split("†", 1)[0]):
        low, high = int(first or alone), int(last or alone)
        told += range(low, high + 1) if low <= high < low + _WIDEST else [low, high]
    return told


def end_of_markers(text: str, start: int) -> int:
    """Where the markers end that follow there directly or after spaces: `start` where none does."""
    end = start
    while found := MARKER.match(text, re.compile(r"[ \t]*").match(text, end).end()):  # type: ignore[union-attr]
        end = found.end()
    return end


def may_be_marker(text: str, start: int) -> bool:
    """Whether what stands there to the text's end may yet turn out to be a marker."""
    found = _OPENED.match(text, start)
    return found is not None and found.end() == len(text) and len(text) - start < LONGEST
