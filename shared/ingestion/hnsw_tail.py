"""Insertion of stored chunks into the HNSW index (sql/20_documents/57_chunks_outside_hnsw.sql)."""

import logging
import time

from shared.access.token_signer import Signer, worker_principal
from shared.clients.postgrest import Database
from shared.errors import RagError

log = logging.getLogger("rag")
# A second of the database, for which writers of these chunks may have to wait.
AT_ONCE = 100
# After these, the next call of the worker continues.
SECONDS = 15.0


def extend_hnsw(database: Database, signer: Signer) -> int:
    """Insert chunks until every org's tail is short. Returns their number. A failure is logged; the next call
    continues."""
    added, until = 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            count = database.call(
                worker_principal(signer), "rag_extend_hnsw", {"max_items": AT_ONCE}, long_timeout=True
            )
            added += count
            if count == 0:
                break
    except RagError as error:
        log.warning("chunks were not inserted into the HNSW index: %s (%s)", error.code, error.log_reason)
    return added
