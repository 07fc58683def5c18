"""Embedder for changes of the embedding model: the local model's vectors, turned into 768 dimensions.

The rows of the matrix are orthonormal: cosines, and the right results of a search, stay the same, while a
vector of one model is near none of the other's.
"""

from collections.abc import Sequence

import numpy as np

from shared.models.embedding_roles import NO_FORMS, Role, Roles
from shared.models.embeddings import local_embedder

DIMENSIONS = 768


class RotatedEmbedder:
    model, forms, remote, is_fast = "rotated-minilm", NO_FORMS, False, True

    def __init__(self) -> None:
        self._local = local_embedder()
        self.window, self.passage_tokens = self._local.window, self._local.passage_tokens
        (example,) = self._local.embed(["example"], Role.DOCUMENT)
        draw = np.random.default_rng(768).normal(size=(DIMENSIONS, len(example)))
        self._rotation = np.linalg.qr(draw)[0].T

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        vectors = np.array(self._local.embed(texts, role, background=background))
        rotated: list[list[float]] = (vectors @ self._rotation).tolist()
        return rotated

    def count_tokens(self, text: str) -> int:
        return self._local.count_tokens(text)
