"""Names and stream events of the search contract."""

import json
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from mnemosyne import errors
from mnemosyne.models.search import AnswerEvent

_FIELDS = {"meta": "meta", "citation": "citation", "final": "answer"}


def camel(value: Any) -> Any:
    """The value with camelCase names at every depth, except in metadata, which are the user's own."""
    if isinstance(value, list):
        return [camel(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        to_camel(name): inner if name == "metadata" else camel(inner)
        for name, inner in value.items()
        if inner is not None
    }


def answer_event(name: str, data: str, secret: str, request_id: str | None) -> AnswerEvent | None:
    """The part of a stream for an event; None for an event that this version does not know. Raises the
    event's APIError, and UnexpectedResponseError for a malformed event."""
    try:
        payload = json.loads(data)
        if name == "error":
            raise errors.of_event({"error_detail": payload["error"]}, secret, request_id)
        if name == "token":
            return AnswerEvent(type=name, text=payload["text"])
        if name not in _FIELDS:
            return None
        return AnswerEvent.model_validate({"type": name, _FIELDS[name]: payload})
    except (ValueError, KeyError, TypeError) as fault:
        kinds = fault.errors(include_input=False) if isinstance(fault, ValidationError) else []
        place = ".".join(map(str, kinds[0]["loc"])) if kinds else "the event"
    raise errors.malformed_event(place, secret, request_id)
