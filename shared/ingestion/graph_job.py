"""One document that the worker has claimed for extraction: its parts, results and end, in the name of the
job's user, with a token that names the lease (job_queue.py).
"""

import logging
from collections.abc import Sequence
from typing import Any

from shared.errors import RagError
from shared.graph.llm_extractor import TokenUsage
from shared.graph.types import Extraction
from shared.ingestion.entity_rows import READ_TOGETHER
from shared.ingestion.job_queue import Job, Jobs
from shared.types import Usage

log = logging.getLogger("rag")
Row = dict[str, Any]
# The error of a chunk whose reply from the model was invalid.
UNREADABLE = "unreadable_reply"


class Reading:
    """The database calls for one claimed document."""

    def __init__(self, jobs: Jobs, job: Job, lease_seconds: int) -> None:
        self._jobs = jobs
        self._job = job
        self._lease_seconds = lease_seconds
        self._tokens = {"prompt_tokens": 0, "completion_tokens": 0}
        self.spent = TokenUsage()

    def open(self) -> Row | None:
        """The next part: level, title, first, chunks; None when nothing is left."""
        rows = self._jobs.call(self._job, "rag_open_extraction", {"most": READ_TOGETHER})
        return rows[0] if rows else None

    def keep(self, first: int, names: Sequence[Extraction | None], model: str | None = None) -> bool:
        """Store the names of the chunks from `first` on; None leaves a chunk as it is. Returns whether there
        are more. Raises Conflict when the lease is lost."""
        arguments: Row = {
            "first": first,
            "chunks": [named.row() if named else {} for named in names],
            "lease_seconds": self._lease_seconds,
        }
        if model is not None:
            arguments["model"] = model
        if None in names:
            number = first + names.index(None) + 1
            message = f"What the model said of chunk {number} could not be read: there the rules' names stay."
            arguments |= {"code": UNREADABLE, "message": message}
        return bool(self._tell("rag_keep_extraction", arguments))

    def leave(self) -> None:
        """Postpone the rest of the document."""
        self._tell("rag_fail_extraction", {})

    def give_up(self, job: Job, code: str, message: str, pause: int | None, is_attempt: bool = True) -> None:
        """Write why the document was not read, and after how many seconds it is due again; never, for None.
        Without `is_attempt` the attempt does not count."""
        end: Row = {"retry_seconds": pause}
        if is_attempt:
            end |= {"code": code, "message": message[:500]}
        try:
            self._tell("rag_fail_extraction", end)
        except RagError as error:
            # Then the lease runs out.
            log.warning("reading %s: its end could not be written (%s)", job.id, error.because)

    def say_cost(self, model: str) -> None:
        """A log line, where a model was called."""
        self._count(self.spent.take())
        if any(self._tokens.values()):
            ids = {"org_id": self._job.org_id, "document_id": self._job.id}
            log.info("a document was read by a model", extra={**ids, "model": model, **self._tokens})

    def _tell(self, function: str, arguments: Row) -> Any:
        """A call with the tokens spent since the last one; a failed call adds them to the next."""
        paid = self.spent.take()
        try:
            result = self._jobs.call(self._job, function, {**arguments, **paid})
        except RagError:
            self.spent.add(Usage(**paid))
            raise
        self._count(paid)
        return result

    def _count(self, paid: dict[str, int]) -> None:
        self._tokens = {name: count + paid[name] for name, count in self._tokens.items()}
