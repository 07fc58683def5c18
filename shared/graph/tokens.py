"""Words of a text, their capitals, and the evidence of a document about its words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.graph.stopwords import COMMON, GERMAN, LOWERCASE_IN_TITLES

WORD = re.compile(r"[^\W_]+(?:[’'\-.&][^\W_]+|[\u0300-\u036f]+)*")
POSSESSIVE = re.compile(r"[’'][sS]?$")
ELISION = frozenset("'’")
UNIT = re.compile(r"[kMGTPmn]?(?:Wh|Wp|W|Hz|Pa|iB|Bq|bps|bit)")
_OPENS = re.compile(r"(?:[.!?:;…。|•*#§>\[(\n\t\"“„«‘]|^)[\s*_#§>\"“„«‘(\[–—\d.)|-]*$|[–—]\s*$|\n\s*[-+]\s+$")
# The characters before a word that decide whether a sentence may begin there.
_BACK = 12


class Token(NamedTuple):
    """A word. `folded`: in lowercase, without a possessive ending. `starts_sentence`: it may be the first of
    a sentence. `in_capitals`: its line is in capitals or a title."""

    text: str
    folded: str
    start: int
    end: int
    is_capitalized: bool
    starts_sentence: bool
    in_capitals: bool


@dataclass(slots=True)
class CaseEvidence:
    """The words that a document writes in lowercase, and those that it capitalizes inside sentences."""

    lowercase: set[str] = field(default_factory=set)
    capitalized: set[str] = field(default_factory=set)
    is_german: bool = False

    @classmethod
    def of(cls, texts: Sequence[Sequence[Token]], title: str = "") -> "CaseEvidence":
        evidence = cls()
        german_words = all_words = 0
        for tokens in texts:
            for token in tokens:
                all_words += 1
                if not token.is_capitalized:
                    evidence.lowercase.add(token.folded)
                    german_words += token.text in GERMAN
                elif not token.starts_sentence and not token.in_capitals:
                    evidence.capitalized.add(token.folded)
        for word in WORD.findall(title):
            if word.casefold() not in COMMON and word[:1].isupper():
                evidence.capitalized.add(word.casefold())
        evidence.is_german = german_words >= 2 and german_words > 0.06 * all_words
        return evidence

    def capitalizes(self, word: str) -> bool:
        return word in self.capitalized


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    for start, end in _lines(text):
        words = list(WORD.finditer(text, start, end))
        letters = [word[0] for word in words if len(word[0]) > 1 and not word[0].isdigit()]
        in_capitals = len(letters) > 2 and sum(map(str.isupper, letters)) > 0.6 * len(letters)
        in_capitals = in_capitals or _titled(letters)
        for word in words:
            surface, first, last = word[0], word.start(), word.end()
            if surface[1:2] in ELISION and surface[0] in "lLd" and len(surface) > 3:
                # L'assistance has an article; O'Neill is one word.
                surface, first = surface[2:], first + 2
            is_capitalized = surface[0].isupper()
            folded = surface.casefold()
            if "’" in surface or "'" in surface:
                folded = POSSESSIVE.sub("", folded).replace("’", "'")
            starts_sentence = is_capitalized and (
                first == start or _OPENS.search(text, max(0, first - _BACK), first) is not None
            )
            tokens.append(Token(surface, folded, first, last, is_capitalized, starts_sentence, in_capitals))
    return tokens


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in re.finditer(r"\n", text):
        yield start, line.start()
        start = line.end()
    yield start, len(text)


def _titled(words: list[str]) -> bool:
    """Whether a line of four or more words is capitalized as a title."""
    if len(words) < 4 or any(word[0].islower() and word not in LOWERCASE_IN_TITLES for word in words):
        return False
    return sum(word[0].isupper() for word in words) > 3 and words[-1][0].isupper()
