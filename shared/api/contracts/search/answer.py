"""Wire models of /v1/answer, whole and as a stream."""

from collections import Counter
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, Field, StringConstraints
from starlette.responses import JSONResponse
from starlette.responses import Response as HttpResponse

from shared.access.idempotency_keys import StoredResponse
from shared.answering.cited.types import (
    AnswerDone,
    AnswerRequest,
    ComposedAnswer,
    Event,
    NumberedCitation,
    RetrievalDone,
)
from shared.api.contracts.ignored_names import IgnoredNames
from shared.api.contracts.search.camel_case import ChunkId, DocumentId, ResponsePart, WireModel
from shared.api.contracts.search.error_format import error_body, request_id
from shared.api.contracts.search.request_fields import (
    QueryText,
    RequestModel,
    RetrievalFilters,
    RetrievalRequest,
)
from shared.api.contracts.search.results import Rationale, Result, Span, Usage, results
from shared.api.contracts.search.search import Mode
from shared.api.contracts.shared_fields import ConfidenceDetail, Flag, Level, PageEnd, PageNumber, Section
from shared.api.sse import event
from shared.errors import RagError
from shared.types import TextDelta


class Include(RequestModel):
    rationale: Flag = False


class Request(RetrievalRequest):
    question: QueryText
    mode: Mode = "auto"
    context: Flag = False
    moderation: Flag = False
    answer_type: Literal["abstractive", "extractive"] = "abstractive"
    citations: Flag = True
    max_tokens: Annotated[int, Field(strict=True, ge=16, le=4096)] = 400
    model: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] | None = None
    constraints: RetrievalFilters | None = None
    include: Include = Field(default_factory=Include)
    stream: Flag = False

    def fingerprint(self) -> str:
        """The fields that make two requests equal, without the workspace and org. Defaults are omitted."""
        return self.model_dump_json(exclude_defaults=True, exclude={"workspace_id", "organization_id"})

    def to_request(self, workspace: str | None) -> AnswerRequest:
        """`workspace`: the value of the header. Raises InvalidRequest."""
        search = replace(
            self.search_request(self.question, self.mode, workspace, self.constraints),
            is_moderated=self.moderation,
            # The model gets more of each document.
            neighbours=1 if self.context else 0,
            is_judged=True,
        )
        return AnswerRequest(
            search,
            self.answer_type == "abstractive",
            self.citations,
            self.max_tokens,
            self.model,
            self.stream,
        )


class Citation(ResponsePart):
    """`index`: its number in the answer."""

    index: int = Field(validation_alias="number")
    document_id: DocumentId = Field(validation_alias=AliasPath("match", "document_id"))
    chunk_id: ChunkId = Field(validation_alias=AliasPath("match", "chunk_id"))
    title: str = Field(validation_alias=AliasPath("match", "title"))
    url: str | None = Field(validation_alias=AliasPath("match", "uri"))
    section_label: Section = None
    page_number: PageNumber = None
    page_end: PageEnd = None


class Reference(ResponsePart):
    """A passage that supports a sentence."""

    document_id: DocumentId = Field(validation_alias=AliasPath("match", "document_id"))
    chunk_id: ChunkId = Field(validation_alias=AliasPath("match", "chunk_id"))
    span: Span


class Sentence(WireModel):
    """`span` is in the answer. A sentence without references states nothing, such as a heading."""

    text: str
    span: Span
    references: list[Reference]


class Support(WireModel):
    """Result of the check of each sentence. Unsupported ones are dropped; `reasons` counts them by reason."""

    kept: int
    dropped: int
    reasons: dict[str, int]
    sentences: list[Sentence]

    @classmethod
    def of(cls, answer: ComposedAnswer) -> Self:
        return cls(
            kept=len(answer.sentences),
            dropped=len(answer.dropped),
            reasons=Counter(reason for reasons in answer.dropped for reason in reasons),
            sentences=[
                Sentence(
                    text=answer.text[sentence.start : sentence.end],
                    span=Span.of(sentence),
                    references=[Reference.of(each, span=each) for each in sentence.references],
                )
                for sentence in answer.sentences
            ],
        )


class Retrieval(WireModel):
    results: list[Result]
    latency_ms: int

    @classmethod
    def of(cls, retrieval: RetrievalDone) -> Self:
        result = retrieval.result
        return cls(results=results(result), latency_ms=result.milliseconds)


class Generation(ResponsePart):
    """`model` is "extractive" for an answer of the documents' own sentences."""

    model: str
    answer_type: Literal["abstractive", "extractive"]
    latency_ms: int = Field(validation_alias="generation_ms")
    prompt_tokens: int = Field(validation_alias=AliasPath("usage", "prompt_tokens"))
    completion_tokens: int = Field(validation_alias=AliasPath("usage", "completion_tokens"))


class Response(WireModel):
    """`withheld`: confidence was low, or no sentence was supported."""

    answer: str
    withheld: bool
    confidence: Level
    confidence_detail: ConfidenceDetail
    citations: list[Citation]
    support: Support
    rationale: Rationale | None = None
    retrieval: Retrieval
    generation: Generation
    usage: Usage
    ignored_filters: IgnoredNames
    request_id: str

    @classmethod
    def of(cls, request: Request, done: AnswerDone) -> Self:
        retrieval, answer = done.retrieval, done.answer
        return cls(
            answer=answer.text,
            withheld=done.withheld,
            confidence=retrieval.judgement.confidence.value,
            confidence_detail=ConfidenceDetail.of(retrieval.judgement),
            citations=list(map(Citation.of, answer.citations)) if request.citations else [],
            support=Support.of(answer),
            rationale=Rationale.of(retrieval.result) if request.include.rationale else None,
            retrieval=Retrieval.of(retrieval),
            generation=Generation.of(done, answer_type="abstractive" if done.abstractive else "extractive"),
            usage=Usage.of_search(retrieval.result, done.milliseconds),
            ignored_filters=request.ignored_filters,
            request_id=request_id(),
        )


class Meta(WireModel):
    """The first event of a stream."""

    retrieval: Retrieval
    confidence: Level
    confidence_detail: ConfidenceDetail
    rationale: Rationale | None = None
    ignored_filters: IgnoredNames
    request_id: str


def encode_event(request: Request, answer_event: Event) -> bytes:
    match answer_event:
        case RetrievalDone(result=result, judgement=judgement):
            meta = Meta(
                retrieval=Retrieval.of(answer_event),
                confidence=judgement.confidence.value,
                confidence_detail=ConfidenceDetail.of(judgement),
                rationale=Rationale.of(result) if request.include.rationale else None,
                ignored_filters=request.ignored_filters,
                request_id=request_id(),
            )
            return event(meta.model_dump(mode="json"), "meta")
        case TextDelta(text=text):
            return event({"text": text}, "token")
        case NumberedCitation():
            return event(Citation.of(answer_event).model_dump(mode="json"), "citation")
        case AnswerDone():
            return event(Response.of(request, answer_event).model_dump(mode="json"), "final")


def encode_error(error: RagError) -> bytes:
    """The last event of a failed stream."""
    return event(error_body(error), "error")


def body(request: Request, done: AnswerDone) -> dict[str, Any]:
    return Response.of(request, done).model_dump(mode="json")


def response(request: Request, done: AnswerDone) -> HttpResponse:
    return JSONResponse(body(request, done))


def replay(reply: StoredResponse, *, streams: bool) -> HttpResponse:
    """A stored answer, whole or as a stream."""
    headers = {"Idempotency-Replayed": "true", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    if not streams:
        return JSONResponse(reply.body, reply.status, headers)
    final = reply.body
    meta = {name: final.get(name) for name in ("retrieval", "confidence", "rationale", "requestId")}
    chunks = [
        event(meta, "meta"),
        event({"text": final["answer"]}, "token"),
        *(event(citation, "citation") for citation in final["citations"]),
        event(final, "final"),
    ]
    return HttpResponse(b"".join(chunks), reply.status, headers, "text/event-stream")
