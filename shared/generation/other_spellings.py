"""Names and numbers in another spelling: PPR 9087 and PPR-9087, Wi-Fi and WiFi, São Paulo and Sao Paulo, EU
and European Union."""

import re
from dataclasses import dataclass
from functools import cached_property

from shared.generation.grounding.numbers import UNITS
from shared.text.function_words import STOPWORDS
from shared.text.normalize import without_accents

# "iOS", "Wi" and "17" in "iOSWi17".
_PIECE = re.compile(r"\d+|[^\W\d_][^\W\d_A-ZÀ-Þ]+|[A-ZÀ-Þ]+(?![^\W\d_A-ZÀ-Þ])|[^\W\d_]")
_WORD = re.compile(r"[^\W_]+")
_ABBREVIATION = re.compile(r"[A-Z]{2,6}")
# Two initials are those of many persons.
_SHORT = frozenset({"EU", "UK", "UN", "US"})
# Words with capitals, and "of", "the" or "and" between them.
_CAPITALS = re.compile(r"[A-ZÀ-Þ][\w’'-]*(?: (?:(?:of|the|and|for) ){0,2}[A-ZÀ-Þ][\w’'-]*)+")
# A number that counts what the question asks for, as in "What are 3 reasons" and "top 5".
_COUNTING = re.compile(
    r"\b(?:are|the|name|list|give|me|which|what|main|first)\s+(\d{1,2})\s+([^\W\d_]+s)\b|\btop\s+(\d{1,2})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Spellings:
    """A text in which names are looked up, whatever their spelling."""

    text: str

    def have(self, name: str) -> bool:
        """Whether the text has the name with other accents, capitals or separators, or its abbreviation, or
        the words that it abbreviates."""
        pieces = [re.escape(without_accents(piece)) for piece in _PIECE.findall(name)]
        if not pieces:
            return False
        joined = r"[\W_]{0,2}".join(pieces)
        # The number 5 is not in 5.3.
        pattern = rf"(?<![^\W_])(?<!\d[.,]){joined}(?![^\W_])(?![.,]\d)"
        return re.search(pattern, self._folded) is not None or self._have_abbreviated(name)

    def _have_abbreviated(self, name: str) -> bool:
        if _ABBREVIATION.fullmatch(name):
            return (len(name) > 2 or name in _SHORT) and name in self._initials
        initials = _initials(name)
        return (len(initials) > 2 or initials in _SHORT) and not self._abbreviations.isdisjoint(
            {initials, f"{initials}A"}
        )

    @cached_property
    def _folded(self) -> str:
        return without_accents(self.text)

    @cached_property
    def _initials(self) -> frozenset[str]:
        return frozenset(_initials(words) for words in _CAPITALS.findall(self.text))

    @cached_property
    def _abbreviations(self) -> frozenset[str]:
        return frozenset(re.findall(r"(?<!\w)[A-Z]{2,7}(?!\w)", self.text))


def counting_numbers(question: str) -> frozenset[str]:
    """The numbers that count what the question asks for: no text need repeat them."""
    return frozenset(
        counting[1] or counting[3]
        for counting in _COUNTING.finditer(question)
        if (counting[2] or "").casefold() not in UNITS
    )


def _initials(words: str) -> str:
    return "".join(word[0].upper() for word in _WORD.findall(words) if word.casefold() not in STOPWORDS)
