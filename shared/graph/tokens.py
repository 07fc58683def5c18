"""The words of a text: which have capitals, where a sentence may begin, what a document shows of them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.graph.stopwords import COMMON, GERMAN, SMALL

WORD = re.compile(r"[^\W_]+(?:[’'\-.&][^\W_]+|[\u0300-\u036f]+)*")
POSSESSIVE = re.compile(r"[’'][sS]?$")
ELISION = frozenset("'’")
UNIT = re.compile(r"[kMGTPmn]?(?:Wh|Wp|W|Hz|Pa|iB|Bq|bps|bit)")
_OPENS = re.compile(r"(?:[.!?:;…。|•*#§>\[(\n\t\"“„«‘]|^)[\s*_#§>\"“„«‘(\[–—\d.)|-]*$|[–—]\s*$|\n\s*[-+]\s+$")
# How far back the beginning of a sentence is looked for.
_BACK = 12


class Token(NamedTuple):
    """A word; `folded`: small, without a possessive's ending. A sentence may begin with what `opens`."""

    text: str
    folded: str
    start: int
    end: int
    capital: bool
    opens: bool
    shouted: bool


@dataclass(slots=True)
class Evidence:
    """What a document shows of its words: which it writes small, which with a capital within sentences."""

    small: set[str] = field(default_factory=set)
    capital: Counter[str] = field(default_factory=Counter)
    german: bool = False

    @classmethod
    def of(cls, texts: Sequence[Sequence[Token]], title: str = "") -> "Evidence":
        evidence = cls()
        german = total = 0
        for tokens in texts:
            for token in tokens:
                total += 1
                if not token.capital:
                    evidence.small.add(token.folded)
                    german += token.text in GERMAN
                elif not token.opens and not token.shouted:
                    evidence.capital[token.folded] += 1
        for word in WORD.findall(title):
            if word.casefold() not in COMMON and word[:1].isupper():
                evidence.capital[word.casefold()] += 1
        evidence.german = german >= 2 and german > 0.06 * total
        return evidence

    def shows(self, word: str) -> bool:
        return word in self.capital


def tokens_of(text: str) -> list[Token]:
    tokens: list[Token] = []
    for start, end in _lines(text):
        words = list(WORD.finditer(text, start, end))
        letters = [word[0] for word in words if len(word[0]) > 1 and not word[0].isdigit()]
        shouted = len(letters) > 2 and sum(map(str.isupper, letters)) > 0.6 * len(letters)
        shouted = shouted or _titled(letters)
        for word in words:
            surface, first, last = word[0], word.start(), word.end()
            if surface[1:2] in ELISION and surface[0] in "lLd" and len(surface) > 3:
                # L'assistance is one word less than O'Neill is.
                surface, first = surface[2:], first + 2
            capital = surface[0].isupper()
            folded = surface.casefold()
            if "’" in surface or "'" in surface:
                folded = POSSESSIVE.sub("", folded).replace("’", "'")
            opens = capital and (
                first == start or _OPENS.search(text, max(0, first - _BACK), first) is not None
            )
            tokens.append(Token(surface, folded, first, last, capital, opens, shouted))
    return tokens


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in re.finditer(r"\n", text):
        yield start, line.start()
        start = line.end()
    yield start, len(text)


def _titled(words: list[str]) -> bool:
    """A line of which all words but small ones have capitals: of four or more."""
    if len(words) < 4 or any(word[0].islower() and word not in SMALL for word in words):
        return False
    return sum(word[0].isupper() for word in words) > 3 and words[-1][0].isupper()
