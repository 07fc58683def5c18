"""What an event of a chat's stream is to the caller: a chunk, an error, the end, or nothing that is known."""

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from mnemosyne import errors
from mnemosyne.models.chat import ChatCompletionChunk

Said = dict[str, Any]


def chunk_of(data: str, secret: str, request_id: str | None) -> ChatCompletionChunk | None:
    """None for an event that this version does not know. Raises the APIError that it says, and
    UnexpectedResponseError for one of another form."""
    try:
        said = json.loads(data)
        kind = said["type"]
        if kind == "error":
            raise errors.of_event(said, secret, request_id)
        fields = _FIELDS.get(kind)
        if fields is None:
            return None
        return ChatCompletionChunk.model_validate({"type": kind, **fields(said)})
    except (ValueError, KeyError, TypeError) as fault:
        kinds = fault.errors(include_input=False) if isinstance(fault, ValidationError) else []
        place = ".".join(map(str, kinds[0]["loc"])) if kinds else "the event"
    raise errors.UnexpectedResponseError(
        errors.masked(f"This is no event of the API's stream: {place}.", secret),
        status_code=200,
        request_id=request_id,
    )


def _delta(said: Said) -> Said:
    return {"choices": [{"delta": {"role": "assistant", "content": said["content"]}}]}


def _done(said: Said) -> Said:
    return {**_but_type(said), "choices": [{"finish_reason": "stop"}]}


def _but_type(said: Said) -> Said:
    return {name: value for name, value in said.items() if name != "type"}


_FIELDS: dict[str, Callable[[Said], Said]] = {
    "delta": _delta,
    "sources": _but_type,
    "usage": _but_type,
    "reasoning_step": lambda said: {"reasoning_step": _but_type(said)},
    "sub_query": lambda said: {"sub_query": said["query"]},
    "done": _done,
}
