"""Order of two names around a verb: subject and object."""

import re
from itertools import pairwise

from shared.generation.grounding.terms import content_stems, is_function_word, words_in
from shared.text.identifiers import whole_word

_CAPITAL = r"[A-ZÄÖÜÀ-Þ][^\W\d_]*"
# An article or a preposition at the beginning of a sentence is no part of the name.
_OPENER = r"(?:The|An?|Die|Der|Das|Les?|La|In|On|At|By) "
_NAME = re.compile(
    rf"(?:(?<=The )|(?<=Die )|(?<=Der )|(?<!\w)(?!{_OPENER}))(?!{_OPENER}){_CAPITAL}(?:[ -]{_CAPITAL})*"
)
# The passive reverses the order.
_PASSIVE = re.compile(r"\b(?:by|von|durch|par|por)\b", re.IGNORECASE)
# Symmetric verbs.
_SYMMETRIC = content_stems(
    words_in("met meets married marries married equals joined differs resembles borders beside")
)


def has_swapped_roles(sentence: str, source: str) -> bool:
    """Whether the source has two successive names of the sentence in reverse order around the same verb.
    Precise rather than complete: pronouns and common nouns are ignored."""
    names = [match for match in _NAME.finditer(sentence) if not is_function_word(match.group().casefold())]
    return any(
        _is_swapped(sentence[one.end() : other.start()], one.group(), other.group(), source)
        for one, other in pairwise(names)
        if one.group() != other.group()
    )


def _is_swapped(sentence: str, first: str, last: str, source: str) -> bool:
    verbs = content_stems(words_in(sentence)) - _SYMMETRIC
    if not verbs or any(verbs & content_stems(words_in(text)) for text in _between(source, first, last)):
        return False
    passive = _PASSIVE.search(sentence) is None
    return any(
        verbs & content_stems(words_in(text)) and passive == (_PASSIVE.search(text) is None)
        for text in _between(source, last, first)
    )


def _spans(text: str, name: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(whole_word(name), text)]


def _between(text: str, one: str, other: str) -> list[str]:
    return [
        text[end:start]
        for _, end in _spans(text, one)
        for start, _ in _spans(text, other)
        if end < start and not re.search(r"[.;!?]\s", text[end:start])
    ]
