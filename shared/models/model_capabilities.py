"""Parameters that a chat endpoint takes from a model's caller, learnt from its refusals.

OpenAI's reasoning models refuse a temperature and want max_completion_tokens; older servers do not know
stream_options. So a refused parameter is left out or renamed, and the process remembers it for the model.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from itertools import chain
from threading import Lock
from typing import Any

from cachetools import LRUCache

from shared.models.chat_stream import Body
from shared.models.endpoint_words import strings_in

LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
# A request means the same without these. Of two that exclude each other, the first is left out.
OPTIONAL = (
    "stream_options", "reasoning_effort", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty",
    "seed", "logit_bias", "logprobs", "top_logprobs", "parallel_tool_calls", "store", "metadata", "user",
    "temperature", LIMIT, NEW_LIMIT,
)  # fmt: skip
# The thinking budget: tokens that a model gets besides the limit of its answer.
THINKING_TOKENS = 8192
# Words of a refusal that is about a number, not about the parameter.
_ABOUT_THE_NUMBER = re.compile(
    r"too large|too high|too big|at most|maximum|exceed|greater than|less than|out of range|must be between",
    re.IGNORECASE,
)
# Words of a refusal that is about a value, or about two parameters together.
_ABOUT_A_VALUE = re.compile(
    r"unsupported[_ ]value|does ?n[o']t support '|must be one of|supported values|"
    r"only .{0,30}(?:allowed|supported)|cannot both|while |\w=[\d'\"]",
    re.IGNORECASE,
)
# Words of a refusal that is about a parameter whatever its value.
_ABOUT_THE_PARAMETER = re.compile(
    r"unsupported|(?:not|n't) support|unknown|unrecogni[sz]ed|unexpected|deprecated|"
    r"not (?:permitted|allowed|available)|no longer|extra (?:inputs|fields)|use '?max_|instead",
    re.IGNORECASE,
)
_ONLY_THE_DEFAULT = re.compile(r"only (?:the )?default", re.IGNORECASE)
_SYSTEM_ROLE = re.compile(
    r"""(?:system|developer).{0,40}(?:role|instruction|message|prompt)
    .{0,60}not\ (?:be\ )?(?:support|enabl|allow)
    |role:?\ (?:system|developer)
    |role.{0,40}not\ support.{0,20}system|not\ support.{0,30}(?:system|developer)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_STREAM = re.compile(
    r"'stream' does not support|verified to stream|stream(?:ing)? (?:is|are) not (?:supported|enabled)|"
    r"not support (?:streaming|stream\b)",
    re.IGNORECASE,
)
# Qwen3 behind some servers thinks in streams only.
_NO_THOUGHTS_IN_WHOLE_ANSWERS = re.compile(r"enable[_ ]thinking", re.IGNORECASE)
MODELS = 100
OTHER_LIMIT = {LIMIT: NEW_LIMIT, NEW_LIMIT: LIMIT}


class Author(Enum):
    """The author of a request: the product; the product with sampling values of a caller; or a caller."""

    PRODUCT = auto()
    PRODUCT_AND_CALLER = auto()
    CALLER = auto()


class ModelCapabilities:
    """The requests of one author that a model accepts. `effort`: of thinking, for requests without one."""

    def __init__(self, author: Author, effort: str | None) -> None:
        self._author = author
        self._effort = effort
        self._refused: frozenset[str] = frozenset()
        self._has_system_role = self._has_streams = True
        self._thinks_in_streams_only = False
        # The names that were refused before a caller's value.
        self._refused_before: frozenset[str] | None = None
        self._thinking_tokens = THINKING_TOKENS
        # Whether the model writes thoughts, and whether without an opening mark; None if that is unknown.
        self.thinks = False
        self.is_unopened: bool | None = None
        self._was_unopened = False

    def note_unopened(self, *, is_unopened: bool) -> None:
        """Note whether a text had thoughts without an opening mark. Two in a row show it of the model: in a
        single one, the closing mark may be what its user asked for."""
        if not is_unopened or self._was_unopened:
            self.is_unopened = is_unopened
            self.thinks = self.thinks or is_unopened
        self._was_unopened = is_unopened

    def has_extra_tokens(self, request: Body) -> bool:
        """Whether the request is sent with more than its limit, or without it, so that its answer is to be
        cut there. Not with several choices, which would end at different tokens."""
        return request.get("n", 1) in (1, None) and (
            (self.thinks and self._thinking_tokens > 0) or {LIMIT, NEW_LIMIT} <= self._refused
        )

    def thinking_tokens(self, request: Body, name: str) -> int:
        """The tokens for thoughts that are added to this limit of an answer."""
        is_limited = type(request.get(name)) is int
        return self._thinking_tokens if self.thinks and is_limited and self.has_extra_tokens(request) else 0

    def adapted(self, request: Body) -> Body:
        """The request as the endpoint takes it."""
        body = dict(request)
        if self.thinks and self._effort:
            body.setdefault("reasoning_effort", self._effort)
        for name in (LIMIT, NEW_LIMIT):
            if extra := self.thinking_tokens(request, name):
                body[name] += extra
        for name in self._refused & body.keys():
            value = body.pop(name)
            if (other := OTHER_LIMIT.get(name)) and other not in self._refused:
                body[other] = value
        if not self._has_streams:
            body = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        if self._thinks_in_streams_only and not body.get("stream"):
            body.setdefault("enable_thinking", False)
        if not self._has_system_role:
            body["messages"] = _without_system_role(body["messages"])
        return body

    def reduce_thinking_tokens(self, sent: Body) -> bool:
        """Reduce the tokens for thoughts, after a refusal for the length of the request that was `sent`.
        False if it had none: the limit itself is the caller's."""
        has_extra_tokens = any(self.thinking_tokens(sent, name) > 0 for name in (LIMIT, NEW_LIMIT))
        self._thinking_tokens = self._thinking_tokens // 4 if self._thinking_tokens > 512 else 0
        return has_extra_tokens

    def remember(self, trial: "ModelCapabilities") -> None:
        """Add the capabilities of an accepted request, unless a value of the request was refused before: a
        user's value must not change the requests of other users."""
        if trial._refused_before is not None:
            self._refused |= trial._refused_before
            return
        self._refused |= trial._refused
        self._has_system_role = self._has_system_role and trial._has_system_role
        self._has_streams = self._has_streams and trial._has_streams
        self._thinks_in_streams_only = self._thinks_in_streams_only or trial._thinks_in_streams_only

    def learn(self, sent: Body, refusal: Any) -> bool:
        """Whether another form of the request may be accepted, after the refusal of the one that was `sent`.
        `refusal` is the JSON of the response, or its text. A user's value that is out of range is the
        user's to correct."""
        text = " ".join(strings_in(refusal))
        name = self._refused_parameter(sent, refusal, text)
        other = OTHER_LIMIT.get(name) if name else None
        if name and _ABOUT_THE_NUMBER.search(text) and not (other and _is_named(other, text)):
            if other:
                return self.reduce_thinking_tokens(sent)
            if self._author is Author.CALLER:
                return False
            self._note_value()
        if self._has_streams and sent.get("stream") and _STREAM.search(text):
            self._has_streams = False
            return True
        if name:
            if self._author is not Author.PRODUCT and not _is_about_the_parameter(text):
                self._note_value()
            self._refused |= {name}
            return True
        if (
            not sent.get("stream")
            and "enable_thinking" not in sent
            and _NO_THOUGHTS_IN_WHOLE_ANSWERS.search(text)
        ):
            self._thinks_in_streams_only = True
            return True
        if self._has_system_role and _SYSTEM_ROLE.search(text) and _has_system_message(sent):
            self._has_system_role = False
            return True
        return False

    def _note_value(self) -> None:
        if self._refused_before is None:
            self._refused_before = self._refused

    @staticmethod
    def minimal(sent: Body) -> Body:
        """The request without the parameters that may be left out, but with its limit."""
        limits = {LIMIT, NEW_LIMIT}
        return {name: value for name, value in sent.items() if name not in OPTIONAL or name in limits}

    def omit(self, names: Iterable[str]) -> None:
        """Leave out the names, after a refusal without a cause that the request without them did not get: of
        a caller's values, one may be out of range."""
        if self._author is Author.PRODUCT:
            self._refused |= {name for name in names if name in OPTIONAL}

    def _refused_parameter(self, sent: Body, refusal: Any, text: str) -> str | None:
        names = [name for name in OPTIONAL if name in sent]
        fields = {part for name in _parameters(refusal) for part in re.split(r"[^\w]+", name)}
        by_field = (name for name in names if name in fields)
        by_words = (name for name in names if _is_named(name, text))
        return next(chain(by_field, by_words), None)


def _is_about_the_parameter(text: str) -> bool:
    """Whether a refusal holds for each value of the parameter."""
    is_unknown = _ABOUT_THE_PARAMETER.search(text) and not _ABOUT_A_VALUE.search(text)
    return bool(is_unknown or _ONLY_THE_DEFAULT.search(text))


def _is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){name}(?!\w)", text) is not None


def _parameters(refusal: Any) -> Iterator[str]:
    """The names of parameters in the fields of an error: `param`, or the `loc` of a list of faults."""
    if isinstance(refusal, list):
        for each in refusal:
            yield from _parameters(each)
    elif isinstance(refusal, dict):
        for name, value in refusal.items():
            if name in ("param", "loc", "field", "parameter"):
                yield from strings_in(value)
            else:
                yield from _parameters(value)


def _has_system_message(request: Body) -> bool:
    return any(message.get("role") in ("system", "developer") for message in request["messages"])


def _without_system_role(messages: list[Body]) -> list[Body]:
    """The messages, with the text of each system message before that of the next message of the user."""
    result: list[Body] = []
    instructions: list[str] = []
    for message in messages:
        content = message.get("content")
        if message.get("role") in ("system", "developer") and isinstance(content, str):
            instructions.append(content)
        elif message.get("role") == "user" and instructions and isinstance(content, str):
            result.append({**message, "content": "\n\n".join([*instructions, content])})
            instructions = []
        else:
            result.append(message)
    return result + ([{"role": "user", "content": "\n\n".join(instructions)}] if instructions else [])


class CapabilitiesByModel:
    """The capabilities of the models of an endpoint that were last used; a caller may name any."""

    def __init__(self, effort: str | None) -> None:
        self._effort = effort
        self._capabilities: LRUCache[tuple[str, Author], ModelCapabilities] = LRUCache(MODELS)
        self._lock = Lock()

    def of(self, request: Body, author: Author) -> ModelCapabilities:
        """Those learned from requests of the author: a caller's values do not change other requests."""
        key = str(request.get("model")), author
        with self._lock:
            if key not in self._capabilities:
                effort = None if author is Author.CALLER else self._effort
                self._capabilities[key] = ModelCapabilities(author, effort)
            return self._capabilities[key]
