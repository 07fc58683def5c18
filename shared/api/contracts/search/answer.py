"""The search contract's wire models: /v1/answer, whole and as a stream."""

from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints
from starlette.responses import JSONResponse
from starlette.responses import Response as HttpResponse

from shared.access.idempotency_store import StoredResponse
from shared.answering.cited.types import (
    AnswerDone,
    AnswerRequest,
    ComposedAnswer,
    Event,
    NumberedCitation,
    RetrievalDone,
    Token,
)
from shared.api.contracts.ignored_filters import IgnoredFilters, ignored_in
from shared.api.contracts.search import common
from shared.api.contracts.search.common import Flag, Sent, Wire, error_body
from shared.api.contracts.search.search import Mode
from shared.api.sse import event
from shared.errors import RagError


class Include(Sent):
    rationale: Flag = False


class Request(common.Retrieving):
    """`constraints` are any of a search's filters."""

    question: common.QueryText
    mode: Mode = "auto"
    context: Flag = False
    moderation: Flag = False
    answer_type: Literal["abstractive", "extractive"] = "abstractive"
    citations: Flag = True
    max_tokens: Annotated[int, Field(strict=True, ge=16, le=4096)] = 400
    model: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] | None = None
    constraints: common.RetrievalFilters | None = None
    include: Include = Field(default_factory=Include)
    stream: Flag = False

    def fingerprint(self) -> str:
        """All that makes two requests the same, but for the place: what is as it is unless said is not."""
        return self.model_dump_json(exclude_defaults=True, exclude={"workspace_id", "organization_id"})

    def to_request(self, workspace: str | None) -> AnswerRequest:
        """`workspace` is what a header says. Raises InvalidRequest."""
        wanted = replace(
            self.wanted_by(self.question, self.mode, workspace, self.constraints),
            moderated=self.moderation,
            # More of each document is put to the model.
            neighbours=1 if self.context else 0,
            # Confidence is judged by how near they are.
            compares=True,
        )
        return AnswerRequest(
            wanted,
            self.answer_type == "abstractive",
            self.citations,
            self.max_tokens,
            self.model,
            self.stream,
        )


class Citation(Wire):
    """`index` is the number that stands in the answer."""

    index: int
    document_id: str
    chunk_id: str
    title: str
    url: str | None

    @classmethod
    def of(cls, cited: NumberedCitation) -> Self:
        match = cited.match
        return cls(
            index=cited.number,
            document_id=f"doc_{match.document_id}",
            chunk_id=f"chnk_{match.chunk_id}",
            title=match.title,
            url=match.uri,
        )


class Reference(Wire):
    """A passage that holds a sentence."""

    document_id: str
    chunk_id: str
    span: common.Span


class Sentence(Wire):
    """`span` is in the answer. One without references states nothing: a heading, a word between."""

    text: str
    span: common.Span
    references: list[Reference]


class Support(Wire):
    """What became of each sentence that was written: those that no passage holds were left out, `reasons` say
    how many for what."""

    kept: int
    dropped: int
    reasons: dict[str, int]
    sentences: list[Sentence]

    @classmethod
    def of(cls, answer: ComposedAnswer) -> Self:
        counted: dict[str, int] = {}
        for reasons in answer.dropped:
            for reason in reasons:
                counted[reason] = counted.get(reason, 0) + 1
        matches = {cited.number: cited.match for cited in answer.citations}
        return cls(
            kept=len(answer.sentences),
            dropped=len(answer.dropped),
            reasons=counted,
            sentences=[
                Sentence(
                    text=answer.text[sentence.start : sentence.end],
                    span=common.Span(start=sentence.start, end=sentence.end),
                    references=[
                        Reference(
                            document_id=f"doc_{matches[reference.number].document_id}",
                            chunk_id=f"chnk_{matches[reference.number].chunk_id}",
                            span=common.Span(start=reference.start, end=reference.end),
                        )
                        for reference in sentence.references
                    ],
                )
                for sentence in answer.sentences
            ],
        )


class Retrieval(Wire):
    results: list[common.Result]
    latency_ms: int

    @classmethod
    def of(cls, begun: RetrievalDone) -> Self:
        found = begun.retrieved
        return cls(results=common.results(found), latency_ms=found.milliseconds)


class Generation(Wire):
    """`model` is "extractive" where the answer is the documents' own sentences."""

    model: str
    answer_type: Literal["abstractive", "extractive"]
    latency_ms: int
    prompt_tokens: int
    completion_tokens: int


class Response(Wire):
    """`withheld`: nothing was found that is good enough, or nothing that was said holds."""

    answer: str
    withheld: bool
    confidence: Literal["high", "medium", "low"]
    citations: list[Citation]
    support: Support
    rationale: common.Rationale | None = None
    retrieval: Retrieval
    generation: Generation
    usage: common.Usage
    ignored_filters: IgnoredFilters
    request_id: str

    @classmethod
    def of(cls, request: Request, done: AnswerDone) -> Self:
        begun, composed = done.begun, done.answer
        return cls(
            answer=composed.text,
            withheld=done.withheld,
            confidence=begun.judgement.confidence.value,
            citations=list(map(Citation.of, composed.citations)) if request.citations else [],
            support=Support.of(composed),
            rationale=common.Rationale.of(begun.retrieved) if request.include.rationale else None,
            retrieval=Retrieval.of(begun),
            generation=Generation(
                model=done.model,
                answer_type="abstractive" if done.abstractive else "extractive",
                latency_ms=done.generation_ms,
                prompt_tokens=done.usage.prompt_tokens,
                completion_tokens=done.usage.completion_tokens,
            ),
            usage=common.Usage.of(begun.retrieved, done.milliseconds),
            ignored_filters=ignored_in(request.constraints),
            request_id=common.request_id(),
        )


class Meta(Wire):
    """What a stream begins with."""

    retrieval: Retrieval
    confidence: Literal["high", "medium", "low"]
    rationale: common.Rationale | None = None
    request_id: str


def encode_event(request: Request, happened: Event) -> bytes:
    """An event of a stream."""
    match happened:
        case RetrievalDone(retrieved=retrieved, judgement=judgement):
            meta = Meta(
                retrieval=Retrieval.of(happened),
                confidence=judgement.confidence.value,
                rationale=common.Rationale.of(retrieved) if request.include.rationale else None,
                request_id=common.request_id(),
            )
            return event(meta.model_dump(mode="json"), "meta")
        case Token(text=text):
            return event({"text": text}, "token")
        case NumberedCitation():
            return event(Citation.of(happened).model_dump(mode="json"), "citation")
        case AnswerDone():
            return event(Response.of(request, happened).model_dump(mode="json"), "final")


def broken(error: RagError) -> bytes:
    """The last event of a stream that fails."""
    return event(error_body(error), "error")


def body(request: Request, done: AnswerDone) -> dict[str, Any]:
    return Response.of(request, done).model_dump(mode="json")


def response(request: Request, done: AnswerDone) -> HttpResponse:
    return JSONResponse(body(request, done))


def replay(reply: StoredResponse, *, streams: bool) -> HttpResponse:
    """An answer that was given before."""
    headers = {"Idempotency-Replayed": "true", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    if not streams:
        return JSONResponse(reply.body, reply.status, headers)
    encode_event = reply.body
    meta = {name: encode_event.get(name) for name in ("retrieval", "confidence", "rationale", "requestId")}
    told = [
        event(meta, "meta"),
        event({"text": encode_event["answer"]}, "token"),
        *(event(citation, "citation") for citation in encode_event["citations"]),
        event(encode_event, "final"),
    ]
    return HttpResponse(b"".join(told), reply.status, headers, "text/event-stream")
