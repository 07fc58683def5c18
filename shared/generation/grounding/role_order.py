"""Who did what to whom, as far as the order of two names around a word tells it."""

import re
from itertools import pairwise

from shared.generation.grounding.terms import content, says_nothing, words_of
from shared.text.identifiers import whole

_CAPITAL = r"[A-ZÄÖÜÀ-Þ][^\W\d_]*"
# An article or a preposition that begins the sentence is none of the name.
_OPENER = r"(?:The|An?|Die|Der|Das|Les?|La|In|On|At|By) "
_NAME = re.compile(
    rf"(?:(?<=The )|(?<=Die )|(?<=Der )|(?<!\w)(?!{_OPENER}))(?!{_OPENER}){_CAPITAL}(?:[ -]{_CAPITAL})*"
)
# By whom: the order is turned round.
_PASSIVE = re.compile(r"\b(?:by|von|durch|par|por)\b", re.IGNORECASE)
# What goes both ways.
_MUTUAL = content(
    words_of("met meets married marries married equals joined differs resembles borders beside")
)


def swapped(sentence: str, source: str) -> bool:
    """Whether two names that follow each other in the sentence stand the other way round about the same word
    in its source. Precise rather than complete: pronouns and common nouns are not looked at."""
    names = [match for match in _NAME.finditer(sentence) if not says_nothing(match.group().casefold())]
    return any(
        _turned(sentence[one.end() : other.start()], one.group(), other.group(), source)
        for one, other in pairwise(names)
        if one.group() != other.group()
    )


def _turned(sentence: str, first: str, last: str, source: str) -> bool:
    verbs = content(words_of(sentence)) - _MUTUAL
    if not verbs or any(verbs & content(words_of(text)) for text in _between(source, first, last)):
        return False
    passive = _PASSIVE.search(sentence) is None
    return any(
        verbs & content(words_of(text)) and passive == (_PASSIVE.search(text) is None)
        for text in _between(source, last, first)
    )


def _places(text: str, name: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(whole(name), text)]


def _between(text: str, one: str, other: str) -> list[str]:
    return [
        text[end:start]
        for _, end in _places(text, one)
        for start, _ in _places(text, other)
        if end < start and not re.search(r"[.;!?]\s", text[end:start])
    ]
