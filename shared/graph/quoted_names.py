"""Names in quotation marks, and titles in brackets; quoted speech is no name."""

import re
from collections.abc import Iterator

from shared.graph.entity_types import kind_of
from shared.graph.mentions import Mention
from shared.graph.relation_words import WORKS, alternatives
from shared.graph.stopwords import COMMON, LOWERCASE_IN_TITLES
from shared.graph.words_and_capitals import WORD

_QUOTED = re.compile(
    "|".join(
        rf"{opening}([^\n{opening}{closing}]{{2,80}})[{closing}]"
        for opening, closing in ("《》", "〈〉", "『』", "「」", "«»", "“”", ("„", "“”"), '""')
    )
)
_TITLE_BRACKETS = "《〈『"
_WORK = re.compile(rf"\b(?:{alternatives(WORKS)}|series|episode|painting|show)s?\W{{0,3}}$", re.IGNORECASE)
_SPEECH = re.compile(r"[,.;:…。、？](?<!\w\.\w\.)$")


def quoted_names_in(text: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex or 0)
        name = text[start:end].strip()
        if not _is_name(name):
            continue
        is_work = match[0][0] in _TITLE_BRACKETS or _WORK.search(
            text, max(0, match.start() - 16), match.start()
        )
        start = text.index(name, start)
        yield Mention(start, start + len(name), name, "work" if is_work else kind_of(name))


def _is_name(text: str) -> bool:
    """Whether the text is capitalized as a name or a title, or, in a script without case, is short."""
    words = WORD.findall(text)
    if not words or _SPEECH.search(text) or (len(words) == 1 and words[0].casefold() in COMMON):
        return False
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(text) <= 40 and any(map(str.isalpha, text))
    return (
        len(words) <= 10
        and words[0][0].isupper()
        and all(not word[0].islower() or word.casefold() in LOWERCASE_IN_TITLES for word in words)
    )
