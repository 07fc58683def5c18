"""The rag contract's wire models: /api/rag/search and /api/rag/answer."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from shared.api.contracts.ignored_names import IgnoredNames, LenientModel, SearchBody
from shared.api.contracts.shared_fields import (
    Composed,
    ConfidenceDetail,
    ConfidenceThresholds,
    Level,
    PageEnd,
    PageNumber,
    RangeEnd,
    RangeStart,
    ResponseModel,
    Score,
    Section,
    location_of,
    rounded_score,
    stripped,
)
from shared.errors import RagError
from shared.generation.cited_documents import snippet
from shared.generation.confidence import NO_CEILING, mean_similarity
from shared.generation.refusal_texts import RAG_INSUFFICIENT
from shared.types import Answer, Filters, Match, Query, SearchResult

SourceType = Literal["transcript", "email", "doc", "faq", "web"]


class ErrorDetail(BaseModel):
    code: str
    message: str


class ErrorBody(BaseModel):
    status: Literal["error"]
    error: ErrorDetail


def error_body(error: RagError) -> dict[str, Any]:
    return {"status": "error", "error": {"code": error.code, "message": str(error)}}


def _uuid(value: Any) -> str:
    try:
        return str(UUID(value))
    except (ValueError, AttributeError, TypeError):
        raise ValueError("must be a UUID") from None


class RequestFilters(LenientModel):
    source_type: SourceType | None = None
    lang: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=35)] | None = None
    org_id: Annotated[str, BeforeValidator(_uuid)] | None = None
    date_from: RangeStart | None = None
    date_to: RangeEnd | None = None


class Request(SearchBody):
    """The body of both endpoints."""

    model_config = ConfigDict(extra="ignore")

    query_text: Annotated[str, stripped(500), Composed]
    top_k: Annotated[int, Field(strict=True, ge=1, le=50)] | None = None
    filters: RequestFilters | None = None

    def to_query(self) -> Query:
        """A semantic search without a reranker: the contract's score is the cosine similarity."""
        sent = self.filters or RequestFilters()
        filters = Filters(
            source_types=(sent.source_type,) if sent.source_type else (),
            lang=sent.lang,
            org_id=sent.org_id,
            date_from=sent.date_from,
            date_to=sent.date_to,
        )
        return Query(self.query_text, 8 if self.top_k is None else self.top_k, filters, rerank=False)


def _meta(match: Match) -> dict[str, Any]:
    """The document's metadata with its org, date and language, as in the contract."""
    own = {"date": match.occurred_at.isoformat() if match.occurred_at else None, "lang": match.lang}
    fields = {name: value for name, value in own.items() if value is not None or name not in match.metadata}
    return {**match.metadata, **fields, "org_id": match.org_id}


class Result(ResponseModel):
    chunk_id: str
    source_id: str = Field(validation_alias="document_id")
    score: Score
    snippet: str
    source_type: str
    source_title: str = Field(validation_alias="title")
    source_uri: str | None = Field(validation_alias="uri")
    collection_name: str | None
    meta: dict[str, Any]
    rank: int
    page_number: int | None
    page_end: int | None
    section: str | None


class SearchResponse(BaseModel):
    status: Literal["success"] = "success"
    query_text: str
    results: list[Result]
    total_found: int
    processing_time_ms: int
    ignored_filters: IgnoredNames

    @classmethod
    def of(cls, request: Request, result: SearchResult) -> Self:
        return cls(
            query_text=request.query_text,
            results=[
                Result.of(
                    match, rank=rank, snippet=snippet(match.text), meta=_meta(match), **location_of(match)
                )
                for rank, match in enumerate(result.matches, start=1)
            ],
            total_found=len(result.matches),
            processing_time_ms=result.milliseconds,
            ignored_filters=request.ignored_filters,
        )


class AnswerText(BaseModel):
    text: str
    confidence: Level
    model: str | None
    generated_at: datetime


class AnswerCitation(ResponseModel):
    source_id: str = Field(validation_alias=AliasPath("match", "document_id"))
    source_type: str = Field(validation_alias=AliasPath("match", "source_type"))
    source_title: str = Field(validation_alias=AliasPath("match", "title"))
    source_uri: str | None = Field(validation_alias=AliasPath("match", "uri"))
    collection_name: str | None = Field(validation_alias=AliasPath("match", "collection_name"))
    snippet: str
    relevance_score: Score = Field(validation_alias=AliasPath("match", "score"))
    meta: Annotated[dict[str, Any], BeforeValidator(_meta)] = Field(validation_alias="match")
    page_number: PageNumber = None
    page_end: PageEnd = None
    section: Section = None


class ContextUsed(BaseModel):
    """`thresholds`: of avg_relevance; below, the level is held down; null without a calibration. Not in the
    contract."""

    chunks_retrieved: int
    unique_sources: int
    avg_relevance: float
    thresholds: ConfidenceThresholds | None


class AnswerResponse(BaseModel):
    status: Literal["success", "insufficient_context"]
    query_text: str
    answer: AnswerText
    citations: list[AnswerCitation]
    context_used: ContextUsed
    confidence_detail: ConfidenceDetail
    processing_time_ms: int
    ignored_filters: IgnoredNames

    @classmethod
    def of(cls, request: Request, answer: Answer) -> Self:
        judgement, draft = answer.judgement, answer.draft
        ceiling = judgement.ceiling
        return cls(
            status="success" if draft else "insufficient_context",
            query_text=request.query_text,
            answer=AnswerText(
                text=draft.text if draft else RAG_INSUFFICIENT,
                confidence=judgement.confidence.value,
                model=draft.model if draft else None,
                generated_at=answer.generated_at,
            ),
            citations=[AnswerCitation.of(citation) for citation in answer.citations],
            context_used=ContextUsed(
                chunks_retrieved=len(answer.matches),
                unique_sources=len({match.document_id for match in answer.matches}),
                avg_relevance=rounded_score(mean_similarity(answer.matches)),
                thresholds=None if ceiling == NO_CEILING else ConfidenceThresholds.of(ceiling),
            ),
            confidence_detail=ConfidenceDetail.of(judgement),
            processing_time_ms=answer.milliseconds,
            ignored_filters=request.ignored_filters,
        )
