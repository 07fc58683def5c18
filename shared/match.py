"""Step four: which chunks, in which order. SQL decides; this module only asks and reads."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from shared.postgrest import Database
from shared.types import Match, Principal, Query


def match(
    database: Database, caller: Principal, vector: list[float], model: str, query: Query
) -> tuple[Match, ...]:
    """The caller's top_k nearest chunks of that embedding model, best first.

    `vector` has 1536 dimensions. Raises a RagError.
    """
    filters = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(query.filters).items()
        if value is not None
    }
    arguments = {"query_vector": vector, "top_k": query.top_k, "filters": {**filters, "model": model}}
    rows = database.call(caller, "rag_match", arguments, again=True)
    return tuple(_match(row) for row in rows)


def _match(row: dict[str, Any]) -> Match:
    return Match(
        chunk_id=row["chunk_id"],
        document_id=row["document_id"],
        org_id=row["org_id"],
        ordinal=row["ordinal"],
        text=row["content"],
        span=(row["span_start"], row["span_end"]),
        similarity=row["similarity"],
        source_type=row["source_type"],
        title=row["title"],
        uri=row["uri"],
        lang=row["lang"],
        occurred_at=datetime.fromisoformat(row["occurred_at"]) if row["occurred_at"] else None,
        metadata=row["metadata"],
    )
