"""Events of a chat's stream as chunks, errors and ends."""

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from mnemosyne import errors
from mnemosyne.models.chat import ChatCompletionChunk

Payload = dict[str, Any]


def chunk_of(name: str, data: str, secret: str, request_id: str | None) -> ChatCompletionChunk | None:
    """The chunk of an event; None for an event that this version does not know. Raises the event's APIError,
    and UnexpectedResponseError for a malformed event."""
    if name:
        return None
    try:
        payload = json.loads(data)
        kind = payload["type"]
        if kind == "error":
            raise errors.of_event(payload, secret, request_id)
        fields = _FIELDS.get(kind)
        if fields is None:
            return None
        return ChatCompletionChunk.model_validate({"type": kind, **fields(payload)})
    except (ValueError, KeyError, TypeError) as fault:
        kinds = fault.errors(include_input=False) if isinstance(fault, ValidationError) else []
        place = ".".join(map(str, kinds[0]["loc"])) if kinds else "the event"
    raise errors.malformed_event(place, secret, request_id)


def _delta(payload: Payload) -> Payload:
    return {"choices": [{"delta": {"role": "assistant", "content": payload["content"]}}]}


def _done(payload: Payload) -> Payload:
    return {**_but_type(payload), "choices": [{"finish_reason": "stop"}]}


def _but_type(payload: Payload) -> Payload:
    return {name: value for name, value in payload.items() if name != "type"}


_FIELDS: dict[str, Callable[[Payload], Payload]] = {
    "delta": _delta,
    "sources": _but_type,
    "usage": _but_type,
    "reasoning_step": lambda payload: {"reasoning_step": _but_type(payload)},
    "sub_query": lambda payload: {"sub_query": payload["query"]},
    "done": _done,
}
