"""Database calls for a document that the graph worker has claimed (job_queue.py)."""

import logging
from collections.abc import Sequence
from typing import Any

from shared.errors import RagError
from shared.graph.llm_extractor import total_tokens
from shared.graph.types import Extraction
from shared.ingestion.entities_of_chunks import CHUNKS_AT_ONCE
from shared.ingestion.job_queue import Job, Jobs
from shared.types import Usage

log = logging.getLogger("rag")
Row = dict[str, Any]
# The error of a chunk whose reply from the model was invalid.
UNREADABLE = "unreadable_reply"


class ExtractionJob:
    """One claimed document. Calls are in the name of the job's user, with a token for the lease."""

    def __init__(self, jobs: Jobs, job: Job, lease_seconds: int) -> None:
        self._jobs = jobs
        self._job = job
        self._lease_seconds = lease_seconds
        # The model's calls, and how many of them the database knows. Several threads add calls.
        self.usage: list[Usage] = []
        self._written = 0

    def next_part(self) -> Row | None:
        """The next part: level, title, first, chunks; None when nothing is left."""
        rows = self._jobs.call(self._job, "rag_open_extraction", {"max_chunks": CHUNKS_AT_ONCE})
        return rows[0] if rows else None

    def store(self, first_chunk: int, names: Sequence[Extraction | None], model: str | None = None) -> bool:
        """Store the names of the chunks from `first_chunk` on; None leaves a chunk as it is. Returns whether
        the document has more chunks. Raises Conflict for a lost lease."""
        arguments: Row = {
            "first": first_chunk,
            "chunks": [named.row() if named else {} for named in names],
            "lease_seconds": self._lease_seconds,
        }
        if model is not None:
            arguments["model"] = model
        if None in names:
            number = first_chunk + names.index(None) + 1
            message = f"The model's reply for chunk {number} was invalid. The chunk keeps the names by rules."
            arguments |= {"code": UNREADABLE, "message": message}
        return bool(self._call("rag_store_extraction", arguments))

    def postpone(self) -> None:
        self._call("rag_fail_extraction", {})

    def fail(self, job: Job, code: str, message: str, pause: int | None, is_attempt: bool = True) -> None:
        """Write the error, and the seconds until the document is due again; None for never. Without
        `is_attempt` the attempt does not count."""
        end: Row = {"retry_seconds": pause}
        if is_attempt:
            end |= {"code": code, "message": message[:500]}
        try:
            self._call("rag_fail_extraction", end)
        except RagError as error:
            # The lease will expire.
            log.warning(
                "extraction of %s: its end could not be written (%s); it is repeated after its lease",
                job.id,
                error.log_reason,
            )

    def log_usage(self, model: str) -> None:
        """Log the tokens of the model's calls, if there were any."""
        if any((tokens := total_tokens(self.usage)).values()):
            ids = {"org_id": self._job.org_id, "document_id": self._job.id}
            log.info(
                "RAG_GRAPH_MODEL extracted entities of a document", extra={**ids, "model": model, **tokens}
            )

    def _call(self, function: str, arguments: Row) -> Any:
        """A call with the tokens that no successful call has written."""
        count = len(self.usage)
        tokens = total_tokens(self.usage[self._written : count])
        result = self._jobs.call(self._job, function, {**arguments, **tokens})
        self._written = count
        return result
