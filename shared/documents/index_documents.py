"""Documents of an index, named by the SHA-256 of their first text."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.access.concurrent_ingestion_limit import UNGUARDED, Guard
from shared.clients.postgrest import Database
from shared.documents import collections
from shared.documents.documents import first_words, title_of
from shared.documents.named_collections import DocumentState, existing_documents, find, find_or_none
from shared.errors import error_details
from shared.ingestion.chunking.chunked_document import ChunkingConfig
from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.models.embeddings import Embedder
from shared.text.normalize import clean
from shared.types import Principal, PrincipalSource


class IndexDocumentRow(DocumentState):
    content: str


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A document of a request. Its name is new, or that of an existing document."""

    name: str
    text: str
    metadata: dict[str, Any]

    @classmethod
    def new(cls, text: str, metadata: dict[str, Any]) -> "IndexDocument":
        return cls(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text, metadata)

    def row(self) -> "IndexDocumentRow":
        text = clean(self.text)
        return {
            "name": self.name,
            "content": text,
            "content_hash": hashlib.sha256(text.encode()).hexdigest(),
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The results of changes, as rows. Absent documents have the rows of the request."""

    updated: list[IndexDocumentRow]
    unchanged: list[IndexDocumentRow]
    absent: list[IndexDocumentRow]


def add(
    database: Database,
    embedder: Embedder,
    caller: PrincipalSource,
    index: str,
    texts: Sequence[IndexDocument],
    guard: Guard = UNGUARDED,
) -> list[IndexDocumentRow]:
    """Add documents. Returns them in order. A new index is created with its first document. A document with
    the same text remains as it is; one whose text has changed is replaced. Raises as ingest."""
    if not texts:
        return []
    collection = find_or_none(database, caller, index)
    by_name = {text.name: text for text in texts}
    existing = existing_documents(database, caller, index, list(by_name)) if collection and by_name else {}
    rows = {name: text.row() for name, text in by_name.items()}
    equal = {name: row for name, row in existing.items() if _has_text(row, rows[name])}
    new = [text for name, text in by_name.items() if name not in equal]
    config = ChunkingConfig.of_collection(collection)
    ingest_many(database, embedder, caller, index, new_documents(new), config=config, guard=guard)
    for name, row in equal.items():
        rows[name]["metadata"] = row["metadata"]
    return [rows[text.name] for text in texts]


def change(
    database: Database,
    embedder: Embedder,
    caller: PrincipalSource,
    index: str,
    texts: Iterable[IndexDocument],
    guard: Guard = UNGUARDED,
) -> ChangeResult:
    """Replace texts and metadata of existing documents. Of several changes of one document the last counts.
    Raises NotFound for the index, and as ingest."""
    collection = find(database, caller, index)
    rows = {text.name: text.row() for text in texts}
    by_name = {text.name: text for text in texts}
    existing = existing_documents(database, caller, index, list(by_name)) if by_name else {}
    equal = [
        name
        for name, row in existing.items()
        if _has_text(row, rows[name]) and _canonical(row["metadata"]) == _canonical(by_name[name].metadata)
    ]
    other = [by_name[name] for name in existing if name not in equal]
    stored = ingest_many(
        database,
        embedder,
        caller,
        index,
        new_documents(other),
        config=ChunkingConfig.of_collection(collection),
        only_present=True,
        guard=guard,
    )
    # A document that was deleted meanwhile is absent.
    updated = [text.name for text, result in zip(other, stored, strict=True) if result]
    return ChangeResult(
        [rows[name] for name in updated],
        [rows[name] for name in equal],
        [row for name, row in rows.items() if name not in {*updated, *equal}],
    )


def delete(database: Database, caller: Principal, index: str) -> None:
    """Delete the index with its documents (collections.delete). Raises NotFound."""
    collection = find(database, caller, index)
    with error_details(name=index):
        collections.delete(database, caller, collection["id"], cascade=True)


def _has_text(row: DocumentState, other: DocumentState) -> bool:
    return row["content_hash"] == other["content_hash"]


def _canonical(metadata: dict[str, Any]) -> str:
    # JSON distinguishes true from 1.
    return json.dumps(metadata, sort_keys=True)


def new_documents(texts: Iterable[IndexDocument]) -> list[NewDocument]:
    return [
        NewDocument(
            title_of(None, text.metadata) or first_words(text.text),
            text.text,
            external_id=text.name,
            metadata=text.metadata,
        )
        for text in texts
    ]
