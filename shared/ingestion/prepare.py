"""A document that was brought, made ready to be embedded:

open -> (fetch) -> convert -> cut
"""

import base64
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.clients.download import fetch
from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_storage import Storage
from shared.errors import NotFound, StorageFailed, UnreadableDocument
from shared.ingestion.chunking.outline import Outline
from shared.ingestion.chunking.packer import Chunk
from shared.ingestion.chunking.passages import chunk_document
from shared.ingestion.chunking.splitters import headings
from shared.ingestion.chunking.strategy import Plan
from shared.ingestion.convert import convert
from shared.ingestion.entity_rows import is_graphed, names_of
from shared.ingestion.file_type import language_of_file
from shared.ingestion.job_queue import Job, Jobs
from shared.models.chunk_limits import configured
from shared.models.embeddings import Embedder
from shared.models.transcription import Transcriber

# A document of more has no minute to be stored in.
MAX_CHUNKS = 10_000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """What is stored of a document, what its chunks name, and the passages still to be embedded."""

    job: Job
    document: Row
    chunks: Sequence[Chunk]
    passages: Sequence[str]
    outline: Outline
    named: Sequence[Row] | None
    started: float


class DocumentLoader:
    """Reads documents from wherever they are. `jobs`: in whose name."""

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

    def prepare(self, job: Job) -> LoadedDocument:
        """Raises a RagError: of the document, or of what it takes to read it."""
        started = time.perf_counter()
        (opened,) = self._jobs.call(job, "rag_open_job", {})
        said: Row = opened["document"]
        data = self._original(job, opened, said)
        converted = convert(data, said.get("filename"), said.get("content_type"), self._transcriber)
        if converted.title and not said.get("has_title"):
            said["title"] = converted.title
        config = opened["config"]
        size, overlap = configured(config, job.id)
        language = language_of_file(said.get("filename")) if converted.kind == "code" else None
        metadata = said.get("metadata") or {}
        plan = Plan.of(metadata, converted.text, converted.kind, said["title"], language)
        chunks, passages, sizes = chunk_document(
            self._embedder,
            said["title"],
            converted.text,
            said.get("lang"),
            size=size,
            overlap=overlap,
            plan=plan,
        )
        if len(chunks) > MAX_CHUNKS:
            raise UnreadableDocument(
                f"The document makes more than {MAX_CHUNKS:,} chunks; divide it, or make them larger.",
                code="document_too_large",
            )
        document = {
            **said,
            "content": converted.text,
            "embedding_model": self._embedder.model,
            "processing_info": {
                "service_used": converted.kind,
                "chunk_strategy": plan.strategy,
                "chunk_size": sizes.size,
                "chunk_overlap": sizes.overlap,
                "document_type": plan.document_type,
                "embedding_model": self._embedder.model,
            },
        }
        outline = Outline(converted.text, converted.pages, headings(converted.text, plan))
        named = names_of(said["title"], [item.text for item in chunks]) if is_graphed(config) else None
        return LoadedDocument(job, document, chunks, passages, outline, named, started)

    def _original(self, job: Job, opened: Row, said: Row) -> bytes:
        """What the document is made of. What is only known now is added to what was said of it."""
        is_elsewhere = bool(opened["url"] or opened["path"])
        if is_elsewhere:
            self._jobs.report(job, "fetching")
        if opened["path"]:
            data = self._object(job, opened["path"], opened["file_bytes"])
        elif opened["url"]:
            fetched = fetch(opened["url"], self._networks, opened["file_bytes"], job.org_id)
            data = fetched.data
            # Kept as the original that it was made of.
            said |= {"content_type": fetched.content_type, "filename": fetched.filename}
            said["bytes"] = base64.b64encode(data).decode()
        else:
            data = base64.b64decode(opened["bytes"])
        if is_elsewhere:
            said["size_bytes"] = len(data)
            self._jobs.call(job, "rag_keep_content", {"content_hash": hashlib.sha256(data).hexdigest()})
        self._jobs.report(job, "converting")
        return data

    def _object(self, job: Job, path: str, max_bytes: int | None) -> bytes:
        """Raises UnreadableDocument for one that is gone, or larger than the tier takes, StorageFailed."""
        if self._storage is None:
            raise StorageFailed(because="no bucket is set")
        try:
            return self._storage.download(self._jobs.caller(job), path, max_bytes)
        except NotFound:
            message = "The file is not where it was uploaded any more: bring it again."
            raise UnreadableDocument(message, code="original_gone") from None
