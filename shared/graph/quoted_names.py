"""Names in quotation marks, and titles in brackets; quoted speech is no name."""

import re
from collections.abc import Iterator

from shared.graph.capitalization import COMMON, WORD, is_titled
from shared.graph.entity_types import kind_of
from shared.graph.mentions import Mention

_QUOTED = re.compile(
    "|".join(
        rf"{opening}\s*([^\n{opening}{closing}]{{2,80}}?)\s*[{closing}]"
        for opening, closing in ("《》", "〈〉", "『』", "「」", "«»", "“”", ("„", "“”"), '""')
    )
)
_SPEECH = re.compile(r"[,.;:…。、？](?<!\w\.\w\.)$")


def quoted_names_in(text: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex or 0)
        if _is_name(text[start:end]):
            yield Mention(start, end, text[start:end], kind_of(text[start:end]))


def _is_name(text: str) -> bool:
    """Whether the text is capitalized as a name or a title, or, in a script without case, is short."""
    words = WORD.findall(text)
    if not words or _SPEECH.search(text) or (len(words) == 1 and words[0].casefold() in COMMON):
        return False
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(text) <= 40 and any(map(str.isalpha, text))
    return len(words) <= 10 and is_titled(words)
