"""The worker: queued documents become chunks that searches find.

    claim (job_queue.py) -> open, fetch, convert, chunk (prepare.py) -> embed -> store

The passages of several documents are embedded together. Only of a large document are embedding and storing
written as steps: a small one is done before a client looks.
"""

import time
from collections.abc import Iterator, Sequence

from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_storage import Storage
from shared.errors import RagError
from shared.ingestion.job_queue import BatchResult, Job, Jobs, JobScope, LeaseRenewer
from shared.ingestion.prepare import DocumentLoader, LoadedDocument
from shared.models.embeddings import EMBEDDED_AT_ONCE, Embedder, embed
from shared.models.transcription import Transcriber

# After which the rest of a round is left for the next: slow documents must not cost the others their leases.
READING_SECONDS = 60


class Worker:
    """Holds nothing between rounds. Several workers at once never process a document twice."""

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
        self._preparer = DocumentLoader(jobs, embedder, networks or AddressPolicy(), transcriber, storage)

    def work(self, count: int = 8) -> BatchResult:
        """One round: at most `count` jobs, each completed, failed with a reason, or postponed. Raises a
        RagError when nothing can be claimed."""
        jobs = self._jobs.claim(count)
        done = BatchResult(claimed=len(jobs))
        ready: list[LoadedDocument] = []
        leases = LeaseRenewer(self._jobs)
        until = time.monotonic() + READING_SECONDS
        for place, job in enumerate(jobs):
            if place and time.monotonic() > until:
                done += BatchResult(postponed=self._leave(jobs[place:]))
                break
            # A lost lease is noticed when the job's turn comes.
            leases.keep([*(item.job for item in ready), *jobs[place:]], "converting")
            with JobScope(self._jobs, job) as outcome:
                ready.append(self._preparer.prepare(job))
            done += outcome.became
        for place, (item, vectors) in enumerate(self._embedded(ready, leases)):
            leases.keep([later.job for later in ready[place:]], "storing")
            with JobScope(self._jobs, item.job) as outcome:
                if isinstance(vectors, RagError):
                    raise vectors
                self._store(item, vectors)
                done += BatchResult(completed=1)
            done += outcome.became
        return done

    def _leave(self, jobs: Sequence[Job]) -> int:
        """Postpone jobs that are not begun to the next round; how many."""
        for job in jobs:
            self._jobs.give_up(job, "left_for_later", "Other documents took too long. It is next.", 0)
        return len(jobs)

    def _embedded(
        self, ready: Sequence[LoadedDocument], leases: LeaseRenewer
    ) -> Iterator[tuple[LoadedDocument, list[list[float]] | RagError]]:
        """Each with its vectors, or the error. Documents share the embedder's batches."""
        waiting = [(item.job.id, passage) for item in ready for passage in item.chunked.passages]
        vectors: dict[str, list[list[float]]] = {item.job.id: [] for item in ready}
        failed = leases.report([item.job for item in ready if _is_large(item)], "embedding")
        for start in range(0, len(waiting), EMBEDDED_AT_ONCE):
            # All of them: those whose turn comes later must not lose their leases meanwhile.
            failed |= leases.keep([item.job for item in ready if item.job.id not in failed], "embedding")
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

    def _store(self, item: LoadedDocument, vectors: list[list[float]]) -> None:
        if _is_large(item):
            self._jobs.report(item.job, "storing")
        took = {"processing_time_ms": round((time.perf_counter() - item.started) * 1000)}
        document = {**item.row, "processing_info": {**item.row["processing_info"], **took}}
        arguments = {"document": document, "chunks": item.chunked.rows(vectors)}
        self._jobs.call(item.job, "rag_complete_job", arguments)


def _is_large(item: LoadedDocument) -> bool:
    """Whether its passages fill more than one batch of the embedder."""
    return len(item.chunked.passages) > EMBEDDED_AT_ONCE
