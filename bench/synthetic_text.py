"""Synthetic text: the demo corpus's sentences with other content words.

A sentence is one of the demo's English sentences with its punctuation and stop words. Every other word is
sampled by a Zipf-Mandelbrot law, from the demo's own words and then invented ones, more than 100,000 passages
can use: so the vocabulary grows with the text, a few words are in every fourth passage, some hundred in every
twentieth, and most in one or two. Words come in bursts: a document has some of its own, which it repeats. A
chunk has whole sentences of about 100 words, a document about eight chunks; every fourth chunk has an
identifier (INC-4821), which one to three other chunks have as well. Sentences have no meaning, and words
co-occur only by chance. bench/keyword_search.py reports the figures of the text. All from fixed seeds.
"""

import re
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from local.seed_demo import demo_files
from shared.text.sentences import sentences

SEED = 20_261_122
# Parameters of the word frequencies, 1 / (rank + SHIFT) ^ STEEPNESS.
SHIFT, STEEPNESS, RANKS = 60, 1.4, 1_000_000
# A document's own words, how often it takes one of them, and from which rank on they are.
OWN, OWN_SHARE, OWN_FROM = 40, 0.3, 200
CHUNK_WORDS = 100
IDENTIFIED = 4
KINDS = ("INC", "RMA", "TKT", "PO")
WORD = re.compile(r"\b[A-Za-z]+\b")
Ranks = NDArray[np.int64]
SYLLABLES = [
    f"{first}{vowel}{last}" for first in "bdfgklmnprtv" for vowel in "aeiou" for last in ("", "n", "r")
]
# So that neighbouring ranks do not look alike; it shares no factor with the number of syllables.
SCATTER = 1_299_709


@dataclass(frozen=True)
class SyntheticDocument:
    title: str
    chunks: tuple[str, ...]


class Prose:
    """Documents by their number. `passed_over`: the words that a search passes over, in small letters."""

    def __init__(self, passed_over: Set[str]) -> None:
        self._passed_over = passed_over
        sentences = demo_sentences()
        counts = Counter(word for one in sentences for word in words(one) if word not in passed_over)
        self._known = [word for word, _ in counts.most_common()]
        self._patterns = [pattern for one in sentences if (pattern := self._pattern(one))]
        weights = 1 / (np.arange(1, RANKS + 1) + SHIFT) ** STEEPNESS
        self._law = np.cumsum(weights) / weights.sum()
        own = 1 / np.arange(1, OWN + 1)
        self._own_law = np.cumsum(own) / own.sum()

    def document(self, number: int) -> SyntheticDocument:
        draw = np.random.default_rng([SEED, number])
        own = self._ranks(draw, OWN) + OWN_FROM
        word_count = int(draw.integers(6, 11)) * CHUNK_WORDS
        chunks: list[str] = []
        while len(chunks) * CHUNK_WORDS < word_count:
            chunks.append(self._chunk(draw, own))
        title = " ".join(self._drawn(draw, own, int(draw.integers(3, 7)))).capitalize()
        return SyntheticDocument(title, tuple(chunks))

    def first_words(self, number: int, count: int) -> str:
        """The beginning of a document."""
        return " ".join(" ".join(self.document(number).chunks).split()[:count])

    def content_words(self, text: str) -> list[str]:
        return [word for word in words(text) if word not in self._passed_over]

    def question(self, number: int) -> str:
        """Five to eight content words that follow each other in a text that is not among the documents."""
        draw = np.random.default_rng([SEED, number, 1])
        results = self.content_words(self._chunk(draw, self._ranks(draw, OWN) + OWN_FROM))
        count = int(draw.integers(5, 9))
        first = int(draw.integers(0, len(results) - count + 1))
        return " ".join(results[first : first + count])

    def passage(self, number: int, shortest: int, longest: int) -> str:
        """That many words, stop words among them, of a text that is not among the documents."""
        draw = np.random.default_rng([SEED, number, 2])
        own = self._ranks(draw, OWN) + OWN_FROM
        text = " ".join(self._chunk(draw, own) for _ in range(1 + longest // CHUNK_WORDS))
        return " ".join(text.split()[: int(draw.integers(shortest, longest + 1))])

    def _chunk(self, draw: np.random.Generator, own: Ranks) -> str:
        texts: list[str] = []
        length = 0
        while length < CHUNK_WORDS * 0.9:
            pattern = self._patterns[int(draw.integers(len(self._patterns)))]
            drawn = iter(self._drawn(draw, own, pattern.count(None)))
            sentence = "".join(next(drawn) if piece is None else piece for piece in pattern)
            texts.append(sentence[0].upper() + sentence[1:])
            length += len(sentence.split())
        if draw.integers(IDENTIFIED) == 0:
            texts.append(f"See {KINDS[int(draw.integers(len(KINDS)))]}-{int(draw.integers(1000, 5000))}.")
        return " ".join(texts)

    def _drawn(self, draw: np.random.Generator, own: Ranks, count: int) -> list[str]:
        ranks = self._ranks(draw, count)
        from_own = own[np.searchsorted(self._own_law, draw.random(count))]
        chosen = np.where(draw.random(count) < OWN_SHARE, from_own, ranks)
        return [self._word(int(rank)) for rank in chosen]

    def _ranks(self, draw: np.random.Generator, count: int) -> Ranks:
        return np.searchsorted(self._law, draw.random(count))

    def _word(self, rank: int) -> str:
        if rank < len(self._known):
            return self._known[rank]
        rest, parts = rank * SCATTER % len(SYLLABLES) ** 3, []
        for _ in range(3):
            rest, syllable = divmod(rest, len(SYLLABLES))
            parts.append(SYLLABLES[syllable])
        return "".join(parts)

    def _pattern(self, sentence: str) -> tuple[str | None, ...]:
        """The sentence in pieces, None where a word is to be drawn; empty for one that is too short."""
        pieces = tuple(
            None if piece.isalpha() and piece.lower() not in self._passed_over else piece
            for piece in re.findall(r"[A-Za-z]+|[^A-Za-z]+", sentence)
        )
        return pieces if pieces.count(None) > 3 else ()


def demo_sentences() -> list[str]:
    """The demo's English ones: no headings, lists or tables."""
    results = [
        file.document.text[sentence.start : sentence.end]
        for file, _ in demo_files()
        if file.document.lang == "en"
        for sentence in sentences(file.document.text, "en")
        if not sentence.heading
    ]
    return [one for one in results if one[0].isupper() and one[-1] == "." and one.isascii()]


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]
