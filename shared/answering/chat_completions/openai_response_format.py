"""Replies in OpenAI's format, whole and as a stream."""

import time
from collections.abc import Iterator
from uuid import uuid4

from shared.models.chat_stream import Body, choices, content_of, usage_in
from shared.text.chat_messages import count_usage
from shared.types import Usage


def with_usage(answer: Body, request: Body) -> Body:
    """The gateway's answer, with our count of tokens if it has no usage."""
    if usage_in(answer):
        return answer
    texts = [content_of(choice.get("message")) for choice in choices(answer)]
    return {**answer, "usage": usage_body(count_usage(request["messages"], *texts))}


def usage_body(usage: Usage) -> Body:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def is_last_part(part: Body) -> bool:
    return any(choice.get("finish_reason") for choice in choices(part))


def completion(text: str, model: str, usage: Usage) -> Body:
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage_body(usage),
    }


def stream_parts(answer: Body) -> Iterator[Body]:
    """The parts of a completion's stream: the role, the text line by line, the end."""
    (choice,) = answer["choices"]
    texts = choice["message"]["content"].splitlines(keepends=True)
    for delta in ({"role": "assistant", "content": ""}, *({"content": text} for text in texts)):
        yield stream_part(answer, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])
    yield last_part(answer)


def with_text(answer: Body, text: str) -> Body:
    """The answer with this text in each choice."""
    texts = [{**choice, "message": {**choice["message"], "content": text}} for choice in choices(answer)]
    return {**answer, "choices": texts}


def text_part(template: Body, text: str) -> Body:
    delta = {"role": "assistant", "content": text}
    return stream_part(template, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])


def last_part(template: Body) -> Body:
    return stream_part(template, [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}])


def usage_part(template: Body, usage: Body) -> Body:
    return {**stream_part(template, []), "usage": usage}


def stream_part(template: Body, part_choices: list[Body]) -> Body:
    """A part of the same stream as `template`, an answer or another part."""
    same = {name: template.get(name) for name in ("id", "created", "model")}
    return {**same, "object": "chat.completion.chunk", "choices": part_choices}
