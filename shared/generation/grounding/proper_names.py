"""Capitalized names of a sentence; none in German."""

import re

from shared.generation.grounding.terms import POSSESSIVE, WORD, is_function_word
from shared.text.function_words import FUNCTION_WORDS
from shared.text.language_detection import MONTHS, clear_language_of

# Any word behind these may have a capital.
_OPENING = re.compile(r"(?:^|[.!?:;“”„\"«»(\[—–*#|/]|\s['‘‚-])\s*[\W_]*$")
_GERMAN = FUNCTION_WORDS["de"] - FUNCTION_WORDS["en"]
_INNER = re.compile(r"[^\W\d_A-ZÄÖÜÀ-Þ][A-ZÄÖÜÀ-Þ]")


def names_in(text: str) -> list[str]:
    """The words with a capital that is not due to their position, case-folded."""
    words = list(WORD.finditer(text))
    # Words with a capital inside are always names.
    inner_capitals = [word.group().casefold() for word in words if _INNER.search(word.group())]
    return list(dict.fromkeys([*inner_capitals, *_capitalised(text, words)]))


def _capitalised(text: str, words: list[re.Match[str]]) -> list[str]:
    # Where nouns have capitals, a capital tells nothing. (The graph counts other words.)
    # Most sentences have no two words that German has and English has not.
    german = _GERMAN & {word.group().casefold() for word in words}
    if len(german) > 1 and clear_language_of(text, 2) == "de":
        return []
    capitals = [word.group()[0].isupper() for word in words]
    if len(words) > 3 and sum(capitals) > 0.8 * len(words):
        # A title, or text in capitals.
        return []
    names: list[str] = []
    for index, word in enumerate(words):
        name = POSSESSIVE.sub("", word.group())
        starts_sentence = _OPENING.search(text, 0, word.start()) is not None
        precedes_capital = (
            capitals[index + 1 : index + 2] == [True] and text[word.end() : words[index + 1].start()] == " "
        )
        has_inner_capital = len(name) > 1 and not name[1:].islower()
        if not capitals[index] or (starts_sentence and not precedes_capital and not has_inner_capital):
            continue
        folded = name.casefold()
        if len(name) > 1 and folded not in MONTHS and not is_function_word(folded):
            names.append(folded)
    return names
