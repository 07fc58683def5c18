"""Local reranker: mean of cosine, late interaction and shared words, by MiniLM.

Each of the three alone makes some set of questions worse; their mean does not (docs/benchmarks.md, "Reranking
measured"). Fitted weights, sentences, other layers, centred vectors and the first stage's score brought no
lasting improvement.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shared.errors import RerankFailed

if TYPE_CHECKING:
    from shared.models.minilm import MiniLM, TextEncoding

Floats = npt.NDArray[np.float32]

# BM25's usual saturation and length normalisation.
SATURATION, LENGTH = 1.2, 0.75
# BERT's vocabulary lists whole words and pieces from here on ("the"), the most frequent first; before them
# stand special tokens, punctuation and single characters.
FIRST_WORD = 1996


@dataclass(frozen=True, slots=True)
class PassageScores:
    """Cosine and late interaction of one passage with the question, and its word pieces."""

    cosine: float
    interaction: float
    pieces: Counter[int]


class LocalReranker:
    """Uses up to 254 tokens of each passage. It costs as much as embedding the passages."""

    def __init__(self, minilm: "MiniLM", timeout_seconds: float) -> None:
        self._minilm = minilm
        self._seconds = timeout_seconds
        self.model = f"{minilm.model}-late-interaction"

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The mean of cosine, late interaction and shared words. Raises RerankFailed after the time-out."""
        if not passages:
            return []
        end = time.monotonic() + self._seconds
        (question,) = self._minilm.encode([query], lambda encoding: encoding)
        tokens = _unit(question.tokens)

        def compare(passage: "TextEncoding") -> PassageScores:
            if time.monotonic() > end:
                raise RerankFailed(log_reason="time-out")
            cosine = float(passage.vector @ question.vector)
            return PassageScores(cosine, _interaction(tokens, passage.tokens), Counter(passage.ids))

        scores = self._minilm.encode(passages, compare)
        words = _shared_words(set(question.ids), [item.pieces for item in scores])
        return [
            (max(0.0, item.cosine) + max(0.0, item.interaction) + shared) / 3
            for item, shared in zip(scores, words, strict=True)
        ]


def _interaction(query: Floats, passage: Floats) -> float:
    """ColBERT's MaxSim (Khattab and Zaharia 2020) as a mean: the cosine of each query token with the nearest
    token of the passage. `query` contains unit vectors."""
    if not len(query) or not len(passage):
        return 0.0
    return float((query @ _unit(passage).T).max(axis=1).mean())


def _unit(vectors: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths


def _shared_words(question: set[int], passages: Sequence[Counter[int]]) -> list[float]:
    """BM25 (Robertson and Zaragoza 2009) over these passages alone, as a share of its maximum.

    The frequency of a word in so few passages is uncertain, so that its rank in the vocabulary counts, too.
    """
    terms = sorted(term for term in question if term > FIRST_WORD)
    lengths = np.array([passage.total() for passage in passages])
    counts = np.array([[passage[term] for term in terms] for passage in passages], float)
    counts = counts.reshape(len(passages), len(terms))
    passages_with_term = (counts > 0).sum(axis=0)
    weights = np.log(1 + (len(passages) - passages_with_term + 0.5) / (passages_with_term + 0.5))
    weights *= np.log([term - FIRST_WORD + 1 for term in terms])
    if not weights.sum():
        return [0.0] * len(passages)
    length = 1 - LENGTH + LENGTH * lengths / max(1.0, lengths.mean())
    shares: list[float] = (
        counts / (counts + SATURATION * length[:, None]) @ (weights / weights.sum())
    ).tolist()
    return shares
