"""Answers of the chat, whole and in parts, with the fields of OpenAI's clients (`choices[0]`) besides the
API's own; and sessions."""

from datetime import datetime
from typing import Any, Literal, TypedDict

from pydantic import Field, model_validator

from mnemosyne.models.base import Model
from mnemosyne.models.chunk import RetrievalMode


class ChatMessageParam(TypedDict):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[dict[str, Any]]


class SessionMessageParam(TypedDict):
    role: Literal["user", "assistant"]
    content: str


class RetrievalParam(TypedDict, total=False):
    mode: RetrievalMode
    top_k: int
    rerank: bool
    enable_graph: bool
    hierarchical: bool
    expand_context: bool
    metadata_filter: dict[str, Any]
    document_type: str


class GenerationParam(TypedDict, total=False):
    model: str
    temperature: float
    max_tokens: int
    top_p: float
    frequency_penalty: float
    presence_penalty: float


class ChatOptions(TypedDict, total=False):
    """Options of an answer. None is as an omitted one, which has the API's default."""

    model: str | None
    session_id: str | None
    preset: Literal["concise", "detailed", "research", "technical", "creative", "qna"] | None
    reasoning_mode: Literal["standard", "deep"] | None
    temperature: float | None
    max_tokens: int | None
    custom_instruction: str | None
    is_follow_up: bool | None
    retrieval: RetrievalParam | None
    generation: GenerationParam | None


class Source(Model):
    """A document that the answer was written from, by its best chunk."""

    document_id: str
    title: str | None = None
    filename: str | None = None
    collection_id: str | None = None
    collection_name: str | None = None
    chunk_index: int | None = None
    score: float
    chunk_id: str | None = None
    page_number: int | None = None
    page_end: int | None = None
    section: str | None = None


class Usage(Model):
    """`retrieval_tokens`: the part of the prompt that is passages."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    retrieval_tokens: int | None = None


class Confidence(Model):
    """`score`: 0 to 1, which `thresholds` divide into levels; `because`: the reasons."""

    level: str
    score: float
    thresholds: dict[str, float] = Field(default_factory=dict)
    because: list[str] = Field(default_factory=list)


class ChatMetadata(Model):
    """`search_query` is the text that was searched; `withheld`: confidence was too low, and the answer says
    so; `extractive`: the answer consists of the documents' own sentences; `kept`: the session has the turn;
    `session_id` is the nil UUID without a session; `recorded`: the answer has a record, which
    `records.rate` finds by `request_id`."""

    request_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    collection_id: str | None = None
    retrieval_mode: str | None = None
    model: str | None = None
    latency_ms: int | None = None
    retrieval_latency_ms: int | None = None
    generation_latency_ms: int | None = None
    timestamp: datetime | None = None
    preset: str | None = None
    reasoning_mode: str | None = None
    is_follow_up: bool | None = None
    search_query: str | None = None
    sub_queries: list[str] = Field(default_factory=list)
    confidence: float | None = None
    confidence_detail: Confidence | None = None
    withheld: bool | None = None
    extractive: bool | None = None
    kept: bool | None = None
    recorded: bool | None = None


class _Told(Model):
    """Fields of a whole answer and of the last part of a stream."""

    metadata: ChatMetadata | None = None

    @property
    def session_id(self) -> str | None:
        return self.metadata.session_id if self.metadata else None

    @property
    def model(self) -> str | None:
        return self.metadata.model if self.metadata else None

    @property
    def confidence(self) -> float | None:
        return self.metadata.confidence if self.metadata else None

    @property
    def confidence_detail(self) -> Confidence | None:
        return self.metadata.confidence_detail if self.metadata else None

    @property
    def is_follow_up(self) -> bool | None:
        return self.metadata.is_follow_up if self.metadata else None

    @property
    def sub_queries(self) -> list[str]:
        return self.metadata.sub_queries if self.metadata else []


class ChatMessage(Model):
    role: str = "assistant"
    content: str


class Choice(Model):
    """The only choice. The API reports `stop` for each complete answer."""

    index: int = 0
    message: ChatMessage
    finish_reason: str = "stop"


class ChatCompletion(_Told):
    query: str
    response: str
    choices: list[Choice]
    sources: list[Source] = Field(default_factory=list)
    usage: Usage | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_choice(cls, answer: Any) -> Any:
        if not isinstance(answer, dict):
            return answer
        return {"choices": [{"message": {"content": answer.get("response")}}], **answer}


class ChoiceDelta(Model):
    role: str | None = None
    content: str | None = None


class ChunkChoice(Model):
    index: int = 0
    delta: ChoiceDelta = ChoiceDelta()
    finish_reason: str | None = None


class ReasoningStep(Model):
    step: int
    description: str


NOTHING_SAID = [ChunkChoice()]


class ChatCompletionChunk(_Told):
    """A part of a stream. `type` is sources, delta, reasoning_step, sub_query, usage or done. Each has
    `choices[0]`, with text in a delta only, and the fields of its type."""

    type: str
    choices: list[ChunkChoice] = NOTHING_SAID
    sources: list[Source] | None = None
    usage: Usage | None = None
    reasoning_step: ReasoningStep | None = None
    sub_query: str | None = None


class ChatSession(Model):
    """`collection_id` is None for a session about all collections, or about a deleted one."""

    id: str
    org_id: str | None = None
    user_id: str | None = None
    collection_id: str | None = None
    title: str
    created_at: datetime
    last_message_at: datetime
    message_count: int


class SessionReference(Model):
    session_id: str


class SessionMessage(Model):
    """A message; an answer also has its sources and its usage."""

    id: str
    session_id: str
    role: str
    content: str
    created_at: datetime
    sources: list[dict[str, Any]] | None = None
    usage: dict[str, Any] | None = None
