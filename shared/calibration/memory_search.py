"""Observations of labelled questions by a search in memory, which needs no database.

The documents of all sets are one corpus, as those of an org would be. The nearest passages are judged: a
hybrid search has nearly the same, and in the same order where the calibration looks (docs/benchmarks.md).
"""

import math
import time
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import mul

from shared.calibration.labelled_sets import Item, LabelledSet
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

    def match(self, similarity: float) -> Match:
        similarity = max(0.0, similarity)
        return Match(
            chunk_id=f"{self.document.id} {self.ordinal}",
            document_id=self.document.id,
            org_id="",
            ordinal=self.ordinal,
            text=self.chunk.text,
            span=(self.chunk.start, self.chunk.end),
            similarity=similarity,
            score=similarity,
            source_type="doc",
            title=self.document.title,
            uri=None,
            lang=None,
            occurred_at=None,
            metadata={},
            collection_id="",
            origin=None,
            author=None,
            state=None,
            labels=(),
            document_name=self.document.id,
            location={},
            created_by="",
        )


class MemorySearch:
    """Labelled sets and their vectors, which `embed_until` makes in slices of time."""

    def __init__(self, embedder: Embedder, sets: Sequence[LabelledSet]) -> None:
        self._embedder = embedder
        self._questions = [
            (labelled_set, item, kind)
            for labelled_set in sets
            for item in labelled_set.questions
            if (kind := labelled_set.kind_of(item))
        ]
        self._passages: list[_Passage] = []
        self._texts = [item.text for _, item, _ in self._questions]
        for labelled_set in sets:
            for document in labelled_set.documents:
                chunked = chunk_document(embedder, document.title or document.id, document.text, None)
                self._texts += chunked.passages
                self._passages += [
                    _Passage(labelled_set.name, document, ordinal, chunk)
                    for ordinal, chunk in enumerate(chunked.chunks)
                ]
        self._vectors: list[array[float]] = []

    def embed_until(self, end: float) -> bool:
        """Embed texts until that time of time.monotonic, at least one batch. Returns whether all are
        embedded. Raises EmbeddingFailed; a later call continues."""
        while len(self._vectors) < len(self._texts):
            first = len(self._vectors)
            is_question = first < len(self._questions)
            last = min(first + EMBEDDED_AT_ONCE, len(self._questions) if is_question else len(self._texts))
            role = Role.QUESTION if is_question else Role.DOCUMENT
            vectors = embed(self._embedder, self._texts[first:last], role, background=True)
            self._vectors += map(_unit, vectors)
            if time.monotonic() >= end:
                break
        return len(self._vectors) == len(self._texts)

    def observations(self, coverage_weight: float) -> dict[str, list[Observation]]:
        """By set. An answerable question is also observed without its documents, and, of several sets, over
        the documents of the other sets alone."""
        observed: dict[str, list[Observation]] = {}
        count = len(self._questions)
        of_passages = self._vectors[count:]
        for (labelled_set, item, kind), vector in zip(self._questions, self._vectors[:count], strict=True):
            nearest = _nearest(vector, of_passages)
            gold = labelled_set.relevant.get(item.id, {})
            own = observed.setdefault(labelled_set.name, [])
            own.append(observe(kind, item.text, self._matches(nearest), coverage_weight))
            if kind != ANSWERABLE or not gold:
                continue
            own.append(observe(HIDDEN, item.text, self._matches(nearest, gold), coverage_weight))
            sets = {passage.set_name for passage in self._passages if passage.document.id in gold}
            if elsewhere := self._matches(nearest, without=sets):
                own.append(observe(FOREIGN, item.text, elsewhere, coverage_weight))
        return observed

    def _matches(
        self,
        nearest: Sequence[tuple[float, int]],
        hidden: Collection[str] = (),
        without: Collection[str] = (),
    ) -> list[Match]:
        """The first matches, without these documents and sets."""
        kept = (
            (passage, similarity)
            for similarity, index in nearest
            if (passage := self._passages[index]).document.id not in hidden
            and passage.set_name not in without
        )
        return [passage.match(similarity) for passage, similarity in islice(kept, JUDGED_MATCHES)]


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
