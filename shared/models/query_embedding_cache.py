"""Step three for a question: its vector, remembered from when the same user asked it before, or embedded.

What is remembered lives in Postgres, where all instances find it, and is each user's own: see
sql/60_search. Best effort: without it a question is embedded once more, and no search fails.
"""

import json
import logging
from hashlib import sha256

from shared.clients.http import deadline
from shared.clients.postgrest import Database
from shared.errors import DatabaseFailed, RagError
from shared.models.embeddings import DIMENSIONS, Embedder, embed, padded
from shared.types import Principal

# A memory that takes longer is not waited for: embedding would have been as fast.
PATIENCE_SECONDS = 1.0
log = logging.getLogger("rag")


def embed_query(
    database: Database, embedder: Embedder, caller: Principal, text: str, seconds: int
) -> list[float]:
    """The question's vector, of 1536 finite numbers, by a memory of so many seconds; 0 is none.

    A local embedder answers faster than the database and is always asked. Raises EmbeddingFailed.
    """
    if not (seconds and embedder.remote):
        return _embedded(embedder, text)
    question = {"hash": question_hash(caller, embedder.model, text), "max_age_seconds": seconds}
    try:
        known = _recall(database, caller, question)
    except RagError as error:
        # Nor is it worth trying to remember then.
        log.warning("a query's embedding could not be recalled (%s)", error.because)
        return _embedded(embedder, text)
    if known is None:
        known = _embedded(embedder, text)
        _remember(database, caller, {**question, "embedding": known})
    return known


def _recall(database: Database, caller: Principal, question: dict[str, object]) -> list[float] | None:
    """None when the caller has not asked this lately. Raises a RagError, also for what is no vector."""
    with deadline(PATIENCE_SECONDS):
        known = database.call(caller, "rag_get_query_embedding", question, again=True)
    if known is None:
        return None
    vector = padded(known)
    if len(known) != DIMENSIONS:
        raise DatabaseFailed
    return vector


def _remember(database: Database, caller: Principal, answered: dict[str, object]) -> None:
    """Before the answer, not beside it: Lambda freezes what still runs when the answer is out."""
    try:
        with deadline(PATIENCE_SECONDS):
            database.call(caller, "rag_put_query_embedding", answered, again=True)
    except RagError as error:
        log.warning("a query's embedding could not be remembered (%s)", error.because)


def _embedded(embedder: Embedder, text: str) -> list[float]:
    (vector,) = embed(embedder, [text])
    return vector


def question_hash(caller: Principal, model: str, text: str) -> str:
    """JSON keeps the three apart, whatever is in them. With the user in it, no list of hashes that was made
    beforehand fits."""
    return sha256(json.dumps([caller.user_id, model, text]).encode()).hexdigest()
