"""Documents and chunks by their ids, with as much of their texts as one answer holds."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shared.errors import InvalidRequest, NotFound
from shared.ids import id_of
from shared.postgrest import Database
from shared.searched import Contents, Document, Kind, Part, Place
from shared.types import Acting

MOST_IDS = 100


def hydrate(
    database: Database,
    caller: Acting,
    place: Place,
    ids: Sequence[tuple[Kind, str]],
    *,
    chunks: bool,
    text: bool,
    whole_org: bool,
) -> Contents:
    """What the ids mean at that place, or, with `whole_org`, anywhere in its org.

    There are at most 4,500,000 bytes of JSON, given out in the order of the ids.

    Raises InvalidRequest for more than a hundred ids; Forbidden for a key that does not read.
    """
    if len(ids) > MOST_IDS:
        raise InvalidRequest(f"At most {MOST_IDS} ids at once.", code="invalid_ids", details={"field": "ids"})
    known = {written: found for written in ids if (found := _found(*written))}
    wanted = list(dict.fromkeys((kind, known[kind, written]) for kind, written in known))
    arguments = {
        "org_id": place.org_id,
        "collection_id": None if whole_org else place.collection_id,
        "kinds": [kind for kind, _ in wanted],
        "ids": [one for _, one in wanted],
        "text": text,
        "chunks": chunks,
    }
    found = database.call(caller, "rag_contents", arguments, again=True)
    documents = tuple(map(_document, found["documents"]))
    parts = tuple(map(_part, found["chunks"]))
    there = {("document", one.document_id) for one in documents} | {("chunk", one.chunk_id) for one in parts}
    missing = (written[1] for written in ids if (written[0], known.get(written)) not in there)
    return Contents(documents, parts, tuple(dict.fromkeys(missing)))


def _found(kind: Kind, written: str) -> str | None:
    try:
        return id_of(written, kind)
    except NotFound:
        return None


def _document(row: dict[str, Any]) -> Document:
    return Document(
        document_id=row["id"],
        collection_id=row["collection_id"],
        title=row["title"],
        source_type=row["source_type"],
        origin=row["origin"],
        uri=row["uri"],
        author=row["author"],
        state=row["state"],
        labels=tuple(row["labels"]),
        occurred_at=datetime.fromisoformat(row["occurred_at"]) if row["occurred_at"] else None,
        metadata=row["metadata"],
        text=row["text"],
        chunks=None if row["chunks"] is None else tuple(map(_part, row["chunks"])),
        truncated=row["truncated"],
    )


def _part(row: dict[str, Any]) -> Part:
    span = (row["span_start"], row["span_end"])
    return Part(row["id"], row["document_id"], row["ordinal"], row["text"], span)
