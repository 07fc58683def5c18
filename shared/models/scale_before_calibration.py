"""Scale of an embedding model's similarities, measured on texts of the project.

By all-MiniLM-L6-v2, the similarity of a question and its passage is about 0.5, and that of a question and any
other passage 0.06; by multilingual-e5-small they are 0.86 and 0.78. So a similarity says little where the
model is not known. The position between these two means about the same for each model.
"""

import logging
import math
import time
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import cache
from operator import mul
from pathlib import Path
from threading import Event, Lock, Thread
from weakref import WeakKeyDictionary

from shared.clients.http_client import deadline
from shared.errors import EmbeddingFailed
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed

log = logging.getLogger("rag")
# 64 questions, each with the passage that answers it, of ten kinds of text.
PAIRS = Path(__file__).with_name("similarity_pairs.tsv")
# A smaller difference of the two means may be rounding.
MIN_WIDTH = 0.01
# How long a request waits for a measurement, which goes on afterwards; and the measurement's own limit.
WAIT_SECONDS, MEASURE_SECONDS = 3.0, 300.0
# The pause after a failed measurement, doubled with each further one.
RETRY_SECONDS, MAX_RETRY_SECONDS = 60.0, 86_400.0


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
    """The scale of the embedder, from 128 short texts; None for a model that does not tell the pairs apart.
    Raises EmbeddingFailed."""
    questions, passages = pairs()
    with deadline(MEASURE_SECONDS):
        question_vectors = _normalised(embed(embedder, questions, Role.QUESTION))
        passage_vectors = _normalised(embed(embedder, passages, Role.DOCUMENT))
    count = len(question_vectors)
    sum_of_matching = math.fsum(map(_dot, question_vectors, passage_vectors))
    sum_of_all = _dot(_sum(question_vectors), _sum(passage_vectors))
    unrelated = (sum_of_all - sum_of_matching) / (count * (count - 1))
    scale = SimilarityScale(unrelated, sum_of_matching / count)
    return scale if scale.width >= MIN_WIDTH else None


@cache
def pairs() -> tuple[list[str], list[str]]:
    """The questions, and the passages."""
    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [question for question, _ in rows], [passage for _, passage in rows]


def scale_of(embedder: Embedder) -> SimilarityScale | None:
    """The scale of the embedder, measured once in a process; None while it is not known."""
    with _lock:
        measurement = _measurements.get(embedder)
        if measurement is None or measurement.is_due():
            measurement = _measurements[embedder] = _Measurement(embedder, measurement)
    return measurement.result()


class _Measurement:
    """A measurement in a thread of its own: outside of the request that happens to be the first, neither
    the request's quota of tokens nor its deadline applies."""

    def __init__(self, embedder: Embedder, former: "_Measurement | None") -> None:
        self._scale: SimilarityScale | None = None
        self._is_waited_for = True
        self._retry_at = math.inf
        self._pause: float = min(2 * former._pause, MAX_RETRY_SECONDS) if former else RETRY_SECONDS
        self._is_done = Event()
        Thread(target=Context().run, args=(self._measure, embedder), name="scale", daemon=True).start()

    def is_due(self) -> bool:
        return time.monotonic() >= self._retry_at

    def result(self) -> SimilarityScale | None:
        if self._is_waited_for and not self._is_done.wait(WAIT_SECONDS):
            # Later requests do not wait.
            self._is_waited_for = False
        return self._scale

    def _measure(self, embedder: Embedder) -> None:
        try:
            self._scale = measure_scale(embedder)
        except EmbeddingFailed as error:
            self._retry_at = time.monotonic() + self._pause
            log.warning("the scale of the similarities could not be measured (%s)", error.log_reason)
        except RuntimeError:
            # httpx raises it where the services were closed.
            log.debug("the measurement of a scale ended with its services")
        finally:
            self._is_done.set()


_measurements: WeakKeyDictionary[Embedder, _Measurement] = WeakKeyDictionary()
_lock = Lock()


def _normalised(vectors: Sequence[Sequence[float]]) -> list[list[float]]:
    lengths = [math.hypot(*vector) for vector in vectors]
    return [[number / length for number in vector] for vector, length in zip(vectors, lengths, strict=True)]


def _sum(vectors: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(numbers) for numbers in zip(*vectors, strict=True)]


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return math.fsum(map(mul, first, second))
