"""Who did what to whom, as far as the order of two names around a word tells it."""

import re

from shared.support.words import content, words_of

_NAME = re.compile(r"[A-ZÄÖÜÀ-Þ][^\W\d_]*(?:[ -][A-ZÄÖÜÀ-Þ][^\W\d_]*)*")
# By whom: the order is turned round.
_PASSIVE = re.compile(r"\b(?:by|von|durch|par|por)\b", re.IGNORECASE)
# What goes both ways.
_MUTUAL = content(
    words_of("met meets married marries married equals joined differs resembles borders beside")
)


def swapped(sentence: str, source: str) -> bool:
    """Whether the sentence's two names stand the other way round about the same word in its source.

    Precise rather than complete: sentences of more names or of none are not looked at, and pronouns are not
    resolved."""
    names = [found for found in _NAME.finditer(sentence) if _places(source, found.group())]
    if len(names) != 2 or names[0].group() == names[1].group():
        return False
    first, last = names
    said = sentence[first.end() : last.start()]
    verbs = content(words_of(said)) - _MUTUAL
    straight = _between(source, first.group(), last.group())
    turned = _between(source, last.group(), first.group())
    if any(verbs & content(words_of(text)) for text in straight):
        return False
    passive = _PASSIVE.search(said) is None
    return any(
        verbs & content(words_of(text)) and passive == (_PASSIVE.search(text) is None) for text in turned
    )


def _places(text: str, name: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)]


def _between(text: str, one: str, other: str) -> list[str]:
    return [
        text[end:start]
        for _, end in _places(text, one)
        for start, _ in _places(text, other)
        if end < start and not re.search(r"[.;!?]\s", text[end:start])
    ]
