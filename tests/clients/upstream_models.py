"""Types that Mnemosyne's Python SDK 0.1.0 requires of our answers, as strict models.

A field without a default is required there. Other fields may stand beside these. Media and follow-up
questions are left out: our answers have none, which the SDK reads as empty lists.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, TypeAdapter

Object = dict[str, Any]


class Strict(BaseModel):
    """In JSON, a UUID and a time are strings of their form; no other value is converted."""

    model_config = ConfigDict(strict=True, extra="ignore")


class RegisterResponse(Strict):
    user_id: str
    email: str
    api_key: str


class CollectionResponse(Strict):
    id: UUID
    user_id: UUID
    name: str
    description: str | None
    metadata: Object = {}
    config: Object = {}
    document_count: int = 0
    created_at: datetime
    updated_at: datetime | None


class CollectionListResponse(Strict):
    data: list[CollectionResponse]
    pagination: Object


class DocumentResponse(Strict):
    id: UUID
    collection_id: UUID
    user_id: UUID
    title: str | None
    filename: str | None
    content_type: str | None = None
    size_bytes: int | None = None
    content_hash: str
    unique_identifier_hash: str | None = None
    status: str
    metadata: Object = {}
    processing_info: Object | None = {}
    created_at: datetime
    updated_at: datetime | None


class DocumentListResponse(Strict):
    data: list[DocumentResponse]
    pagination: Object


class DocumentStatusResponse(Strict):
    document_id: UUID
    status: str
    chunk_count: int = 0
    total_tokens: int = 0
    error_message: str | None = None
    processing_info: Object = {}
    created_at: datetime
    processed_at: datetime | None = None


class DocumentLink(Strict):
    url: str
    expires_in: int
    filename: str | None


class DocumentInfo(Strict):
    id: str
    title: str | None = None
    filename: str | None = None


class ChunkResult(Strict):
    chunk_id: str
    content: str
    chunk_index: int
    score: float
    metadata: Object = {}
    chunk_metadata: Object = {}
    document: DocumentInfo
    collection_id: str


class RetrievalResponse(Strict):
    query: str
    mode: str
    results: list[ChunkResult]
    total_results: int
    graph_enhanced: bool = False
    graph_context: str | None = None


class SourceReference(Strict):
    document_id: str
    title: str | None = None
    filename: str | None = None
    chunk_index: int
    score: float


class UsageStats(Strict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    retrieval_tokens: int = 0


class ChatMetadata(Strict):
    session_id: UUID
    user_id: UUID
    collection_id: UUID | None = None
    retrieval_mode: str
    model: str
    latency_ms: int
    retrieval_latency_ms: int = 0
    generation_latency_ms: int = 0
    timestamp: datetime
    confidence: float = 0.0
    judge_corrected: bool = False


class ChatCompletionResponse(Strict):
    query: str
    response: str
    sources: list[SourceReference] = []
    usage: UsageStats
    metadata: ChatMetadata


class StreamChunk(Strict):
    type: Literal[
        "delta", "sources", "media", "follow_up", "usage", "done", "error", "reasoning_step", "sub_query"
    ]
    content: str | None = None
    sources: list[SourceReference] | None = None
    usage: UsageStats | None = None
    metadata: ChatMetadata | None = None
    error: str | None = None
    step: int | None = None
    description: str | None = None
    query: str | None = None


class ChatSessionResponse(Strict):
    id: UUID
    user_id: UUID
    collection_id: UUID | None
    title: str | None
    created_at: datetime
    last_message_at: datetime | None
    message_count: int


class ChatMessageResponse(Strict):
    id: UUID
    session_id: UUID
    role: str
    content: str
    created_at: datetime


SESSIONS = TypeAdapter(list[ChatSessionResponse])
MESSAGES = TypeAdapter(list[ChatMessageResponse])
