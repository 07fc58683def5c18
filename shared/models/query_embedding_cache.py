"""Cache of query embeddings in Postgres, separate for each user.

All instances share it (sql/60_search). If it fails, the query is embedded again, and no search fails.
"""

import json
import logging
from hashlib import sha256

from shared.clients.http_client import deadline
from shared.clients.postgrest import Database
from shared.config import EmbeddingForm
from shared.errors import DatabaseFailed, RagError, logged
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed
from shared.models.vectors import DIMENSIONS, padded, vector_literal
from shared.types import Principal

# Time limit of a cache call: a new embedding takes about as long.
CACHE_TIMEOUT_SECONDS = 1.0
# How long a user's question stays cached.
CACHE_SECONDS = 3600
log = logging.getLogger("rag")


def embed_query(
    database: Database, embedder: Embedder, caller: Principal, text: str, seconds: int
) -> list[float]:
    """The query's vector of 1536 to 3072 finite numbers, from a cache entry that is at most `seconds` old, or
    embedded.

    An embedder that is as fast as the database is always used. Raises EmbeddingFailed.
    """
    if not seconds or embedder.is_fast:
        return _vector(embedder, text)
    query = {
        "hash": question_hash(caller, embedder.model, text, embedder.forms.question),
        "max_age_seconds": seconds,
    }
    try:
        vector = _recall(database, caller, query)
    except RagError as error:
        # A write would fail as well.
        log.warning(
            "the cache of query embeddings could not be read (%s): the model embeds the query",
            error.log_reason,
        )
        return _vector(embedder, text)
    if vector is None:
        vector = _vector(embedder, text)
        _remember(database, caller, {**query, "embedding": vector_literal(vector)})
    return vector


def _recall(database: Database, caller: Principal, query: dict[str, object]) -> list[float] | None:
    """The cached vector; None without one. Raises a RagError, also for a malformed vector."""
    with deadline(CACHE_TIMEOUT_SECONDS):
        value = database.call(caller, "rag_get_query_embedding", query, idempotent=True)
    if value is None:
        return None
    vector = padded(value)
    if len(value) < DIMENSIONS:
        raise DatabaseFailed
    return vector


def _remember(database: Database, caller: Principal, entry: dict[str, object]) -> None:
    """Not in the background: Lambda freezes the process after the response."""
    with logged("a query embedding could not be written to the cache (%s)"), deadline(CACHE_TIMEOUT_SECONDS):
        database.call(caller, "rag_put_query_embedding", entry, idempotent=True)


def _vector(embedder: Embedder, text: str) -> list[float]:
    (vector,) = embed(embedder, [text], Role.QUESTION)
    return vector


def question_hash(caller: Principal, model: str, text: str, form: EmbeddingForm = "") -> str:
    """The hash of a JSON list, which separates the values. The user's id serves as a salt."""
    values = [caller.user_id, model, text, *([form] if form else [])]
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
