"""Embedders of the tests: other vectors, or vectors at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shared.models.embedding_roles import NO_FORMS, Role, Roles
from shared.models.embeddings import local_embedder


class RotatedEmbedder:
    """The local model's vectors, turned into 768 dimensions.

    The rows of the matrix are orthonormal: cosines, and the right results of a search, stay the same, while a
    vector of one model is near none of the other's.
    """

    model, forms, remote = "rotated-minilm", NO_FORMS, False

    def __init__(self) -> None:
        self._local = local_embedder()
        self.window, self.passage_tokens = self._local.window, self._local.passage_tokens
        (example,) = self._local.embed(["example"], Role.DOCUMENT)
        draw = np.random.default_rng(768).normal(size=(768, len(example)))
        self._rotation = np.linalg.qr(draw)[0].T

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        vectors = np.array(self._local.embed(texts, role, background=background))
        rotated: list[list[float]] = (vectors @ self._rotation).tolist()
        return rotated

    def count_tokens(self, text: str) -> int:
        return self._local.count_tokens(text)


class HashEmbedder:
    """An embedder that takes no time: of each word a direction, of a text their sum. So a text is near what
    it shares words with, as it is with a real one."""

    model, forms, remote, window, passage_tokens = "hashed", NO_FORMS, False, 8191, 512

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray[Any, Any]] = {}

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        return [np.sum([self._direction(word) for word in text.split()], axis=0).tolist() for text in texts]

    def _direction(self, word: str) -> np.ndarray[Any, Any]:
        if word not in self._known:
            self._known[word] = np.random.default_rng(list(word.encode())).normal(size=384)
        return self._known[word]

    def count_tokens(self, text: str) -> int:
        return len(text) // 4
