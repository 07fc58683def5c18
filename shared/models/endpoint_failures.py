"""Failures of a model's endpoint: the cause, for the caller and the log, and whether to try again."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.clients.http_client import retry_after
from shared.errors import (
    GenerationBusy,
    GenerationFailed,
    GenerationFiltered,
    GenerationRefused,
    ModelNotFound,
    ModelUnauthorized,
    ModelWithoutCredit,
    PromptTooLong,
    RagError,
)
from shared.models.endpoint_words import NO_MODEL, WAIT, WRONG_KEY, is_without_credit, logged

MAX_REFUSAL_BYTES = 64 * 1024
# Fields of an error with words for people, or with its code.
WORDED_FIELDS = (
    "message", "msg", "error", "errors", "detail", "code", "type", "status", "metadata", "raw", "innererror",
)  # fmt: skip
# The Retry-After of an endpoint that names none.
DEFAULT_SECONDS = 30
_FILTER = re.compile(
    r"content[_ -]?(?:filter|management|policy)|ResponsibleAI|safety (?:system|filter|settings)|"
    r"prohibited[_ ]content|content exists risk|data_inspection_failed|inappropriate content",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens|"
    r"input (?:is too long|length|token count)|reduce (?:the length|your (?:message|prompt))|"
    r"request too large|max_tokens must be at least 1, got -|exceeds? the (?:maximum|available|model)",
    re.IGNORECASE,
)
_TRANSIENT = frozenset({429, 502, 503, 529})


@dataclass(frozen=True)
class Refusal:
    """A response that is no answer. `content`: its JSON, or its text."""

    status: int
    headers: Mapping[str, str]
    content: Any

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], body: bytes) -> "Refusal":
        text = body.decode("utf-8", "replace")
        try:
            return cls(status, headers, json.loads(text))
        except (ValueError, RecursionError):
            return cls(status, headers, text)

    @property
    def message(self) -> str:
        """The endpoint's own words, on one line."""
        return " ".join(" ".join(_messages(self.content)).split())

    @property
    def seconds(self) -> float | None:
        """The pause that the endpoint asks for; None if another attempt is in vain."""
        if self.status not in _TRANSIENT or is_without_credit(self.status, self.message):
            return None
        return _pause_of(self.headers, self.message)

    def error(self, key: str) -> RagError:
        """The error that a caller gets. `key` is kept out of the log."""
        words = logged(self.message, key)
        reason = f"status {self.status}: {words}" if words else f"status {self.status}"
        kind = self._kind()
        if kind is GenerationBusy:
            wait = max(1, round(self.seconds or 0)) if self.seconds else DEFAULT_SECONDS
            return GenerationBusy(headers={"Retry-After": str(wait)}, log_reason=reason)
        return kind(log_reason=reason)

    def _kind(self) -> type[RagError]:
        message = self.message
        if is_without_credit(self.status, self.message):
            return ModelWithoutCredit
        if self.status in (401, 403) or (self.status == 400 and WRONG_KEY.search(message)):
            return ModelUnauthorized
        if self.status in (429, 503, 529):
            return GenerationBusy
        if self.status in (400, 404, 413, 422, 500):
            for pattern, kind in (
                (_FILTER, GenerationFiltered),
                (_TOO_LONG, PromptTooLong),
                (NO_MODEL, ModelNotFound),
            ):
                if pattern.search(message):
                    return kind
        return GenerationRefused if self.status in (400, 404, 413, 422) else GenerationFailed


def _pause_of(headers: Mapping[str, str], message: str) -> float:
    if (seconds := retry_after(headers)) is not None:
        return seconds
    if words := WAIT.search(message):
        number = float(words[2]) / (1000 if words[3] == "ms" else 1)
        return 60 * int(words[1] or 0) + number
    return 0.0


def _messages(value: Any) -> list[str]:
    """The texts of an error's fields that people read, and its codes."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for each in value for text in _messages(each)]
    if isinstance(value, dict):
        return [text for name in WORDED_FIELDS if name in value for text in _messages(value[name])]
    return []
