"""The gateway's client against chat endpoints as they are."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from shared.errors import RagError
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_stream import choices, completion_text, content_of
from shared.models.model_capabilities import Author
from tests.shared.models.chat_endpoints import GOOD, WAYS, Endpoint, Way, good_reply, stream_of
from tests.stand_in_server import Reply, Request, StandIn

pytestmark = pytest.mark.usefixtures("short_pauses")

REQUEST = {
    "model": "m",
    "messages": [{"role": "system", "content": "Rules."}, {"role": "user", "content": "How long?"}],
    "temperature": 0,
    "max_tokens": 400,
}
# A client of chat completions may send these.
MORE = {
    "top_p": 0.5, "presence_penalty": 0.1, "frequency_penalty": 0.1, "seed": 1, "parallel_tool_calls": True,
    "store": False, "reasoning_effort": "low",
}  # fmt: skip


def outcome_of(gateway: ChatGateway, request: dict[str, Any], *, stream: bool) -> str:
    async def text() -> str:
        if not stream:
            return completion_text(await gateway.complete(request, Author.PRODUCT))
        written = ""
        async with gateway.stream({**request, "stream": True}, Author.PRODUCT) as parts:
            async for part in parts:
                written += "".join(content_of(choice.get("delta")) for choice in choices(part)[:1])
        return written

    try:
        return f"answer: {asyncio.run(text()).strip()}"
    except RagError as raised:
        error = raised
    assert "sk-" not in f"{error} {error.log_reason}"
    assert len(error.log_reason or "") < 300
    return error.code


def ask(way: Way, *, stream: bool, failures: float = float("inf")) -> str:
    with StandIn() as server:
        server.replies(Reply(json=Endpoint(way, failures=failures)))
        return outcome_of(ChatGateway("sk-key", server.url, "m", 60, 60, "low"), REQUEST, stream=stream)


def names(ways: list[Way]) -> list[str]:
    counts = Counter(way["name"] for way in ways)
    assert max(counts.values()) == 1
    return list(counts)


REFUSING = [way for way in WAYS if "refuses" in way]
OTHERS = [way for way in WAYS if "refuses" not in way]


@pytest.mark.parametrize("way", REFUSING, ids=names(REFUSING))
def test_a_refused_parameter_is_learnt_with_the_first_request(way: Way):
    for request, stream in ((REQUEST, False), (REQUEST, True), ({**REQUEST, **MORE}, False)):
        endpoint = Endpoint(way)
        with StandIn() as server:
            server.replies(Reply(json=endpoint))
            gateway = ChatGateway("sk-key", server.url, "m", 60, 60, "low")
            assert outcome_of(gateway, request, stream=stream) == f"answer: {GOOD}"
            first = endpoint.requests
            assert outcome_of(gateway, request, stream=stream) == f"answer: {GOOD}"
        assert first <= 4
        assert endpoint.requests == first + 1


@pytest.mark.parametrize("way", OTHERS, ids=names(OTHERS))
def test_an_answer_is_without_thoughts_and_a_failure_has_its_cause(way: Way):
    assert ask(way, stream=True) == way["outcome"]
    whole = f"answer: {GOOD}" if "events" in way else way["outcome"]
    assert ask(way, stream=False) == whole
    if "again" in way:
        expected = f"answer: {GOOD}" if way["again"] else way["outcome"]
        assert ask(way, stream=False, failures=1) == expected


@pytest.mark.parametrize(
    "words", ["temperature must be between 0 and 2", "Invalid request.", "Invalid value for 'temperature'"]
)
@pytest.mark.parametrize("author", [Author.CALLER, Author.PRODUCT_AND_CALLER])
def test_a_user_s_wrong_value_changes_no_request_of_another_user(
    gateway: StandIn, words: str, author: Author
):
    def answer(request: Request) -> Reply:
        if request.json.get("temperature", 0) > 2:
            return Reply(status=400, json={"error": {"message": words}})
        return good_reply(request.json, GOOD)

    gateway.replies(Reply(json=answer))
    endpoint = ChatGateway("sk-key", gateway.url, "m", 60, 60)

    async def ask(request: dict[str, Any]) -> None:
        await endpoint.complete(request, author)

    with suppress(RagError):
        asyncio.run(ask({**REQUEST, "temperature": 5}))
    asyncio.run(ask(REQUEST))
    assert gateway.requests[-1].json == REQUEST


def test_a_stream_shows_that_a_model_s_thoughts_have_no_opening_mark(gateway: StandIn):
    """Two streams have returned them when their end arrives; the next one returns none."""
    words = ["Kettles", " are on page 2.", "\n</think>\n\n", GOOD]
    parts: list[Any] = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in words]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    gateway.replies(stream_of([*parts, last, "[DONE]"]))
    endpoint = ChatGateway("sk-key", gateway.url, "m", 60, 60)
    assert outcome_of(endpoint, REQUEST, stream=True) != f"answer: {GOOD}"
    assert outcome_of(endpoint, REQUEST, stream=True) != f"answer: {GOOD}"
    assert outcome_of(endpoint, REQUEST, stream=True) == f"answer: {GOOD}"


def test_one_answer_with_a_closing_mark_changes_no_other_answer(gateway: StandIn):
    """A user may ask a model for the mark."""
    asked_for = good_reply({}, "The tag is:\n</think>\nThat is all.")
    cut_off = good_reply({}, GOOD)
    cut_off.json["choices"][0]["finish_reason"] = "length"
    gateway.replies(asked_for, cut_off)
    endpoint = ChatGateway("sk-key", gateway.url, "m", 60, 60)
    outcome_of(endpoint, REQUEST, stream=False)
    assert outcome_of(endpoint, REQUEST, stream=False) == f"answer: {GOOD}"
    assert gateway.requests[-1].json["max_tokens"] == REQUEST["max_tokens"]


def test_a_refused_stream_is_learnt_from_a_caller_s_request_too(gateway: StandIn):
    """Its words are about no value."""
    words = "Your organization must be verified to stream this model."

    def answer(request: Request) -> Reply:
        if request.json.get("stream"):
            return Reply(status=400, json={"error": {"message": words, "param": "stream"}})
        return good_reply(request.json, GOOD)

    gateway.replies(Reply(json=answer))
    endpoint = ChatGateway("sk-key", gateway.url, "m", 60, 60)

    async def ask() -> None:
        async with endpoint.stream({**REQUEST, "stream": True}) as parts:
            async for _ in parts:
                pass

    for _ in range(2):
        asyncio.run(ask())
    assert [bool(request.json.get("stream")) for request in gateway.requests] == [True, False, False]
