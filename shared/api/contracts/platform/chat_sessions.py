"""The platform contract's wire models of chat sessions: lists of them, and of what was said in one."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from shared.api.contracts.platform.common import Limit, Offset

__all__ = ["Limit", "Offset"]
Row = dict[str, Any]
MessageLimit = Annotated[int, Field(ge=1, le=1000)]


class Session(BaseModel):
    """`collection_id` is null of one that is about all collections, or about one that has gone."""

    id: str
    org_id: str
    user_id: str
    collection_id: str | None
    title: str
    created_at: datetime
    last_message_at: datetime
    message_count: int

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**row, user_id=row["owner_id"])


class SaidMessage(BaseModel):
    """Of an answer also what it was written from, and what it took."""

    id: str
    session_id: str
    role: Literal["user", "assistant", "system"]
    content: str
    created_at: datetime
    sources: list[Row] | None = None
    usage: Row | None = None

    @classmethod
    def of(cls, row: Row) -> Self:
        details = row["details"]
        # A member may keep details of their own form, past these routes.
        sources, usage = details.get("sources"), details.get("usage")
        listed = isinstance(sources, list) and all(isinstance(source, dict) for source in sources)
        return cls(
            **row,
            sources=list(map(_source, sources)) if sources and listed else None,
            usage=usage if isinstance(usage, dict) else None,
        )


def _source(kept: Row) -> Row:
    """As an answer's sources are shown (chat_request.py)."""
    return {("chunk_index" if name == "ordinal" else name): value for name, value in kept.items()}
