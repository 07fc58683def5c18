"""Documents and chunks by their ids, with their texts and graphs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from shared.clients.lenient_row_reading import object_of, readable
from shared.clients.postgrest import Database
from shared.errors import InvalidRequest, NotFound
from shared.graph.graph_of_rows import graph_of
from shared.retrieval.types import Contents, Document, Kind, SearchArea, StoredChunk
from shared.text.prefixed_ids import id_of
from shared.types import PrincipalSource

MAX_IDS = 100
# With 4,500,000 bytes of texts a response stays below Lambda's six megabytes.
MAX_GRAPH_BYTES = 1_000_000
# In a dense graph more would exceed the time of a statement.
GRAPHS_AT_ONCE = 20
_EMPTY: dict[str, Any] = {"entities": [], "edges": [], "evidence": []}


def hydrate(
    database: Database,
    caller: PrincipalSource,
    area: SearchArea,
    ids: Sequence[tuple[Kind, str]],
    *,
    chunks: bool,
    text: bool,
    whole_org: bool,
    hops: int | None = None,
) -> Contents:
    """The documents and chunks of these ids in that area, or, with `whole_org`, anywhere in its org. With
    `hops` each document has the graph of that depth around it.

    The result has at most 4,500,000 bytes of JSON and 1,000,000 bytes of graphs, in the order of the ids.
    Raises InvalidRequest for more than a hundred ids; Forbidden for a key without the scope to read.
    """
    if len(ids) > MAX_IDS:
        message = f"A request may have at most {MAX_IDS} ids. Send the others in further requests."
        raise InvalidRequest(message, code="invalid_ids", details={"field": "ids"})
    parsed = {(kind, sent): id_ for kind, sent in ids if (id_ := _parse_id(kind, sent))}
    ids_to_read = list(dict.fromkeys((kind, id_) for (kind, _), id_ in parsed.items()))
    arguments = {
        "org_id": area.org_id,
        "collection_id": None if whole_org else area.collection_id,
        "kinds": [kind for kind, _ in ids_to_read],
        "ids": [id_ for _, id_ in ids_to_read],
        "text": text,
        "chunks": chunks,
    }
    contents = database.call(caller, "rag_get_contents", arguments, idempotent=True)
    documents = readable(contents["documents"], _document)
    if documents and hops is not None:
        documents = _with_graphs(database, caller, documents, arguments, hops)
    parts = readable(contents["chunks"], _part)
    present = {
        *(("document", one.document_id) for one in documents),
        *(("chunk", one.chunk_id) for one in parts),
    }
    missing = (sent for kind, sent in ids if (kind, parsed.get((kind, sent))) not in present)
    return Contents(documents, parts, tuple(dict.fromkeys(missing)))


def _parse_id(kind: Kind, written: str) -> str | None:
    try:
        return id_of(written, kind)
    except NotFound:
        return None


def _with_graphs(
    database: Database,
    caller: PrincipalSource,
    documents: Sequence[Document],
    where: Mapping[str, Any],
    hops: int,
) -> tuple[Document, ...]:
    arguments = {"org_id": where["org_id"], "collection_id": where["collection_id"], "hops": hops}
    results: list[Document] = []
    graphs: dict[str, Any] = {}
    remaining = MAX_GRAPH_BYTES
    for number, document in enumerate(documents):
        if number % GRAPHS_AT_ONCE == 0 and remaining > 0:
            ids = [one.document_id for one in documents[number : number + GRAPHS_AT_ONCE]]
            graphs = database.call(
                caller, "rag_graph_of", {**arguments, "document_ids": ids}, idempotent=True
            )
        # A document that was deleted meanwhile has no graph.
        graph = graphs.get(document.document_id, _EMPTY)
        remaining -= len(json.dumps(graph))
        fits = remaining > 0
        truncated = document.truncated or not fits
        results.append(replace(document, graph=graph_of(graph if fits else _EMPTY), truncated=truncated))
    return tuple(results)


# Columns that a document has under the same names.
_SAME_NAMES = (
    "collection_id", "title", "source_type", "origin", "uri", "author", "state", "notes", "text", "truncated",
)  # fmt: skip


def _document(row: dict[str, Any]) -> Document:
    return Document(
        **{name: row[name] for name in _SAME_NAMES},
        document_id=row["id"],
        labels=tuple(row["labels"]),
        occurred_at=datetime.fromisoformat(row["occurred_at"]) if row["occurred_at"] else None,
        metadata=object_of(row["metadata"]),
        chunks=None if row["chunks"] is None else tuple(map(_part, row["chunks"])),
    )


def _part(row: dict[str, Any]) -> StoredChunk:
    span = (row["span_start"], row["span_end"])
    return StoredChunk(row["id"], row["document_id"], row["ordinal"], row["text"], span)
