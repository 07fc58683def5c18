"""Wire models of chat sessions and their messages."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, field_validator

from shared.answering.platform_chat.types import Message
from shared.api.contracts.platform.chat_request import MAX_ANSWER, Id
from shared.api.contracts.shared_fields import NullAsAbsent, ResponseModel, WithoutNul
from shared.types import Row

MAX_BYTES = 256 * 1024
MessageLimit = Annotated[int, Field(ge=1, le=1000)]


class Session(ResponseModel):
    """`collection_id` is null for all collections, and after the collection was deleted."""

    id: str
    org_id: str
    user_id: str = Field(validation_alias="owner_id")
    collection_id: str | None
    title: str
    created_at: datetime
    last_message_at: datetime
    message_count: int


class NewMessage(NullAsAbsent):
    role: Literal["user", "assistant"]
    content: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MAX_ANSWER), WithoutNul]


class NewMessages(NullAsAbsent):
    """Messages of a conversation that the client holds itself, in order."""

    messages: Annotated[list[NewMessage], Field(min_length=1, max_length=100)]

    @field_validator("messages")
    @classmethod
    def _bounded(cls, messages: list[NewMessage]) -> list[NewMessage]:
        if sum(len(message.content.encode()) for message in messages) > MAX_BYTES:
            raise ValueError(f"must have at most {MAX_BYTES:,} bytes together")
        return messages

    def stored(self) -> list[Message]:
        return [Message(message.role, message.content) for message in self.messages]


class NewSession(NewMessages):
    """`collection_id`: null for all collections."""

    collection_id: Id | None = None


class SessionReference(BaseModel):
    session_id: str


class SessionMessage(BaseModel):
    """`sources` and `usage` belong to answers."""

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
        # A client of PostgREST may store other details.
        sources, usage = details.get("sources"), details.get("usage")
        is_valid = isinstance(sources, list) and all(isinstance(source, dict) for source in sources)
        return cls(
            **row,
            sources=list(map(_source, sources)) if sources and is_valid else None,
            usage=usage if isinstance(usage, dict) else None,
        )


def _source(stored: Row) -> Row:
    """The source in the format of chat_response.py."""
    return {("chunk_index" if name == "ordinal" else name): value for name, value in stored.items()}
