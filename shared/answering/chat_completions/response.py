"""Answers in the words that chat models' endpoints give them in: what they say, what they cost; and those
that no endpoint gave, whole and in parts."""

import time
from collections.abc import Iterator, Sequence
from uuid import uuid4

from shared.answering.chat_completions.request import cost
from shared.models.chat_stream import Body, choices, content_of, usage_in
from shared.text.token_count import count_tokens
from shared.types import Usage

# The readers of chat_stream.py are used through this module, too.
__all__ = ["choices", "content_of", "usage_in"]


def with_usage(answer: Body, request: Body) -> Body:
    """An endpoint's answer, with its usage counted here where it did not count."""
    if usage_in(answer):
        return answer
    written = [choice.get("message") for choice in choices(answer)]
    return {**answer, "usage": counted(request, [content_of(message) for message in written])}


def counted(request: Body, written: Sequence[str]) -> Body:
    read = sum(map(cost, request["messages"]))
    return usage_body(Usage(read, sum(map(count_tokens, written))))


def usage_body(usage: Usage) -> Body:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def ends(part: Body) -> bool:
    """Whether this part of a stream says that an answer is complete."""
    return any(choice.get("finish_reason") for choice in choices(part))


def completion(text: str, model: str, usage: Usage) -> Body:
    """An answer that no endpoint gave, as one would give it."""
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage_body(usage),
    }


def parts(answer: Body) -> Iterator[Body]:
    """The same answer as it would be streamed: who speaks, the text line by line, the end."""
    (choice,) = answer["choices"]
    texts = choice["message"]["content"].splitlines(keepends=True)
    for delta in ({"role": "assistant", "content": ""}, *({"content": text} for text in texts)):
        yield part(answer, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])
    yield last_part(answer)


def last_part(like: Body) -> Body:
    return part(like, [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}])


def usage_part(like: Body, usage: Body) -> Body:
    return {**part(like, []), "usage": usage}


def part(like: Body, own: list[Body]) -> Body:
    """A part of the stream that this answer, or its other parts, belong to."""
    same = {name: like.get(name) for name in ("id", "created", "model")}
    return {**same, "object": "chat.completion.chunk", "choices": own}


class SurrogateJoiner:
    """The halves of characters that come apart, as two escapes of JSON in two parts of a stream, together."""

    def __init__(self) -> None:
        self._half = ""

    def joined(self, text: str) -> str:
        """The text, without a first half at its end, which waits for the second; a half alone is a mark."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        whole = text[: len(text) - len(self._half)]
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
