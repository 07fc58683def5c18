"""Worker that ingests queued documents.

    claim (job_queue.py) -> open, fetch, convert, chunk (document_loader.py) -> embed -> store

The passages of several documents are embedded together. Only a large document reports embedding and storing
as steps: a small one is done before a client polls.
"""

import time
from collections.abc import Iterator, Sequence
from functools import partial

from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_storage import Storage
from shared.errors import RagError
from shared.ingestion.document_loader import DocumentLoader, LoadedDocument
from shared.ingestion.job_queue import BatchResult, Job, Jobs, LeaseRenewer, attempt
from shared.models.embeddings import EMBEDDED_AT_ONCE, Embedder, embed
from shared.models.transcription import Transcriber

# The rest of a round is postponed after these, so that slow documents do not cost the others their leases.
READING_SECONDS = 60


class Worker:
    """Has no state between rounds. Several workers at once never process a document twice."""

    def __init__(
        self,
        jobs: Jobs,
        embedder: Embedder,
        networks: AddressPolicy | None = None,
        transcriber: Transcriber | None = None,
        storage: Storage | None = None,
    ) -> None:
        self._jobs = jobs
        self._embedder = embedder
        self._loader = DocumentLoader(jobs, embedder, networks or AddressPolicy(), transcriber, storage)

    def work(self, count: int = 8) -> BatchResult:
        """One round: at most `count` jobs, each completed, failed or postponed. Raises a RagError for a
        failed claim."""
        jobs = self._jobs.claim(count)
        total = BatchResult(claimed=len(jobs))
        ready: list[LoadedDocument] = []
        leases = LeaseRenewer(self._jobs)
        until = time.monotonic() + READING_SECONDS
        for place, job in enumerate(jobs):
            if place and time.monotonic() > until:
                total += BatchResult(postponed=self._postpone(jobs[place:]))
                break
            # A lost lease is noticed when the job's turn comes.
            leases.renew([*(item.job for item in ready), *jobs[place:]], "converting")
            total += attempt(self._jobs, job, partial(self._load, job, ready))
        for place, (item, vectors) in enumerate(self._embedded(ready, leases)):
            leases.renew([later.job for later in ready[place:]], "storing")
            total += attempt(self._jobs, item.job, partial(self._store, item, vectors))
        return total

    def _load(self, job: Job, ready: list[LoadedDocument]) -> BatchResult:
        ready.append(self._loader.load(job))
        return BatchResult()

    def _postpone(self, jobs: Sequence[Job]) -> int:
        """Postpone jobs that have not begun. Returns their number."""
        for job in jobs:
            self._jobs.fail(job, "left_for_later", "Other documents took too long. This one is next.", 0)
        return len(jobs)

    def _embedded(
        self, ready: Sequence[LoadedDocument], leases: LeaseRenewer
    ) -> Iterator[tuple[LoadedDocument, list[list[float]] | RagError]]:
        """Each document with its vectors, or with an error. Documents share the embedder's batches."""
        waiting = [(item.job.id, passage) for item in ready for passage in item.chunked.passages]
        vectors: dict[str, list[list[float]]] = {item.job.id: [] for item in ready}
        failed = leases.report([item.job for item in ready if _is_large(item)], "embedding")
        for start in range(0, len(waiting), EMBEDDED_AT_ONCE):
            # Documents whose batch comes later keep their leases too.
            failed |= leases.renew([item.job for item in ready if item.job.id not in failed], "embedding")
            turn = waiting[start : start + EMBEDDED_AT_ONCE]
            part = [(job_id, passage) for job_id, passage in turn if job_id not in failed]
            try:
                batch = embed(self._embedder, [passage for _, passage in part], background=True)
            except RagError as error:
                failed |= {job_id: error for job_id, _ in part}
                continue
            for (job_id, _), vector in zip(part, batch, strict=True):
                vectors[job_id].append(vector)
        for item in ready:
            yield item, failed.get(item.job.id) or vectors[item.job.id]

    def _store(self, item: LoadedDocument, vectors: list[list[float]] | RagError) -> BatchResult:
        if isinstance(vectors, RagError):
            raise vectors
        if _is_large(item):
            self._jobs.report(item.job, "storing")
        took = {"processing_time_ms": round((time.perf_counter() - item.started) * 1000)}
        document = {**item.row, "processing_info": {**item.row["processing_info"], **took}}
        arguments = {"document": document, "chunks": item.chunked.rows(vectors)}
        self._jobs.call(item.job, "rag_complete_job", arguments)
        return BatchResult(completed=1)


def _is_large(item: LoadedDocument) -> bool:
    """Whether the passages fill more than one batch of the embedder."""
    return len(item.chunked.passages) > EMBEDDED_AT_ONCE
