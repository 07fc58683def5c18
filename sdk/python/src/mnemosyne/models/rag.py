"""Rag contract: a search and an answer for a user's token."""

from datetime import datetime
from typing import Any, Literal, TypedDict

from pydantic import Field

from mnemosyne.models.base import Model
from mnemosyne.models.chat import Confidence


class RagFilters(TypedDict, total=False):
    """`org_id`: an id or a name. Dates are ISO 8601, inclusive."""

    source_type: Literal["transcript", "email", "doc", "faq", "web"]
    lang: str
    org_id: str
    date_from: str
    date_to: str


class RagSource(Model):
    source_id: str
    source_type: str
    source_title: str
    source_uri: str | None = None
    collection_name: str | None = None
    snippet: str
    meta: dict[str, Any]
    page_number: int | None = None
    page_end: int | None = None
    section: str | None = None


class RagResult(RagSource):
    """A chunk; `score` is the cosine to the question."""

    chunk_id: str
    score: float
    rank: int


class RagSearchResponse(Model):
    status: str
    query_text: str
    results: list[RagResult]
    total_found: int
    processing_time_ms: int
    ignored_filters: list[str] = Field(default_factory=list)


class RagAnswerText(Model):
    text: str
    confidence: str
    model: str | None = None
    generated_at: datetime


class RagCitation(RagSource):
    relevance_score: float


class RagContext(Model):
    """`thresholds` are those of `avg_relevance`."""

    chunks_retrieved: int
    unique_sources: int
    avg_relevance: float
    thresholds: dict[str, float] = Field(default_factory=dict)


class RagAnswerResponse(Model):
    """`status` is success, or insufficient_context for an answer that was withheld."""

    status: str
    query_text: str
    answer: RagAnswerText
    citations: list[RagCitation]
    context_used: RagContext
    confidence_detail: Confidence
    processing_time_ms: int
    ignored_filters: list[str] = Field(default_factory=list)
