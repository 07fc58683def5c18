"""Wire models of a chat response, whole and as a stream."""

from datetime import UTC, datetime
from typing import Self

from pydantic import AliasPath, BaseModel, Field
from starlette.responses import JSONResponse

from shared.answering.platform_chat.turn_state import Event, TurnDone
from shared.answering.platform_chat.types import ReasoningStep, Sources, SubQuery
from shared.api.contracts.ignored_names import IgnoredNames
from shared.api.contracts.platform.chat_request import Request
from shared.api.contracts.platform.error_format import error_body
from shared.api.contracts.shared_fields import (
    ConfidenceDetail,
    PageEnd,
    PageNumber,
    ResponseModel,
    Score,
    Section,
)
from shared.api.sse import event
from shared.errors import RagError
from shared.generation.cited_documents import best_of_documents
from shared.tracing import current
from shared.types import Match, TextDelta


class Source(ResponseModel):
    document_id: str
    title: str
    filename: str | None
    collection_id: str
    collection_name: str | None
    chunk_index: int = Field(validation_alias="ordinal")
    score: Score
    chunk_id: str
    page_number: PageNumber = None
    page_end: PageEnd = None
    section: Section = None


class Usage(BaseModel):
    """`retrieval_tokens`: the part of the prompt that is passages."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    retrieval_tokens: int

    @classmethod
    def of(cls, done: TurnDone) -> Self:
        prompt, completion = done.usage.prompt_tokens, done.usage.completion_tokens
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
            # Our count is an upper bound, which may exceed the gateway's.
            retrieval_tokens=min(done.state.retrieval_tokens, prompt),
        )


class Metadata(ResponseModel):
    """`search_query`: the rewritten question; `withheld`: confidence was low, and the answer says so;
    `extractive`: without a model, the answer has the documents' own sentences; `kept`: the session has the
    turn; `session_id`: the nil UUID without a session; `recorded`: the answer has a record, which feedback
    names by `request_id`, that of X-Request-Id."""

    request_id: str
    session_id: str
    user_id: str
    collection_id: str | None = Field(validation_alias=AliasPath("state", "session", "collection_id"))
    retrieval_mode: str
    model: str = Field(validation_alias=AliasPath("state", "model"))
    latency_ms: int = Field(validation_alias="milliseconds")
    retrieval_latency_ms: int = Field(validation_alias="retrieval_ms")
    generation_latency_ms: int = Field(validation_alias="generation_ms")
    timestamp: datetime
    preset: str
    reasoning_mode: str
    is_follow_up: bool
    search_query: str = Field(validation_alias=AliasPath("state", "question"))
    sub_queries: list[str]
    confidence: Score = Field(validation_alias=AliasPath("judgement", "score"))
    confidence_detail: ConfidenceDetail = Field(validation_alias="judgement")
    withheld: bool
    extractive: bool = Field(validation_alias="is_extractive")
    kept: bool = Field(validation_alias="is_saved")
    recorded: bool = Field(validation_alias="is_recorded")
    ignored_filters: IgnoredNames

    @classmethod
    def of_turn(cls, request: Request, user_id: str, done: TurnDone) -> Self:
        trace, state = current.get(), done.state
        return cls.of(
            done,
            request_id=trace.request_id if trace else "",
            user_id=user_id,
            retrieval_mode=request.retrieval.mode,
            ignored_filters=request.ignored_filters,
            timestamp=datetime.now(UTC),
            preset=request.preset,
            reasoning_mode=request.reasoning_mode,
            sub_queries=done.sub_queries,
            is_follow_up=state.turn.is_follow_up or state.question != state.turn.question,
        )


class Response(BaseModel):
    query: str
    response: str
    sources: list[Source]
    usage: Usage
    metadata: Metadata

    @classmethod
    def of(cls, request: Request, user_id: str, done: TurnDone) -> Self:
        return cls(
            query=done.state.turn.question,
            response=done.state.text,
            sources=sources(done.state.results.by_score()),
            usage=Usage.of(done),
            metadata=Metadata.of_turn(request, user_id, done),
        )


def response(request: Request, user_id: str, done: TurnDone) -> JSONResponse:
    return JSONResponse(Response.of(request, user_id, done).model_dump(mode="json"))


def sources(matches: tuple[Match, ...]) -> list[Source]:
    """The best chunk of each document."""
    return list(map(Source.of, best_of_documents(matches)))


def encode_event(request: Request, user_id: str, chat_event: Event) -> bytes:
    """The server-sent events of a chat event: two of the last, otherwise one."""
    match chat_event:
        case ReasoningStep(number=number, description=description):
            return event({"type": "reasoning_step", "step": number, "description": description})
        case SubQuery(text=text):
            return event({"type": "sub_query", "query": text})
        case Sources(matches=matches):
            return event({"type": "sources", "sources": [source.model_dump() for source in sources(matches)]})
        case TextDelta(text=text):
            # Clients read either name.
            return event({"type": "delta", "content": text, "delta": text})
        case TurnDone():
            metadata = Metadata.of_turn(request, user_id, chat_event).model_dump(mode="json")
            usage = Usage.of(chat_event).model_dump()
            return event({"type": "usage", "usage": usage}) + event({"type": "done", "metadata": metadata})


def encode_error(error: RagError) -> bytes:
    """The last event of a failed stream."""
    return event({"type": "error", "error": str(error), "error_detail": error_body(error)["error"]})
