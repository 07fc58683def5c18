"""Graph extraction in the worker.

A document is extracted and stored in parts. A long one is postponed now and then, so that others get their
turn. Stored parts are not repeated, even if the worker dies.
"""

import time
from functools import partial

from shared.graph.rule_extractor import extract
from shared.ingestion.entities_of_chunks import CHUNKS_AT_ONCE
from shared.ingestion.job_queue import LEASE_SECONDS, BatchResult, Job, Jobs, attempt
from shared.types import Row

CLAIMED = 8
# The seconds of one document before others get their turn.
TURN_SECONDS = 15
# The rest of a round is postponed after these.
ROUND_SECONDS = 60


class GraphWorker:
    """Extracts claimed documents. Several workers at once never extract a document twice."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def build(self) -> BatchResult:
        """One round: some documents, each completed, failed or postponed. Raises a RagError for a failed
        claim."""
        jobs = self._jobs.claim("extraction", CLAIMED)
        total, until = BatchResult(claimed=len(jobs)), time.monotonic() + ROUND_SECONDS
        for job in jobs:
            action = self._extract if time.monotonic() < until else self._jobs.postpone
            total += attempt(self._jobs, job, partial(action, job))
        return total

    def _extract(self, job: Job) -> BatchResult:
        until = time.monotonic() + TURN_SECONDS
        while parts := self._jobs.call(job, "rag_open_extraction", {"max_chunks": CHUNKS_AT_ONCE}):
            (part,) = parts
            if not self._store(job, part):
                break
            if time.monotonic() > until:
                return self._jobs.postpone(job)
        return BatchResult(completed=1)

    def _store(self, job: Job, part: Row) -> bool:
        """Extract and store the part. Returns whether the document has more. Raises Conflict for a lost
        lease."""
        chunks = [named.row() for named in extract(part["title"], part["chunks"])]
        arguments = {"first": part["first"], "chunks": chunks, "lease_seconds": LEASE_SECONDS}
        return bool(self._jobs.call(job, "rag_store_extraction", arguments))
