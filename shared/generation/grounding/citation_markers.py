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
_OPENED = re.compile(r"[ \t]{0,8}(?:\[[^\]\n]*|【[^】\n]*|\([^)\n]*)")
_SPACES = re.compile(r"[ \t]{0,8}")
# Nobody writes more of them behind one sentence.
_MOST = 20
# Code keeps its brackets.
_CODE_OR_MARKER = re.compile(rf"(`[^`]*`)|\s*(?:{MARKER.pattern})", re.IGNORECASE)


def without(text: str) -> str:
    """The text without its markers."""
    return _CODE_OR_MARKER.sub(lambda match: match[1] or "", text)


def end_of_markers(text: str, start: int) -> int:
    """Where the markers end that follow there directly or after spaces: `start` where none does."""
    end = start
    for _ in range(_MOST):
        spaces = _SPACES.match(text, end)
        marker = MARKER.match(text, spaces.end() if spaces else end)
        if marker is None or marker.end() - end > LONGEST:
            break
        end = marker.end()
    return end


def may_be_marker(text: str, start: int) -> bool:
    """Whether what stands there to the text's end may yet turn out to be a marker."""
    match = _OPENED.match(text, start)
    return match is not None and match.end() == len(text) and len(text) - start < LONGEST
