"""Refusals of embedding endpoints: their cause, by the words, and the part of them that the log may have."""

import json
import re
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

from shared.models.endpoint_words import NO_CREDIT, NO_MODEL, WRONG_KEY, is_without_credit, logged, strings_in

MAX_READ = 4000


class Cause(Enum):
    KEY = auto()
    CREDIT = auto()
    ENCODING = auto()
    DIMENSIONS = auto()
    ROLE_MISSING = auto()
    ROLE = auto()
    # Accepts one string, and no list.
    LIST = auto()
    # One text is too long; or cannot be embedded.
    LENGTH = auto()
    TEXT = auto()
    # Too many texts, or too much text in all.
    BATCH = auto()
    # Another number of vectors than of texts.
    COUNT = auto()
    MODEL = auto()
    UNKNOWN = auto()


# The first pattern that the words contain names the cause.
_CAUSES = [
    (cause, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for cause, pattern in (
        (Cause.KEY, WRONG_KEY.pattern),
        (Cause.CREDIT, NO_CREDIT.pattern),
        (Cause.ENCODING, r"encoding_format|base64"),
        (Cause.DIMENSIONS, r"\bdimensions?\b|matryoshka|No successful provider responses"),
        (Cause.ROLE_MISSING, r"input_type\W.{0,40}(required|must be provided)"),
        (Cause.LIST, r"expected (type: )?string.{0,40}array|only single text|single text input"),
        (Cause.LENGTH, r"context length|n_ctx|KV size|too large to process|input length|token size|maxLength"
            r"|text.{0,20}too long|(less|fewer|more) than \d+ (tokens|characters)"),
        (Cause.TEXT, r"\bNaN\b|(cannot|not|must not) be (empty|blank)"),
        (Cause.BATCH, r"batch|too many (inputs|tokens|texts)|too large|tokens per request|length of the list"
            r"|(at most|more than) \d+ (requests|items|texts|inputs)|number of (texts|inputs)"
            r"|length limit exceeded"),
        (Cause.ROLE, r"input_type|task_type|\btask\b|prompt_name|default-prompt|extra (inputs|fields)"
            r"|not permitted|unknown name|unrecognized|unexpected (keyword|field)|unsupported param"),
        (Cause.MODEL, r"not support.{0,20}embeddings?|embeddings from this model|pooling type|"
            + NO_MODEL.pattern),
    )
]  # fmt: skip
_BY_STATUS = {401: Cause.KEY, 402: Cause.CREDIT, 403: Cause.KEY, 404: Cause.MODEL, 405: Cause.MODEL,
    410: Cause.MODEL, 413: Cause.BATCH, 501: Cause.MODEL}  # fmt: skip

_TRANSIENT = {408, 502, 503, 504, 529}
_CAUSES_OF_500 = (Cause.LENGTH, Cause.TEXT, Cause.BATCH, Cause.LIST, Cause.MODEL)


class EmbeddingRefusal(Exception):
    """A response without embeddings. `response` is for retry_service: None where a repetition is useless."""

    def __init__(self, cause: Cause, status: int = 200, words: str = "", headers: Any = None) -> None:
        super().__init__(cause.name)
        self.cause, self.status, self.words = cause, status, words
        is_final = cause is not Cause.UNKNOWN or status < 400
        self.response = None if is_final else SimpleNamespace(status_code=status, headers=headers or {})

    @classmethod
    def of(cls, status: int, headers: Any, content: bytes) -> "EmbeddingRefusal":
        """By the status and the body, which may be JSON, HTML or empty."""
        text = content[: 2**20].decode("utf-8", "replace")
        try:
            words = " ".join(strings_in(json.loads(text), without={"input"}))
        except (ValueError, RecursionError):
            words = re.sub(r"<[^>]*>", " ", text)
        words = " ".join(words.split())[:MAX_READ]
        cause = next((cause for cause, pattern in _CAUSES if pattern.search(words)), None)
        if status == 429:
            # Of the limits of requests and tokens a minute, only this one is about the request.
            is_large = "request too large" in words.lower()
            cause = Cause.BATCH if is_large else Cause.UNKNOWN
            cause = Cause.CREDIT if is_without_credit(status, words) else cause
        elif status in _TRANSIENT or (status >= 500 and cause not in _CAUSES_OF_500):
            cause = _BY_STATUS.get(status, Cause.UNKNOWN)
        return cls(cause or _BY_STATUS.get(status, Cause.UNKNOWN), status, words, headers)

    def reason(self, key: str) -> str:
        """For the log: the beginning of the endpoint's words, without the key and others."""
        words = logged(self.words, key)
        return (
            f"status {self.status}: {words}" if words else f"status {self.status}, {self.cause.name.lower()}"
        )

    @property
    def may_be_a_field(self) -> bool:
        """Whether the request may be accepted without its optional fields: the words do not name a cause."""
        return self.cause is Cause.UNKNOWN and self.status in (400, 413, 422)

    @property
    def may_be_the_batch(self) -> bool:
        """Whether fewer texts may be accepted."""
        sized = self.cause in (Cause.BATCH, Cause.COUNT, Cause.LENGTH, Cause.TEXT)
        return sized or (self.cause is Cause.UNKNOWN and self.status in (400, 413, 422, 424, 500))

    def may_be_the_text(self, *, others_accepted: bool) -> bool:
        """Whether a refusal of one text is about this text alone."""
        is_named = self.cause in (Cause.BATCH, Cause.LENGTH, Cause.TEXT)
        return is_named or (others_accepted and self.may_be_the_batch)

    @property
    def is_about_the_batch(self) -> bool:
        return self.cause in (Cause.BATCH, Cause.COUNT)

    def smaller(self, count: int) -> int:
        """The number of texts to try after this refusal of `count`: the one that the words name, or half."""
        if self.cause is Cause.COUNT:
            return 1
        if self.cause is Cause.BATCH and not re.search("token|bytes", self.words):
            named = [int(number) for number in re.findall(r"(?<![\w.-])\d{1,6}(?![\w-]|\.\d)", self.words)]
            return max((number for number in named if 0 < number < count), default=count // 2)
        return count // 2


def refusal_in(reply: Any, headers: Any) -> EmbeddingRefusal | None:
    """The refusal in a response with status 200."""
    body = reply[0] if isinstance(reply, list) and reply else reply
    if not isinstance(body, dict) or not (body.get("error") or body.get("object") == "error"):
        return None
    error = body["error"] if isinstance(body.get("error"), dict) else body
    code = str(error.get("code"))
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else 400
    return EmbeddingRefusal.of(status, headers, json.dumps(body).encode())
