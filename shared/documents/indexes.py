"""Documents of an index as its API's clients change them: each is named by the SHA-256 of the text that it
came with, for ever, whatever its text becomes."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.clients.postgrest import Database
from shared.documents import collections
from shared.documents.by_name import Row, existing_documents, find, find_or_none
from shared.documents.documents import first_words, title_of
from shared.errors import error_details
from shared.ingestion.chunking.passages import ChunkingConfig
from shared.ingestion.ingest import UNGUARDED, Guard, NewDocument, content_hash, ingest_many
from shared.models.embeddings import Embedder
from shared.text.normalize import clean
from shared.types import Principal, PrincipalSource


@dataclass(frozen=True, slots=True)
class Text:
    """A document as it comes. `name`: what it is to be called, or is called already."""

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
            "content_hash": content_hash(text),
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of changes, as rows of what is there now; of the absent ones what was sent."""

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
    wanted = {text.name: text for text in texts}
    there = existing_documents(database, caller, index, list(wanted)) if home and wanted else {}
    rows = {name: text.row() for name, text in wanted.items()}
    same = {name: row for name, row in there.items() if _says(row, rows[name])}
    new = [text for name, text in wanted.items() if name not in same]
    config = ChunkingConfig.of_collection(home)
    ingest_many(database, embedder, caller, index, _documents(new), config=config, guard=guard)
    kept = {name: {**rows[name], "metadata": row["metadata"]} for name, row in same.items()}
    return [kept.get(text.name) or rows[text.name] for text in texts]


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
    wanted = {text.name: text for text in texts}
    there = existing_documents(database, caller, index, list(wanted)) if wanted else {}
    same = [
        name
        for name, row in there.items()
        if _says(row, rows[name]) and _typed(row["metadata"]) == _typed(wanted[name].metadata)
    ]
    other = [wanted[name] for name in there if name not in same]
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
    updated = [text.name for text, kept in zip(other, stored, strict=True) if kept]
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
    """What tells true from 1, which Python holds for the same."""
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
