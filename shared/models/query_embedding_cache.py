"""Cache of query embeddings in the process, separate for each user.

A search and the answer to the same question embed it once. A cache that users share would reveal by its speed
that another user asked the same. An API key shares its owner's, whatever it is narrowed to: an embedding
depends on a text and a model alone.
"""

from array import array
from hashlib import sha256
from threading import Lock

from cachetools import TTLCache

from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed
from shared.types import Principal

# At most 25 MB, with 3072 dimensions. The questions of one user displace at most 64 of other users.
MAX_EMBEDDINGS, MAX_OF_A_USER, CACHE_SECONDS = 1024, 64, 3600


class QueryEmbeddingCache:
    """Safe to use from many threads. Contains hashes in place of texts, which may be long."""

    def __init__(self) -> None:
        self._vectors: TTLCache[tuple[str, bytes], array[float]] = TTLCache(MAX_EMBEDDINGS, CACHE_SECONDS)
        self._lock = Lock()

    def embed(self, embedder: Embedder, caller: Principal, text: str) -> list[float]:
        """The query's vector of 1536 to 3072 finite numbers. Raises EmbeddingFailed."""
        # The literal of a tuple separates its values.
        values = (embedder.model, embedder.forms.question, text)
        key = caller.user_id, sha256(repr(values).encode()).digest()
        with self._lock:
            cached = self._vectors.get(key)
        if cached is not None:
            return cached.tolist()
        (vector,) = embed(embedder, [text], Role.QUESTION)
        with self._lock:
            own = [each for each in self._vectors if each[0] == caller.user_id]
            if len(own) >= MAX_OF_A_USER:
                self._vectors.pop(own[0], None)
            self._vectors[key] = array("d", vector)
        return vector
