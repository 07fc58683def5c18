"""Scale of an embedding model's similarities, measured on texts of the project.

By all-MiniLM-L6-v2, the similarity of a question and its passage is about 0.4, and that of a question and any
other passage 0.06; by multilingual-e5-small they are 0.84 and 0.78. So a similarity says little where the
model is not known. The position between these two means about the same for each model.
"""

import logging
import math
import time
from contextvars import Context
from dataclasses import dataclass
from functools import cache
from operator import mul
from pathlib import Path

from shared.clients.http_client import deadline
from shared.clients.probe_cache import CachedProbe
from shared.errors import EmbeddingFailed
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed

log = logging.getLogger("rag")
# 64 questions, each with the passage that answers it, of ten kinds of text.
PAIRS = Path(__file__).with_name("similarity_pairs.tsv")
# The time limit of the measurement, and how long its failure is remembered.
MEASURE_SECONDS, RETRY_SECONDS = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """Mean cosines: `unrelated` of a question and the passage of another, `matching` of a question and its
    own passage."""

    unrelated: float
    matching: float

    @property
    def width(self) -> float:
        return self.matching - self.unrelated


def measure_scale(embedder: Embedder) -> SimilarityScale | None:
    """The scale of the embedder, for 128 short texts; None if it cannot be measured, or if the model does not
    tell the pairs apart."""
    questions, passages = pairs()
    try:
        with deadline(MEASURE_SECONDS):
            of_questions = embed(embedder, questions, Role.QUESTION)
            of_passages = embed(embedder, passages, Role.DOCUMENT)
    except EmbeddingFailed as error:
        log.warning("the scale of the similarities could not be measured (%s)", error.log_reason)
        return None
    ones, others = list(map(_normalised, of_questions)), list(map(_normalised, of_passages))
    matching = math.fsum(map(_dot, ones, others))
    count = len(ones)
    every = _dot(_sum(ones), _sum(others))
    scale = SimilarityScale((every - matching) / (count * (count - 1)), matching / count)
    return scale if scale.width > 0 else None


@cache
def pairs() -> tuple[list[str], list[str]]:
    """The questions, and the passages."""
    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [question for question, _ in rows], [passage for _, passage in rows]


def _normalised(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    return [number / length for number in vector]


def _sum(vectors: list[list[float]]) -> list[float]:
    return [math.fsum(numbers) for numbers in zip(*vectors, strict=True)]


def _dot(one: list[float], other: list[float]) -> float:
    return math.fsum(map(mul, one, other))


# Outside of the request that happens to be the first: neither its quota of tokens nor its deadline apply.
SCALES: CachedProbe[Embedder, SimilarityScale | None] = CachedProbe(
    lambda embedder: Context().run(measure_scale, embedder),
    lambda scale: math.inf if scale else RETRY_SECONDS,
)


def scale_of(embedder: Embedder) -> SimilarityScale | None:
    """`measure_scale` once in a process."""
    return SCALES.at(embedder, time.monotonic)
