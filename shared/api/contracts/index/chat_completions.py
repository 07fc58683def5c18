"""The wire models of the index contract's chat completions: OpenAI's, with an index and nodes."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from shared.answering.chat_completions.request import (
    GROUNDED,
    GROUNDED_IN,
    MODEL_CHARACTERS,
    Conversation,
    is_grounded,
)
from shared.answering.chat_completions.response import ends
from shared.api.contracts.fastapi_errors import CollectionName
from shared.api.contracts.index import index
from shared.api.contracts.index.index import Node
from shared.api.sse import event
from shared.errors import InvalidRequest, NotFound, RagError
from shared.models.chat_stream import Body
from shared.types import Match

# What is ours or KAITO's, and no model's endpoint knows.
OWN = frozenset({"index_name", "top_k", "context_token_ratio"})
DONE = b"data: [DONE]\n\n"
FORM = "Invalid request format: "
# OpenAI's kinds of errors, which clients of theirs show.
KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}

# What they say of themselves with each request, which browsers ask about first.
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
    """Every error, whatever its status: the index contract's, and beside it what OpenAI's clients read."""

    detail: str
    error: OpenAIError


def error_body(error: RagError) -> dict[str, Any]:
    said = (
        f"{FORM}{error}"
        if isinstance(error, InvalidRequest) and error.faults
        else str(index.error_body(error)["detail"])
    )
    kind = KINDS.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    return {"detail": said, "error": {"message": said, "type": kind, "code": error.code}}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")

    include_usage: Annotated[bool, Field(strict=True)] | None = None


class Completion(BaseModel):
    """What is known of a request; whatever else it says is for the model, as it came."""

    model_config = ConfigDict(extra="allow")

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    index_name: CollectionName | None = None
    top_k: Annotated[int, Field(strict=True, ge=1, le=100)] | None = None
    model: ModelName | None = None
    stream: Annotated[bool, Field(strict=True)] | None = None
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
        """Raises InvalidRequest for messages that are none and for a model and an index_name that name two
        indexes, NotFound for a model that names no index."""
        for message in self.messages:
            _check(message)
        try:
            said = self.model_dump(exclude_unset=True)
            # Python reads NaN and 1e400 as if they were JSON.
            json.dumps(said, allow_nan=False)
        except (ValueError, RecursionError):
            raise InvalidRequest(f"{FORM}it must be JSON, not too deep, with finite numbers.") from None
        request = {name: value for name, value in said.items() if name not in OWN}
        top_k = 5 if self.top_k is None else self.top_k
        if not (self.model and is_grounded(self.model)):
            return Conversation(request, self.index_name, top_k)
        # The gateway does not know this model: its default one answers.
        del request["model"]
        return Conversation(request, self._index(), top_k, everything=True)

    def _index(self) -> str | None:
        if self.model == GROUNDED:
            return self.index_name
        named = (self.model or "").removeprefix(GROUNDED_IN)
        if self.index_name not in (None, named):
            raise InvalidRequest(f"{FORM}'model' and 'index_name' name two indexes.")
        try:
            return INDEX.validate_python(named)
        except ValidationError:
            raise NotFound(code="collection_not_found", details={"name": named}) from None


def _check(message: dict[str, Any]) -> None:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise InvalidRequest(f"{FORM}messages must contain 'role'.")
    if role not in ("user", "system", "developer", "assistant"):
        return  # For the model alone, which knows what such a message holds.
    if content is None and role != "assistant":
        raise InvalidRequest(f"{FORM}messages must contain 'content' for role '{role}'.")
    is_list = isinstance(content, list) and all(isinstance(part, str | dict) for part in content)
    if not (content is None or isinstance(content, str) or is_list):
        raise InvalidRequest(f"{FORM}'content' must be a text or a list of parts.")


class Answer(BaseModel):
    """An answer; whatever else the model's endpoint says in it is there as it came."""

    model_config = ConfigDict(extra="allow")

    choices: list[dict[str, Any]]
    usage: dict[str, Any]
    source_nodes: list[Node] | None


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


def answer(said: Body, matches: Sequence[Match] | None) -> bytes:
    body = {**said, "source_nodes": _nodes(matches)}
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def part(said: Body, matches: Sequence[Match] | None) -> bytes:
    """A part of a stream as an event: the one that ends the answer has the nodes."""
    return event({**said, "source_nodes": _nodes(matches)} if ends(said) else said)


def encode_error(error: RagError) -> bytes:
    """What is said in the middle of a stream that breaks."""
    return event({"error": error_body(error)["error"]})


def _nodes(matches: Sequence[Match] | None) -> list[dict[str, Any]] | None:
    return None if matches is None else [Node.of(match).model_dump() for match in matches]
