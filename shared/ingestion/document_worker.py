"""Worker that ingests queued documents.

    claim (job_queue.py) -> open, fetch, convert, chunk -> embed -> store

The passages of several documents are embedded together. Only a large document reports embedding and storing
as steps: a small one is done before a client polls.
"""

import base64
import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from shared.access.token_usage import Quota, TokenUsage, measured, shares
from shared.clients.download import fetch
from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_storage import Storage
from shared.errors import EmbeddingFailed, NotFound, RagError, StorageFailed, UnreadableDocument
from shared.ingestion.chunking.chunked_document import ChunkedDocument, ChunkingConfig, chunk_document
from shared.ingestion.chunking.strategy import ChunkingPlan
from shared.ingestion.file_to_markdown import convert
from shared.ingestion.file_type import language_of_file
from shared.ingestion.filter_fields import fields_of
from shared.ingestion.job_queue import (
    LEASE_SECONDS,
    BatchResult,
    BusyOrgs,
    Job,
    Jobs,
    LeaseRenewer,
    attempt,
    end_attempt,
)
from shared.ingestion.web_page import require_content
from shared.models.embedding_roles import Role
from shared.models.embeddings import EMBEDDED_AT_ONCE, Embedder, embed
from shared.models.transcription import Transcriber
from shared.models.vectors import vector_literal
from shared.types import Principal, Row

# The rest of a round is postponed after so many seconds of reading or so many passages, so that slow and
# large documents do not cost the others their leases, and other orgs their turn.
READING_SECONDS = 60
PASSAGES_OF_A_ROUND = 1_000
# Documents whose rows the database writes at the same time.
STORED_AT_ONCE = 3
# More would exceed the minute of a statement.
MAX_CHUNKS = 10_000


@dataclass(frozen=True, slots=True)
class _LoadedDocument:
    """A document that is ready for embedding: its row, its chunks, and the vectors of the first passages, if
    the embedder failed after them in the last attempt."""

    job: Job
    row: Row
    chunked: ChunkedDocument
    embedder: Embedder
    started: float
    passages_hash: str
    vectors: list[list[float]]

    @property
    def is_large(self) -> bool:
        """Whether the passages fill more than one batch of the embedder."""
        return len(self.chunked.passages) > EMBEDDED_AT_ONCE


# A document with its vectors: all of them, or with an error those of its first passages.
_Embedded = tuple[_LoadedDocument, list[list[float]], RagError | None]


class Worker:
    """Several workers, and several threads of one, never process a document twice. A round is of one org, so
    that its slow documents delay no other org's; `busy` has the orgs of the other threads' rounds."""

    def __init__(
        self,
        jobs: Jobs,
        embedder: Embedder,
        networks: AddressPolicy | None = None,
        transcriber: Transcriber | None = None,
        storage: Storage | None = None,
        embedder_of_org: Callable[[Principal], Embedder] | None = None,
        busy: BusyOrgs | None = None,
    ) -> None:
        """`embedder_of_org`: in place of `embedder`, the embedder of a caller's org."""
        self._jobs = jobs
        self._embedder_of_org = embedder_of_org or (lambda _: embedder)
        self._networks = networks or AddressPolicy()
        self._transcriber = transcriber
        self._storage = storage
        self._busy = busy or BusyOrgs()

    def work(self, count: int = 8) -> BatchResult:
        """One round: at most `count` jobs of an org, each completed, failed or postponed. Raises a RagError
        for a failed claim."""
        claim = partial(self._jobs.claim, "ingestion", count)
        with self._busy.round(claim, lambda job: job.org_id) as jobs:
            return self._process(jobs)

    def _process(self, jobs: Sequence[Job]) -> BatchResult:
        total = BatchResult(claimed=len(jobs))
        ready: list[_LoadedDocument] = []
        leases = LeaseRenewer(self._jobs)
        until = time.monotonic() + READING_SECONDS
        for position, job in enumerate(jobs):
            passages = sum(len(item.chunked.passages) for item in ready)
            if position and (time.monotonic() > until or passages >= PASSAGES_OF_A_ROUND):
                total += attempt(self._jobs, job, partial(self._jobs.postpone, job))
                continue
            # A lost lease is noticed when the job's turn comes.
            leases.renew([*(item.job for item in ready), *jobs[position:]], "converting")
            total += attempt(self._jobs, job, partial(self._prepare, job, ready))

        # Both before later passages are embedded and before a document is stored that waited for others.
        def renew_from(position: int) -> None:
            leases.renew([later.job for later in ready[position:]], "storing")

        def store(
            position: int, item: _LoadedDocument, vectors: list[list[float]], error: RagError | None
        ) -> BatchResult:
            renew_from(position)
            return attempt(self._jobs, item.job, partial(self._store, item, vectors, error))

        stored: list[Future[BatchResult]] = []
        with ThreadPoolExecutor(STORED_AT_ONCE) as pool:
            # The passages of later documents are embedded meanwhile.
            for position, embedded in enumerate(self._embedded_by_model(ready, leases)):
                renew_from(position)
                stored.append(pool.submit(store, position, *embedded))
        return sum((one.result() for one in stored), total)

    def _prepare(self, job: Job, ready: list[_LoadedDocument]) -> BatchResult:
        ready.append(self._load(job))
        return BatchResult()

    def _embedded_by_model(self, ready: list[_LoadedDocument], leases: LeaseRenewer) -> Iterator[_Embedded]:
        # In the order of the result, by which later documents keep their leases.
        ready.sort(key=lambda item: item.embedder.model)
        for _, items in groupby(ready, lambda item: item.embedder.model):
            yield from self._embedded(list(items), leases)

    def _embedded(self, ready: Sequence[_LoadedDocument], leases: LeaseRenewer) -> Iterator[_Embedded]:
        """Each document, as soon as it has its vectors or an error. Documents share the embedder's
        batches."""
        waiting = [
            (item.job.id, passage) for item in ready for passage in item.chunked.passages[len(item.vectors) :]
        ]
        vectors: dict[str, list[list[float]]] = {item.job.id: [*item.vectors] for item in ready}
        items = {item.job.id: item for item in ready}
        pending = deque(ready)
        failed = leases.report([item.job for item in ready if item.is_large], "embedding")
        for start in range(0, len(waiting), EMBEDDED_AT_ONCE):
            # Documents whose batch comes later keep their leases too.
            failed |= leases.renew([item.job for item in ready if item.job.id not in failed], "embedding")
            turn = waiting[start : start + EMBEDDED_AT_ONCE]
            # Once more without the document of a passage that cannot be embedded.
            while part := [(job_id, passage) for job_id, passage in turn if job_id not in failed]:
                try:
                    with measured() as usage:
                        passages = [passage for _, passage in part]
                        batch = embed(ready[0].embedder, passages, Role.DOCUMENT, background=True)
                except RagError as error:
                    failed |= _failed(error, part, items)
                else:
                    for (job_id, _), vector in zip(part, batch, strict=True):
                        vectors[job_id].append(vector)
                    break
                finally:
                    for job_id, own in _by_job(usage, part):
                        self._jobs.record_tokens(items[job_id].job, own)
            while pending and (
                pending[0].job.id in failed
                or len(vectors[pending[0].job.id]) == len(pending[0].chunked.passages)
            ):
                item = pending.popleft()
                yield item, vectors[item.job.id], failed.get(item.job.id)
        for item in pending:
            yield item, vectors[item.job.id], failed.get(item.job.id)

    def _store(
        self, item: _LoadedDocument, vectors: list[list[float]], error: RagError | None
    ) -> BatchResult:
        if error:
            job = item.job
            if isinstance(error, EmbeddingFailed) and len(vectors) > len(item.vectors):
                embeddings = [*map(vector_literal, vectors)]
                job = self._jobs.report(job, "embedding", item.passages_hash, embeddings)
            return end_attempt(self._jobs, job, error)
        if item.is_large:
            self._jobs.report(item.job, "storing")
        took = {"processing_time_ms": round((time.perf_counter() - item.started) * 1000)}
        document = {**item.row, "processing_info": {**item.row["processing_info"], **took}}
        arguments = {"document": document, "chunks": item.chunked.rows(vectors)}
        self._jobs.call(item.job, "rag_complete_job", arguments)
        return BatchResult(completed=1)

    def _load(self, job: Job) -> _LoadedDocument:
        """Open, fetch, convert and chunk a document. Raises a RagError of the document or of a service."""
        started = time.perf_counter()
        (opened,) = self._jobs.call(job, "rag_open_job", {"lease_seconds": LEASE_SECONDS})
        row: Row = opened["document"]
        embedder = self._embedder_of_org(self._jobs.caller(job))
        data = self._original(job, opened, row)
        converted = convert(data, row.get("filename"), row.get("content_type"), self._transcriber)
        if converted.title and not row.get("has_title"):
            row["title"] = converted.title
        language = language_of_file(row.get("filename")) if converted.kind == "code" else None
        metadata = {**converted.metadata, **(row.get("metadata") or {})}
        if converted.metadata:
            own = {name: value for name, value in row.items() if value is not None}
            row |= {**fields_of(metadata), **own, "metadata": metadata}
        plan = ChunkingPlan.of(metadata, converted.text, converted.kind, row["title"], language)
        chunked = chunk_document(
            embedder,
            row["title"],
            converted.text,
            row.get("lang"),
            ChunkingConfig.of_collection({"config": opened["config"], "id": job.id}),
            plan=plan,
            pages=converted.pages,
            max_chunks=MAX_CHUNKS,
        )
        row |= {
            "content": converted.text,
            "embedding_model": embedder.model,
            "processing_info": {
                "service_used": converted.kind,
                "chunk_strategy": plan.strategy,
                "chunk_size": chunked.sizes.size,
                "chunk_overlap": chunked.sizes.overlap,
                "document_type": plan.document_type,
                "embedding_model": embedder.model,
                **({"notes": converted.notes} if converted.notes else {}),
            },
        }
        texts = json.dumps([embedder.model, *chunked.passages])
        passages_hash = hashlib.sha256(texts.encode()).hexdigest()
        embeddings = opened["embeddings"] if opened["passages_hash"] == passages_hash else []
        vectors = [json.loads(vector) for vector in embeddings]
        return _LoadedDocument(job, row, chunked, embedder, started, passages_hash, vectors)

    def _original(self, job: Job, opened: Row, row: Row) -> bytes:
        """The document's bytes. Adds the fields of a fetched or uploaded file to the row."""
        if opened["path"]:
            data = self._object(job, opened["path"], opened["file_bytes"])
        elif opened["url"]:
            fetched = fetch(opened["url"], self._networks, opened["file_bytes"], job.org_id)
            require_content(fetched)
            data = fetched.data
            # Stored as the document's original.
            row |= {"content_type": fetched.content_type, "filename": fetched.filename}
            row["bytes"] = base64.b64encode(data).decode()
        elif opened["bytes"] is None:
            raise _original_gone()
        else:
            return base64.b64decode(opened["bytes"])
        row["size_bytes"] = len(data)
        content = {"content_hash": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
        self._jobs.call(job, "rag_store_content", {**content, "lease_seconds": LEASE_SECONDS})
        return data

    def _object(self, job: Job, path: str, max_bytes: int | None) -> bytes:
        """Raises UnreadableDocument for a missing object or one above the tier's limit, StorageFailed."""
        if self._storage is None:
            raise StorageFailed(log_reason="no bucket is set")
        try:
            return self._storage.download(self._jobs.caller(job), path, max_bytes)
        except NotFound:
            raise _original_gone() from None


def _original_gone() -> UnreadableDocument:
    return UnreadableDocument("The uploaded file no longer exists: upload it again.", code="original_gone")


def _failed(
    error: RagError, part: Sequence[tuple[str, str]], items: Mapping[str, _LoadedDocument]
) -> dict[str, RagError]:
    """The errors of a batch by job: of one job, if one passage is the cause."""
    if not isinstance(error, EmbeddingFailed) or error.text is None:
        return {job_id: error for job_id, _ in part}
    job_id, passage = part[error.text]
    item = items[job_id]
    return {job_id: error.of_passage(item.row["title"], item.chunked.passages.index(passage) + 1)}


def _by_job(usage: TokenUsage, part: Sequence[tuple[str, str]]) -> Iterator[tuple[str, TokenUsage]]:
    """The tokens of a batch, divided among the jobs of its passages by their length."""
    if not usage.calls:
        return
    characters: Counter[str] = Counter()
    for job_id, passage in part:
        characters[job_id] += len(passage)
    tokens = shares(usage.tokens(Quota.EMBEDDING), list(characters.values()))
    for job_id, own in zip(characters, tokens, strict=True):
        yield job_id, TokenUsage([(Quota.EMBEDDING, own)])
