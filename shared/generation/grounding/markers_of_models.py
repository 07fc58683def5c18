"""Citation markers that models write: [1], [2, 3], [^1], 【1】, (source 1)."""

import re

_NUMBERS = r"\d{1,3}(?:\s*(?:[,;&–-]|and|und|et|y)\s*(?:sources?\s*)?\d{1,3})*"
_NOUN = r"(?:sources?|citations?|documents?|docs?|excerpts?|passages?|refs?|quellen?|fuentes?)"
MARKER = re.compile(
    rf"\[\^?{_NUMBERS}\](?!\()|【{_NUMBERS}[^】\n]{{0,30}}】|[(\[]{_NOUN}\s*[:#.]?\s*{_NUMBERS}[)\]]",
    re.IGNORECASE,
)
# The longest incomplete marker.
MAX_MARKER = 60
_OPENED = re.compile(r"[ \t]{0,8}(?:\[[^\]\n]*|【[^】\n]*|\([^)\n]*)")
_SPACES = re.compile(r"[ \t]{0,8}")
# The limit of markers behind one sentence.
_MAX_MARKERS = 20
# Code keeps its brackets.
_CODE_OR_MARKER = re.compile(rf"(`[^`]*`)|\s*(?:{MARKER.pattern})", re.IGNORECASE)


def without_markers(text: str) -> str:
    """The text without its markers."""
    return _CODE_OR_MARKER.sub(lambda match: match[1] or "", text)


def end_of_markers(text: str, start: int) -> int:
    """The end of the markers that follow directly or after spaces; `start` where none follows."""
    end = start
    for _ in range(_MAX_MARKERS):
        spaces = _SPACES.match(text, end)
        marker = MARKER.match(text, spaces.end() if spaces else end)
        if marker is None or marker.end() - end > MAX_MARKER:
            break
        end = marker.end()
    return end


def may_be_marker(text: str, start: int) -> bool:
    """Whether the rest of the text may be the beginning of a marker."""
    match = _OPENED.match(text, start)
    return match is not None and match.end() == len(text) and len(text) - start < MAX_MARKER
