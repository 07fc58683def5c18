"""Documents of an index: each is named by the SHA-256 of its first text, whatever its text becomes."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.access.concurrency_limit import UNGUARDED, Guard
from shared.clients.postgrest import Database
from shared.documents import collections
from shared.documents.by_name import Row, existing_documents, find, find_or_none
from shared.documents.documents import first_words, title_of
from shared.errors import error_details
from shared.ingestion.chunking.passages import ChunkingConfig
from shared.ingestion.ingest import NewDocument, ingest_many
from shared.models.embeddings import Embedder
from shared.text.normalize import clean
from shared.types import Principal, PrincipalSource


@dataclass(frozen=True, slots=True)
class Text:
    """A document of a request. `name`: its new or present one."""

    name: str
    text: str
    metadata: dict[str, Any]

    @classmethod
    def new(cls, text: str, metadata: dict[str, Any]) -> "Text":
        return cls(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text, metadata)

    def row(self) -> Row:
        text = clean(self.text)
        return {
            "name": self.name,
            "content": text,
            "content_hash": hashlib.sha256(text.encode()).hexdigest(),
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True)
class Changed:
    """The results of changes: rows of the present documents; of absent ones the request's."""

    updated: list[Row]
    unchanged: list[Row]
    absent: list[Row]


def add(
    database: Database,
    embedder: Embedder,
    caller: PrincipalSource,
    index: str,
    texts: Sequence[Text],
    guard: Guard = UNGUARDED,
) -> list[Row]:
    """The documents as they are now, in order. The index is created when it is new and there is a document. A
    text that is there stays as it is; one whose document says something else by now takes its place again.
    Raises as ingest."""
    if not texts:
        return []
    home = find_or_none(database, caller, index)
    by_name = {text.name: text for text in texts}
    there = existing_documents(database, caller, index, list(by_name)) if home and by_name else {}
    rows = {name: text.row() for name, text in by_name.items()}
    same = {name: row for name, row in there.items() if _says(row, rows[name])}
    new = [text for name, text in by_name.items() if name not in same]
    config = ChunkingConfig.of_collection(home)
    ingest_many(database, embedder, caller, index, _documents(new), config=config, guard=guard)
    unchanged = {name: {**rows[name], "metadata": row["metadata"]} for name, row in same.items()}
    return [unchanged.get(text.name) or rows[text.name] for text in texts]


def change(
    database: Database,
    embedder: Embedder,
    caller: PrincipalSource,
    index: str,
    texts: Iterable[Text],
    guard: Guard = UNGUARDED,
) -> Changed:
    """Give documents other texts and metadata; those that are not there stay so. Of several changes of one
    document the last counts. Raises NotFound for the index, and as ingest."""
    home = find(database, caller, index)
    rows = {text.name: text.row() for text in texts}
    by_name = {text.name: text for text in texts}
    there = existing_documents(database, caller, index, list(by_name)) if by_name else {}
    same = [
        name
        for name, row in there.items()
        if _says(row, rows[name]) and _typed(row["metadata"]) == _typed(by_name[name].metadata)
    ]
    other = [by_name[name] for name in there if name not in same]
    stored = ingest_many(
        database,
        embedder,
        caller,
        index,
        _documents(other),
        config=ChunkingConfig.of_collection(home),
        only_present=True,
        guard=guard,
    )
    # One that was deleted in the meantime is not made anew.
    updated = [text.name for text, result in zip(other, stored, strict=True) if result]
    return Changed(
        [rows[name] for name in updated],
        [rows[name] for name in same],
        [row for name, row in rows.items() if name not in {*updated, *same}],
    )


def delete(database: Database, caller: Principal, index: str) -> None:
    """With its documents, as collections.delete with cascade. Raises NotFound."""
    home = find(database, caller, index)
    with error_details(name=index):
        collections.delete(database, caller, home["id"], cascade=True)


def _says(row: Mapping[str, Any], other: Row) -> bool:
    return bool(row["content_hash"] == other["content_hash"])


def _typed(metadata: Row) -> str:
    """JSON, which tells true from 1."""
    return json.dumps(metadata, sort_keys=True)


def _documents(texts: Iterable[Text]) -> list[NewDocument]:
    return [
        NewDocument(
            None,
            title_of(None, text.metadata) or first_words(text.text),
            text.text,
            external_id=text.name,
            metadata=text.metadata,
        )
        for text in texts
    ]
