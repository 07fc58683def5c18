"""Removal of unused objects of Storage and of deleted collections.

A token for one object alone deletes it (sql/40_storage), since its user may have left. A deleted
collection remains while it has private documents (sql/20_documents/22_delete_collections.sql).
"""

import logging
import time

from shared.access.token_signer import CALL_SECONDS, Signer, worker_principal
from shared.clients.postgrest import Database
from shared.clients.supabase_storage import Storage
from shared.errors import RagError
from shared.types import Principal

log = logging.getLogger("rag")
AT_ONCE = 20
# Seconds, and failures in a row, after which the next call continues.
SECONDS, FAILURES = 15.0, 3


def remove_due(database: Database, signer: Signer, storage: Storage) -> int:
    """Delete due objects. Returns their number. A failure is logged, and the object is due again later."""
    removed, failed, until = 0, 0, time.monotonic() + SECONDS
    try:
        while rows := database.call(worker_principal(signer), "rag_claim_removals", {"max_items": AT_ONCE}):
            for row in rows:
                if failed == FAILURES or time.monotonic() > until:
                    return removed
                if _is_removed(database, signer, storage, row["org_id"], row["path"]):
                    removed, failed = removed + 1, 0
                else:
                    failed += 1
    except RagError as error:
        log.warning(
            "originals were not removed from Storage: %s (%s); the next call tries again",
            error.code,
            error.log_reason,
        )
    return removed


def remove_deleted_collections(database: Database, signer: Signer) -> None:
    """Remove the deleted collections that have no document. A failure is logged; the next call repeats."""
    try:
        database.call(worker_principal(signer), "rag_remove_deleted_collections", {}, idempotent=True)
    except RagError as error:
        log.warning(
            "deleted collections were not removed: %s (%s); the next call tries again",
            error.code,
            error.log_reason,
        )


def _is_removed(database: Database, signer: Signer, storage: Storage, org_id: str, path: str) -> bool:
    token = signer.token(CALL_SECONDS, rag={"object": path})
    try:
        storage.remove(Principal("", token), path)
        database.call(
            worker_principal(signer), "rag_end_removal", {"org_id": org_id, "path": path}, idempotent=True
        )
    except RagError as error:
        log.warning(
            "an original could not be removed from Storage: %s (%s); a later call tries again",
            error.code,
            error.log_reason,
        )
        return False
    return True
