"""The local reranker: how near a passage is as a whole, token by token and in words, by one pass of MiniLM.

Each of the three by itself harms some set of questions, their plain mean none (README.md, "Reranking,
measured"). Fitted weights, sentences, other layers, centred vectors and the first stage's own score were
tried and gave nothing that lasts.
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
    from shared.models.minilm import MiniLM, Reading

Floats = npt.NDArray[np.float32]

# BM25's usual saturation and length normalisation.
SATURATION, LENGTH = 1.2, 0.75
# BERT's vocabulary lists whole words and pieces from here on ("the"), the most frequent first; before them
# stand special tokens, punctuation and single characters.
FIRST_WORD = 1996


@dataclass(frozen=True, slots=True)
class View:
    """Of one passage: how near it is as a whole and token by token, and its word pieces."""

    cosine: float
    interaction: float
    pieces: Counter[int]


class LocalReranker:
    """Reads up to 254 tokens of each passage. As dear as embedding the passages anew."""

    def __init__(self, minilm: "MiniLM", timeout_seconds: float) -> None:
        self._minilm = minilm
        self._seconds = timeout_seconds
        self.model = f"{minilm.model}-late-interaction"

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The mean of cosine, late interaction and shared words. Raises RerankFailed when time is up."""
        if not passages:
            return []
        end = time.monotonic() + self._seconds
        (question,) = self._minilm.read([query], lambda reading: reading)
        tokens = _unit(question.tokens)

        def view(reading: "Reading") -> View:
            if time.monotonic() > end:
                raise RerankFailed(because="time-out")
            cosine = float(reading.vector @ question.vector)
            return View(cosine, _interaction(tokens, reading.tokens), Counter(reading.ids))

        views = self._minilm.read(passages, view)
        words = _shared_words(set(question.ids), [item.pieces for item in views])
        return [
            (max(0.0, item.cosine) + max(0.0, item.interaction) + shared) / 3
            for item, shared in zip(views, words, strict=True)
        ]


def _interaction(query: Floats, passage: Floats) -> float:
    """ColBERT's MaxSim (Khattab and Zaharia 2020), as a mean: each token of the query takes the nearest of
    the passage's. `query` holds unit vectors."""
    if not len(query) or not len(passage):
        return 0.0
    return float((query @ _unit(passage).T).max(axis=1).mean())


def _unit(vectors: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths


def _shared_words(question: set[int], passages: Sequence[Counter[int]]) -> list[float]:
    """BM25 (Robertson and Zaragoza 2009) over these passages alone, as a share of the most that it could be.

    How rare a word is among so few passages says little, so its place in the vocabulary counts as well.
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
