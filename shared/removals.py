"""Objects of Storage that no document has (sql/29_removals.sql) are deleted, each by a token that names it
and nothing else: whose it was may have left."""

import logging
import time

from shared.errors import RagError
from shared.postgrest import Database
from shared.sign import CALL_SECONDS, Signer, the_worker
from shared.storage import Storage
from shared.types import Principal

log = logging.getLogger("rag")
AT_ONCE = 20
# After which the rest is the next call's.
SECONDS = 15.0


def remove_due(database: Database, signer: Signer, storage: Storage) -> int:
    """How many went. What could not be deleted is due again later. Raises a RagError when nothing can be
    claimed."""
    removed, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        rows = database.call(the_worker(signer), "rag_claim_removals", {"wanted": AT_ONCE})
        for row in rows:
            try:
                _remove(database, signer, storage, row["org_id"], row["path"])
            except RagError as error:
                # The others would fare no better; their turn comes.
                log.warning("an object could not be removed: %s (%s)", error.code, error.because)
                return removed
            removed += 1
        if len(rows) < AT_ONCE:
            break
    return removed


def _remove(database: Database, signer: Signer, storage: Storage, org_id: str, path: str) -> None:
    token = signer.token(CALL_SECONDS, rag={"object": path})
    storage.remove(Principal("", token), path)
    database.call(the_worker(signer), "rag_end_removal", {"org_id": org_id, "path": path}, again=True)
