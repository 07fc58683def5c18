"""Texts of completions without the thoughts before them, whole and streamed.

Thoughts come in the text between marks, as parts of the content, or in fields of their own. Those in the text
are moved to the field `reasoning_content`, which clients know. A model that thinks gets more tokens than the
limit of its answer (model_capabilities.py), which is kept here.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from shared.models.chat_stream import Body, choices, content_of
from shared.models.model_capabilities import LIMIT, NEW_LIMIT, ModelCapabilities
from shared.models.thoughts import ThoughtFilter, separate
from shared.text.token_count import count_tokens

# Fields of a message or delta with thoughts.
FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
# Our count of tokens is an upper bound, nearly half above the count of most models (token_count.py).
ESTIMATE = 1.5
# Fields that are an answer without a text.
OTHER_ANSWERS = ("tool_calls", "function_call", "refusal", "audio")


def has_answer(body: Body, field: str) -> bool:
    """Whether a choice has a text or another answer, in its `field`: `message`, or `delta` of a stream."""
    return any(_has_answer(choice.get(field)) for choice in choices(body))


def _has_answer(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    return bool(content_of(message).strip()) or any(message.get(name) for name in OTHER_ANSWERS)


def is_filtered(body: Body) -> bool:
    """Whether a filter has withheld the answer."""
    return any(choice.get("finish_reason") == "content_filter" for choice in choices(body))


def without_thoughts(completion: Body, request: Body, capabilities: ModelCapabilities) -> Body:
    """The completion with the answers alone as its texts. Notes in `capabilities` what they show."""
    limit = _limit_of(request)
    has_extra_tokens = capabilities.has_extra_tokens(request)
    made = []
    for choice in choices(completion):
        message = value if isinstance(value := choice.get("message"), dict) else {}
        text, thoughts, text_filter = separate(content_of(message))
        is_cut_off = choice.get("finish_reason") == "length"
        if is_cut_off and capabilities.is_unopened and not text_filter.is_unopened:
            # A model that writes no opening mark has not come to its closing one.
            text, thoughts = "", text
        _note(capabilities, message, thoughts, text_filter, is_known=bool(text) and not is_cut_off)
        cut = _cut(text, limit) if has_extra_tokens and limit else text
        reason = {"finish_reason": "length"} if len(cut) < len(text) else {}
        if is_cut_off and not text.strip():
            capabilities.thinks = True
        made.append({**choice, "message": _with(message, cut, thoughts), **reason})
    _note_usage(capabilities, completion)
    return {**completion, "choices": made}


async def parts_without_thoughts(
    replies: AsyncGenerator[Body], request: Body, capabilities: ModelCapabilities
) -> AsyncGenerator[Body]:
    """The parts of a stream with texts that are the answer alone, which ends at the request's limit."""
    limit = _limit_of(request)
    has_extra_tokens = capabilities.has_extra_tokens(request)
    texts: dict[str, _StreamedText] = {}
    part: Body = {}
    async with aclosing(replies):
        async for part in replies:
            made = []
            for choice in choices(part):
                delta = value if isinstance(value := choice.get("delta"), dict) else {}
                streamed = texts.setdefault(str(choice.get("index")), _StreamedText(capabilities))
                text, thoughts = streamed.feed(delta, is_last=bool(choice.get("finish_reason")))
                if choice.get("finish_reason") == "length" and not streamed.tokens:
                    capabilities.thinks = True
                if has_extra_tokens and limit and streamed.tokens > limit:
                    rest = _cut(text, limit - streamed.tokens + count_tokens(text))
                    ended = {**choice, "delta": _with(delta, rest, thoughts), "finish_reason": "length"}
                    yield {**part, "choices": [ended]}
                    return
                made.append({**choice, "delta": _with(delta, text, thoughts)})
            _note_usage(capabilities, part)
            yield {**part, "choices": made} if made else part
    # A stream may end without a reason.
    for index, streamed in texts.items():
        text, _ = streamed.feed({}, is_last=True)
        if text:
            choice = {"index": int(index) if index.isdecimal() else 0, "delta": {"content": text}}
            yield {**part, "choices": [choice]}


class _StreamedText:
    """The text of one choice, and its tokens so far."""

    def __init__(self, capabilities: ModelCapabilities) -> None:
        self._capabilities = capabilities
        self._filter = ThoughtFilter(holds=capabilities.is_unopened)
        self._has_ended = False
        self.tokens = 0

    def feed(self, delta: Body, *, is_last: bool) -> tuple[str, str]:
        """The answer and the thoughts that the delta adds."""
        text, thoughts = self._filter.feed(content_of(delta))
        ends = is_last and not self._has_ended
        if ends:
            self._has_ended = True
            rest, rest_of_thoughts = self._filter.end()
            text, thoughts = text + rest, thoughts + rest_of_thoughts
        self.tokens += count_tokens(text)
        _note(self._capabilities, delta, thoughts, self._filter, is_known=ends and self.tokens > 0)
        return text, thoughts


async def until_empty_end(replies: AsyncGenerator[Body], empty_ends: list[Body]) -> AsyncGenerator[Body]:
    """The parts of a stream; of one that ends without an answer, those before its end, which is appended to
    `empty_ends`."""
    has_text = False
    last: Body = {}
    async with aclosing(replies):
        async for part in replies:
            has_text = has_text or has_answer(part, "delta")
            last = part
            if not has_text and any(choice.get("finish_reason") for choice in choices(part)):
                break
            yield part
    if not has_text:
        empty_ends.append(last)


def _limit_of(request: Body) -> int | None:
    limit = request.get(NEW_LIMIT, request.get(LIMIT))
    return round(ESTIMATE * limit) if type(limit) is int else None


def _note(
    capabilities: ModelCapabilities,
    message: Body,
    thoughts: str,
    text_filter: ThoughtFilter,
    *,
    is_known: bool,
) -> None:
    """Note the capabilities that a message shows of its model. `is_known`: with a whole answer."""
    has_thoughts = thoughts and not text_filter.is_unopened
    if has_thoughts or text_filter.is_open or any(message.get(name) for name in FIELDS):
        capabilities.thinks = True
    if is_known:
        capabilities.note_unopened(is_unopened=text_filter.is_unopened)


def _note_usage(capabilities: ModelCapabilities, body: Body) -> None:
    usage = body.get("usage")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    tokens = details.get("reasoning_tokens") if isinstance(details, dict) else None
    if type(tokens) is int and tokens > 0:
        capabilities.thinks = True


def _with(message: Body, text: str, thoughts: str) -> Body:
    """The message with that text, and thoughts that were in it in the field for them."""
    content = message.get("content")
    if content_of(message) == text and not thoughts and not isinstance(content, list):
        return message
    made = {**message, "content": text}
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and part.get("type") == "refusal":
            made["refusal"] = part.get("refusal")
    if thoughts:
        made["reasoning_content"] = thoughts
    return made


def _cut(text: str, tokens: int) -> str:
    """The beginning of the text with that many tokens."""
    if count_tokens(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= tokens else (low, middle - 1)
    return text[:low].rstrip()
