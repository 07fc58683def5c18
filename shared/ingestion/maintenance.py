"""Maintenance by the worker: objects of Storage, deleted collections, expired rows, the HNSW index.

A failure is logged, and the next call of the worker continues.
"""

import time

from shared.access.token_signer import CALL_SECONDS, Signer, worker_principal
from shared.clients.postgrest import Database
from shared.clients.supabase_storage import Storage
from shared.errors import logged
from shared.types import Principal

# The time limit of each task, and the failures in a row that end the removal of objects.
SECONDS, FAILURES = 15.0, 3
REMOVED_AT_ONCE = 20
# The functions that remove rows, and which rows.
REMOVALS = {
    "rag_remove_deleted_collections": "deleted collections",
    "rag_remove_expired_records": "expired records of requests",
    "rag_remove_old_calls": "old counts of calls and links",
}
# A second of the database, for which writers of these chunks may have to wait.
INSERTED_AT_ONCE = 100


def remove_due(database: Database, signer: Signer, storage: Storage) -> int:
    """Delete unused objects. Returns their number. After a failure an object is due again later."""
    removed, failed, until = 0, 0, time.monotonic() + SECONDS
    arguments = {"max_items": REMOVED_AT_ONCE}
    with logged("originals were not removed from Storage (%s); the next call tries again"):
        while rows := database.call(worker_principal(signer), "rag_claim_removals", arguments):
            for row in rows:
                if failed == FAILURES or time.monotonic() > until:
                    return removed
                if _is_removed(database, signer, storage, row["org_id"], row["path"]):
                    removed, failed = removed + 1, 0
                else:
                    failed += 1
    return removed


def _is_removed(database: Database, signer: Signer, storage: Storage, org_id: str, path: str) -> bool:
    # A token for one object alone deletes it (sql/40_storage), since its user may have left.
    caller = Principal("", signer.token(CALL_SECONDS, rag={"object": path}))
    arguments = {"org_id": org_id, "path": path}
    with logged("an original could not be removed from Storage (%s); the next call tries again"):
        storage.remove(caller, path)
        database.call(worker_principal(signer), "rag_end_removal", arguments, idempotent=True)
        return True
    return False


def remove_old_rows(database: Database, signer: Signer) -> None:
    """Remove deleted collections that have no document, and other rows that have expired."""
    for function, rows in REMOVALS.items():
        with logged(f"{rows} were not removed (%s); the next call tries again"):
            database.call(worker_principal(signer), function, {}, idempotent=True)


def extend_hnsw(database: Database, signer: Signer) -> None:
    """Insert the chunks of long tails into the HNSW index, in calls that begin within 15 seconds."""
    arguments, until = {"max_items": INSERTED_AT_ONCE}, time.monotonic() + SECONDS
    with logged("chunks were not inserted into the HNSW index (%s); the next call tries again"):
        while time.monotonic() < until:
            caller = worker_principal(signer)
            if not database.call(caller, "rag_extend_hnsw", arguments, long_timeout=True):
                break
