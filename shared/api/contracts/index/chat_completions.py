"""Wire models of chat completions: OpenAI's, with an index and source nodes."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from shared.answering.chat_completions.completion import Part
from shared.answering.chat_completions.openai_request import (
    MODEL_CHARACTERS,
    RAG_MODEL,
    RAG_PREFIX,
    Conversation,
    is_grounded,
)
from shared.answering.chat_completions.openai_response_format import is_last_part
from shared.api.contracts.ignored_names import IgnoredNames, SearchBody
from shared.api.contracts.index import indexes
from shared.api.contracts.index.indexes import Node
from shared.api.contracts.platform.error_format import error_type
from shared.api.contracts.shared_fields import CollectionName, ConfidenceDetail, Flag
from shared.api.sse import event
from shared.errors import InvalidRequest, NotFound, RagError
from shared.models.chat_stream import Body
from shared.types import JudgedSearch

# Fields of this contract, which the gateway does not know.
OWN_FIELDS = frozenset({"index_name", "top_k", "context_token_ratio"})
DONE = b"data: [DONE]\n\n"
INVALID_FORMAT = "Invalid request format: "

# Headers of OpenAI's clients, for CORS.
CLIENT_HEADERS = (
    "openai-organization", "openai-project", "user-agent", "x-stainless-arch", "x-stainless-async",
    "x-stainless-custom-poll-interval", "x-stainless-helper-method", "x-stainless-lang", "x-stainless-os",
    "x-stainless-package-version", "x-stainless-poll-helper", "x-stainless-retry-count",
    "x-stainless-runtime", "x-stainless-runtime-version", "x-stainless-timeout",
)  # fmt: skip

Penalty = Annotated[float, Field(strict=True, ge=-2, le=2)]
Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Text = Annotated[str, StringConstraints(strict=True)]
ModelName = Annotated[str, StringConstraints(strict=True, max_length=MODEL_CHARACTERS)]
INDEX: TypeAdapter[str] = TypeAdapter(CollectionName)


class OpenAIError(BaseModel):
    message: str
    type: str
    code: str


class ErrorBody(BaseModel):
    """The index contract's error, with OpenAI's beside it."""

    detail: str
    error: OpenAIError


def error_body(error: RagError) -> dict[str, Any]:
    message = (
        f"{INVALID_FORMAT}{error}"
        if isinstance(error, InvalidRequest) and error.faults
        else str(indexes.error_body(error)["detail"])
    )
    openai = {"message": message, "type": error_type(error), "code": error.code}
    return {"detail": message, "error": openai}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")

    include_usage: Flag | None = None


class CompletionRequest(SearchBody):
    """Unknown fields are passed to the model unchanged."""

    model_config = ConfigDict(extra="allow")

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    index_name: CollectionName | None = None
    top_k: Annotated[int, Field(strict=True, ge=1, le=100)] | None = None
    model: ModelName | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(strict=True, ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    n: Annotated[int, Field(strict=True, ge=1, le=128)] | None = None
    seed: Annotated[int, Field(strict=True)] | None = None
    stop: Text | list[Text] | None = None
    user: Text | None = None
    response_format: dict[str, Any] | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None

    def to_request(self) -> Conversation:
        """Raises InvalidRequest for an invalid message, and for a model and an index_name that differ;
        NotFound for a model that names no index."""
        for message in self.messages:
            _check(message)
        try:
            body = self.model_dump(exclude_unset=True)
            # Python accepts NaN and 1e400 as JSON.
            json.dumps(body, allow_nan=False)
        except (ValueError, RecursionError):
            raise InvalidRequest(
                f"{INVALID_FORMAT}it must be JSON with finite numbers and few levels."
            ) from None
        request = {name: value for name, value in body.items() if name not in OWN_FIELDS}
        top_k = 5 if self.top_k is None else self.top_k
        if not (self.model and is_grounded(self.model)):
            return Conversation(request, self.index_name, top_k)
        # The gateway's default model answers.
        del request["model"]
        return Conversation(request, self._index(), top_k, all_documents=True)

    def _index(self) -> str | None:
        if self.model == RAG_MODEL:
            return self.index_name
        name = (self.model or "").removeprefix(RAG_PREFIX)
        if self.index_name not in (None, name):
            raise InvalidRequest(f"{INVALID_FORMAT}'model' and 'index_name' name two indexes. Send one.")
        try:
            return INDEX.validate_python(name)
        except ValidationError:
            raise NotFound(code="collection_not_found", details={"name": name}) from None


def _check(message: dict[str, Any]) -> None:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise InvalidRequest(f"{INVALID_FORMAT}messages must contain 'role'.")
    if role not in ("user", "system", "developer", "assistant"):
        return  # The gateway validates other roles.
    if content is None and role != "assistant":
        raise InvalidRequest(f"{INVALID_FORMAT}messages must contain 'content' for role '{role}'.")
    is_list = isinstance(content, list) and all(isinstance(part, str | dict) for part in content)
    if not (content is None or isinstance(content, str) or is_list):
        raise InvalidRequest(f"{INVALID_FORMAT}'content' must be a text or a list of parts.")


class CompletionResponse(BaseModel):
    """The gateway's other fields are passed on unchanged."""

    model_config = ConfigDict(extra="allow")

    choices: list[dict[str, Any]]
    usage: dict[str, Any]
    source_nodes: list[Node] | None
    confidence_detail: ConfidenceDetail | None = None
    ignored_filters: IgnoredNames


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


def encode_answer(request: CompletionRequest, reply: Body, sources: JudgedSearch | None) -> bytes:
    body = {**reply, **_described(sources)}
    if sources and request.ignored_filters:
        body["ignored_filters"] = request.ignored_filters
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def encode_part(part: Part) -> bytes:
    """A part of a stream as an event; the part that ends the answer has the nodes."""
    reply, sources = part
    return event({**reply, **_described(sources)} if is_last_part(reply) else reply)


def encode_error(error: RagError) -> bytes:
    return event({"error": error_body(error)["error"]})


def _described(sources: JudgedSearch | None) -> dict[str, Any]:
    if sources is None:
        return {"source_nodes": None}
    return {
        "source_nodes": [Node.of(match).model_dump() for match in sources.matches],
        "confidence_detail": ConfidenceDetail.of(sources.judgement).model_dump(),
    }
