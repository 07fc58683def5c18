"""The capitalised names of a sentence: what it says of whom must be said of them."""

import re

from shared.generation.grounding.terms import says_nothing
from shared.text.languages import MONTHS
from shared.text.word_lists import word_sets

_WORD = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"[’'](?:s|S)?$")
# Behind these, any word may have a capital.
_OPENING = re.compile(r"(?:^|[.!?:;“”„\"«»(\[—–*#|/]|\s['‘‚-])\s*[\W_]*$")
_INNER = re.compile(r"[^\W\d_A-ZÄÖÜÀ-Þ][A-ZÄÖÜÀ-Þ]")
_GERMAN = word_sets(__file__)["german"]


def names_of(text: str) -> list[str]:
    """The words with a capital that no rule of spelling gives them, case-folded; none in German."""
    words = list(_WORD.finditer(text))
    # No rule gives a word a capital inside: those are somebody's names for something.
    inner_capitals = [word.group().casefold() for word in words if _INNER.search(word.group())]
    return list(dict.fromkeys([*inner_capitals, *_capitalised(text, words)]))


def _capitalised(text: str, words: list[re.Match[str]]) -> list[str]:
    if len(_GERMAN & {word.group().casefold() for word in words}) >= 2:
        return []
    capitals = [word.group()[0].isupper() for word in words]
    if len(words) > 3 and sum(capitals) > 0.8 * len(words):
        # A title, or shouting.
        return []
    names: list[str] = []
    for place, word in enumerate(words):
        name = _POSSESSIVE.sub("", word.group())
        opens = _OPENING.search(text, 0, word.start()) is not None
        followed = (
            capitals[place + 1 : place + 2] == [True] and text[word.end() : words[place + 1].start()] == " "
        )
        mixed = len(name) > 1 and not name[1:].islower()
        if not capitals[place] or (opens and not followed and not mixed):
            continue
        folded = name.casefold()
        if len(name) > 1 and folded not in MONTHS and not says_nothing(folded):
            names.append(folded)
    return names
