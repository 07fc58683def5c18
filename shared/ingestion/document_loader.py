"""Loading of queued documents: open, fetch, convert, chunk."""

import base64
import hashlib
import time
from dataclasses import dataclass
from typing import Any

from shared.clients.download import fetch
from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_storage import Storage
from shared.errors import NotFound, StorageFailed, UnreadableDocument
from shared.ingestion.chunking.passages import ChunkedDocument, ChunkingConfig, chunk_document
from shared.ingestion.chunking.strategy import ChunkingPlan
from shared.ingestion.file_to_markdown import convert
from shared.ingestion.file_type import language_of_file
from shared.ingestion.job_queue import LEASE_SECONDS, Job, Jobs
from shared.models.embeddings import Embedder
from shared.models.transcription import Transcriber

# More would exceed the minute of a statement.
MAX_CHUNKS = 10_000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """A document that is ready for embedding: its row and its chunks."""

    job: Job
    row: Row
    chunked: ChunkedDocument
    started: float


class DocumentLoader:
    """Loads documents, each in the name of its job's user."""

    def __init__(
        self,
        jobs: Jobs,
        embedder: Embedder,
        networks: AddressPolicy,
        transcriber: Transcriber | None,
        storage: Storage | None,
    ) -> None:
        self._jobs = jobs
        self._embedder = embedder
        self._networks = networks
        self._transcriber = transcriber
        self._storage = storage

    def load(self, job: Job) -> LoadedDocument:
        """Raises a RagError of the document or of a service."""
        started = time.perf_counter()
        (opened,) = self._jobs.call(job, "rag_open_job", {"lease_seconds": LEASE_SECONDS})
        row: Row = opened["document"]
        data = self._original(job, opened, row)
        converted = convert(data, row.get("filename"), row.get("content_type"), self._transcriber)
        if converted.title and not row.get("has_title"):
            row["title"] = converted.title
        language = language_of_file(row.get("filename")) if converted.kind == "code" else None
        metadata = row.get("metadata") or {}
        plan = ChunkingPlan.of(metadata, converted.text, converted.kind, row["title"], language)
        chunked = chunk_document(
            self._embedder,
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
            "embedding_model": self._embedder.model,
            "processing_info": {
                "service_used": converted.kind,
                "chunk_strategy": plan.strategy,
                "chunk_size": chunked.sizes.size,
                "chunk_overlap": chunked.sizes.overlap,
                "document_type": plan.document_type,
                "embedding_model": self._embedder.model,
            },
        }
        return LoadedDocument(job, row, chunked, started)

    def _original(self, job: Job, opened: Row, row: Row) -> bytes:
        """The document's bytes. Adds the fields of a fetched or uploaded file to the row."""
        if opened["path"]:
            data = self._object(job, opened["path"], opened["file_bytes"])
        elif opened["url"]:
            fetched = fetch(opened["url"], self._networks, opened["file_bytes"], job.org_id)
            data = fetched.data
            # Stored as the document's original.
            row |= {"content_type": fetched.content_type, "filename": fetched.filename}
            row["bytes"] = base64.b64encode(data).decode()
        else:
            return base64.b64decode(opened["bytes"])
        row["size_bytes"] = len(data)
        content = {"content_hash": hashlib.sha256(data).hexdigest(), "lease_seconds": LEASE_SECONDS}
        self._jobs.call(job, "rag_store_content", content)
        return data

    def _object(self, job: Job, path: str, max_bytes: int | None) -> bytes:
        """Raises UnreadableDocument for a missing object or one above the tier's limit, StorageFailed."""
        if self._storage is None:
            raise StorageFailed(log_reason="no bucket is set")
        try:
            return self._storage.download(self._jobs.caller(job), path, max_bytes)
        except NotFound:
            message = "The uploaded file no longer exists: upload it again."
            raise UnreadableDocument(message, code="original_gone") from None
