"""Observations of labelled questions by a search in memory, which needs no database.

The documents of all sets are one corpus, as those of an org would be. The nearest passages are judged,
without keyword search: docs/benchmarks.md has the errors of such a fit in hybrid searches.
"""

import math
import time
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import mul

from shared.calibration.labelled_sets import QUESTIONS_OF_A_KIND, Item, LabelledSet, match_of, sample
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, HIDDEN, Observation, observe
from shared.generation.confidence import JUDGED_MATCHES
from shared.ingestion.chunking.chunk_packer import Chunk
from shared.ingestion.chunking.chunked_document import chunk_document
from shared.models.embedding_roles import Role
from shared.models.embeddings import EMBEDDED_AT_ONCE, Embedder, embed
from shared.types import Match


@dataclass(frozen=True, slots=True)
class _Passage:
    set_name: str
    document: Item
    ordinal: int
    chunk: Chunk

    @property
    def place(self) -> tuple[str, str]:
        """Two sets may have documents of one id."""
        return self.set_name, self.document.id

    def match(self, similarity: float) -> Match:
        chunk = self.chunk
        return match_of(self.document, chunk.text, self.ordinal, chunk.start, max(0.0, similarity))


class MemorySearch:
    """Labelled sets that are embedded and searched in slices of time. `observations`: by set. An answerable
    question is also observed without its documents, and, of several sets, over the documents of the other
    sets alone."""

    def __init__(self, embedder: Embedder, sets: Sequence[LabelledSet], coverage_weight: float) -> None:
        self.coverage_weight = coverage_weight
        self.observations: dict[str, list[Observation]] = {}
        self._embedder = embedder
        self._questions = [
            (labelled_set, item, kind)
            for labelled_set in sets
            for item in sample(labelled_set.questions, QUESTIONS_OF_A_KIND)
            if (kind := labelled_set.kind_of(item))
        ]
        self._passages: list[_Passage] = []
        self._sets_of: dict[str, list[str]] = {}
        self._texts = [item.text for _, item, _ in self._questions]
        for labelled_set in sets:
            for document in labelled_set.documents:
                self._sets_of.setdefault(document.id, []).append(labelled_set.name)
                text = document.text or document.title
                chunked = chunk_document(embedder, document.title or document.id, text, None)
                self._texts += chunked.passages
                self._passages += [
                    _Passage(labelled_set.name, document, ordinal, chunk)
                    for ordinal, chunk in enumerate(chunked.chunks)
                ]
        self._vectors: list[array[float]] = []
        self._observed = 0

    @property
    def progress(self) -> tuple[int, int]:
        """How many texts are embedded and questions observed, and of how many."""
        return len(self._vectors) + self._observed, len(self._texts) + len(self._questions)

    def run_until(self, end: float = math.inf) -> bool:
        """Embed texts, and then observe questions, until that time of time.monotonic, at least one batch or
        one question. Returns whether all are observed. Raises EmbeddingFailed; a later call continues."""
        while self._observed < len(self._questions):
            if len(self._vectors) < len(self._texts):
                self._embed_batch()
            else:
                self._observe()
            if time.monotonic() >= end:
                break
        return self._observed == len(self._questions)

    def _embed_batch(self) -> None:
        first, count = len(self._vectors), len(self._questions)
        is_question = first < count
        last = min(first + EMBEDDED_AT_ONCE, count if is_question else len(self._texts))
        role = Role.QUESTION if is_question else Role.DOCUMENT
        vectors = embed(self._embedder, self._texts[first:last], role, background=True)
        self._vectors += map(_unit, vectors)

    def _observe(self) -> None:
        labelled_set, item, kind = self._questions[self._observed]
        nearest = _nearest(self._vectors[self._observed], self._vectors[len(self._questions) :])
        own = self.observations.setdefault(labelled_set.name, [])
        own.append(observe(kind, item.text, self._matches(nearest), self.coverage_weight))
        names = labelled_set.relevant.get(item.id, {})
        if kind == ANSWERABLE and names:
            # A set without documents asks about those of the others.
            gold = {
                (set_name, name)
                for name in names
                for set_name in self._sets_of.get(name, ())
                if set_name == labelled_set.name or not labelled_set.documents
            }
            own.append(observe(HIDDEN, item.text, self._matches(nearest, gold), self.coverage_weight))
            sets = {set_name for set_name, _ in gold}
            if elsewhere := self._matches(nearest, without=sets):
                own.append(observe(FOREIGN, item.text, elsewhere, self.coverage_weight))
        self._observed += 1

    def _matches(
        self,
        nearest: Sequence[tuple[float, int]],
        hidden: Collection[tuple[str, str]] = (),
        without: Collection[str] = (),
    ) -> list[Match]:
        """The first matches, without these documents and sets."""
        candidates = (
            (passage, similarity)
            for similarity, index in nearest
            if (passage := self._passages[index]).place not in hidden and passage.set_name not in without
        )
        return [passage.match(similarity) for passage, similarity in islice(candidates, JUDGED_MATCHES)]


def _nearest(vector: "array[float]", others: Sequence["array[float]"]) -> list[tuple[float, int]]:
    """The cosine to each of the others, and its index, greatest first."""
    return sorted(((sum(map(mul, vector, other)), index) for index, other in enumerate(others)), reverse=True)


def _unit(vector: Sequence[float]) -> "array[float]":
    """The vector with a length of 1, without the zeros that pad it."""
    length = math.hypot(*vector)
    size = len(vector)
    while size and not vector[size - 1]:
        size -= 1
    return array("d", (number / length for number in vector[:size]))
