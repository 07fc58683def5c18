"""Capitals: the words of a text and of its document by their capitals, and words that are no names."""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from shared.graph.entity_types import ORGANIZATIONS, RANKS
from shared.text.function_words import ALL_FUNCTION_WORDS
from shared.text.language_detection import MONTHS, WEEKDAYS, language_of
from shared.text.word_lists import word_sets

WORD = re.compile(r"[^\W_]+(?:[’'\-.&][^\W_]+|[\u0300-\u036f]+)*")
POSSESSIVE = re.compile(r"[’'][sS]?$")
UNIT = re.compile(r"[kMGTPmn]?(?:Wh|Wp|W|Hz|Pa|iB|Bq|bps|bit)")
_OPENS = re.compile(r"(?:[.!?:;…。|•*#§>\[(\n\t\"“„«‘]|^)[\s*_#§>\"“„«‘(\[–—\d.)|-]*$|[–—]\s*$|\n\s*[-+]\s+$")
# The characters before a word that decide whether a sentence may begin there.
_BACK = 12
_LINE = re.compile(r"[^\n]+")
# L'assistance has an article; O'Neill is one word.
_ELISION = re.compile(r"[lLd][’'](?=[^\W_]{2})")

_WORDS = word_sets(__file__)
_FUNCTION_WORDS = frozenset(word for word in ALL_FUNCTION_WORDS if len(word) > 1)
# Without function words that are also names, or parts of names.
COMMON = (_WORDS["common"] | _FUNCTION_WORDS | {*MONTHS, *WEEKDAYS, *(f"{day}s" for day in WEEKDAYS)}) - {
    "ai", "al", "allen", "da", "del", "dos", "pro",
}  # fmt: skip
DEMONYMS = _WORDS["demonyms"]
CONNECTORS = _WORDS["connectors"]
GERMAN_CONNECTORS = frozenset({"von", "van", "of", "de"})
LOWERCASE_IN_TITLES = CONNECTORS | _WORDS["lowercase_in_titles"]
INSEPARABLE = ORGANIZATIONS | RANKS | _WORDS["inseparable"]
NEVER_FIRST = _WORDS["never_first"]
# Some months are first names.
NEVER_LAST = (
    (frozenset(MONTHS) - {"april", "may", "june", "august", "mar", "mei"})
    | frozenset(WEEKDAYS)
    | _WORDS["never_last"]
)


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


@dataclass(frozen=True, slots=True)
class DocumentWords:
    """The words that a document writes in lowercase, and those that it capitalizes inside sentences."""

    lowercase: Set[str]
    capitalized: Set[str]
    is_german: bool

    @classmethod
    def of(cls, text: str, tokens: Iterable[Token], title: str = "") -> "DocumentWords":
        tokens = list(tokens)
        in_title = {word.casefold() for word in WORD.findall(title) if word[0].isupper()} - COMMON
        return cls(
            frozenset(token.folded for token in tokens if not token.is_capitalized),
            in_title.union(
                token.folded
                for token in tokens
                if token.is_capitalized and not token.starts_sentence and not token.in_capitals
            ),
            language_of(text) == "de",
        )


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    for line in _LINE.finditer(text):
        words = [(word.group(), *word.span()) for word in WORD.finditer(text, *line.span())]
        in_capitals = _is_in_capitals([word for word, _, _ in words if len(word) > 1 and not word.isdigit()])
        for written, begin, end in words:
            word, start, folded = written, begin, written.casefold()
            # Most words are quicker without the patterns.
            if not written.isalnum():
                if article := _ELISION.match(written):
                    word, start = written[article.end() :], begin + article.end()
                folded = POSSESSIVE.sub("", word.casefold()).replace("’", "'")
            is_capitalized = word[0].isupper()
            starts_sentence = is_capitalized and (
                start == line.start() or _OPENS.search(text, max(0, start - _BACK), start) is not None
            )
            tokens.append(Token(word, folded, start, end, is_capitalized, starts_sentence, in_capitals))
    return tokens


def is_titled(words: Sequence[str]) -> bool:
    """Whether words are capitalized as a title."""
    return words[0][0].isupper() and all(
        not word[0].islower() or word.casefold() in LOWERCASE_IN_TITLES for word in words
    )


def _is_in_capitals(words: Sequence[str]) -> bool:
    """Whether a line of these words is in capitals or a title."""
    if len(words) > 2 and sum(map(str.isupper, words)) > 0.6 * len(words):
        return True
    return sum(word[0].isupper() for word in words) > 3 and words[-1][0].isupper() and is_titled(words)
