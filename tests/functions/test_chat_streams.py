"""The platform's chat as a stream: chunks of the listed types in their order, deep reasoning in steps, and
ends."""

import json
from threading import Event

import httpx
import pytest

from functions import chat
from shared.config import Settings
from shared.generation.refusal_texts import INSUFFICIENT
from shared.services import Services
from tests.clients.upstream_models import StreamChunk
from tests.functions.app_server import live, services_with
from tests.functions.chat_completions_client import DONE, encode, piece
from tests.functions.platform_chat_client import (
    ANSWER,
    OFF_TOPIC,
    PATH,
    QUESTION,
    Row,
    chat_client,
    chunks_of,
    messages_of,
    reply_of,
    say,
    streams,
    text_of,
)
from tests.functions.search_workspace import Workspace
from tests.stand_in_server import Reply, StandIn

PIECES = ("Stripe webhook ", "retries piled up ", "in the queue.")


def types_of(chunks: list[Row]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


def planned(*queries: str) -> Reply:
    steps = [{"description": f"Finding out: {query}", "query": query} for query in queries]
    return reply_of(json.dumps({"steps": steps}))


def test_a_stream_has_sources_then_text_then_usage_and_end(
    settings: Settings, services: Services, home: Workspace, gateway: StandIn
):
    cost = {"choices": [], "usage": {"prompt_tokens": 321, "completion_tokens": 7}}
    gateway.replies(Reply(chunks=[*encode(*map(piece, PIECES), piece(), cost), DONE]))
    with chat_client(settings, gateway) as client:
        chunks = chunks_of(say(client, home.actor, stream=True))
    assert gateway.requests[0].json["stream_options"] == {"include_usage": True}
    assert types_of(chunks) == ["sources", "delta", "delta", "delta", "usage", "done"]
    assert text_of(chunks) == ANSWER
    assert all(chunk["delta"] == chunk["content"] for chunk in chunks[1:4])
    assert chunks[0]["sources"][0]["title"] == "Billing outage"
    usage = chunks[-2]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (321, 7, 328)
    assert usage["retrieval_tokens"] > 0
    session = chunks[-1]["metadata"]["session_id"]
    assert messages_of(services, home.actor, session) == [("user", QUESTION), ("assistant", ANSWER)]


@pytest.mark.parametrize(
    ("question", "answer"), [(QUESTION, "Stripe webhook retries"), (OFF_TOPIC, INSUFFICIENT)]
)
def test_without_a_model_the_answer_is_streamed_as_well(
    settings: Settings, home: Workspace, question: str, answer: str
):
    with chat_client(settings, None) as client:
        chunks = chunks_of(say(client, home.actor, question, stream=True))
    kinds = types_of(chunks)
    assert (kinds[0], kinds[1], kinds[-2:]) == ("sources", "delta", ["usage", "done"])
    assert answer in text_of(chunks)
    assert chunks[-1]["metadata"]["extractive"] is True


def test_deep_reasoning_streams_each_step_and_combines_the_results(
    settings: Settings, services: Services, home: Workspace, gateway: StandIn
):
    parts = ("Why was billing down?", "Who owns the billing service?")
    gateway.replies(planned(*parts), planned(), streams(*PIECES))
    with chat_client(settings, gateway) as client:
        chunks = chunks_of(say(client, home.actor, stream=True, reasoning_mode="deep"))
    assert types_of(chunks) == [
        "reasoning_step", "sub_query", "sources", "reasoning_step", "sub_query", "sources", "reasoning_step",
        "sources", "delta", "delta", "delta", "usage", "done",
    ]  # fmt: skip
    assert [chunk["step"] for chunk in chunks if chunk["type"] == "reasoning_step"] == [1, 2, 3]
    assert [chunk["query"] for chunk in chunks if chunk["type"] == "sub_query"] == list(parts)
    assert chunks[-1]["metadata"]["sub_queries"] == list(parts)
    titles = {source["title"] for chunk in chunks for source in chunk.get("sources") or ()}
    assert {"Billing outage", "Who owns what"} <= titles
    prompt = gateway.requests[-1].json["messages"][-1]["content"]
    assert "root cause were Stripe webhook retries" in prompt
    assert "owned by the Payments team" in prompt
    # The plan, the missing parts, and the answer.
    assert chunks[-2]["usage"]["prompt_tokens"] > 100


def test_deep_reasoning_works_without_a_model(settings: Settings, home: Workspace):
    question = "Why was billing down and who owns the billing service?"
    with chat_client(settings, None) as client:
        chunks = chunks_of(say(client, home.actor, question, stream=True, reasoning_mode="deep"))
    queries = [chunk["query"] for chunk in chunks if chunk["type"] == "sub_query"]
    assert queries == [question, "Why was billing down", "who owns the billing service?"]
    assert "Payments team" in text_of(chunks)
    # Those of all parts come last, before the text that counts them.
    *_, everything = (chunk for chunk in chunks if chunk["type"] == "sources")
    titles = [source["title"] for source in everything["sources"]]
    for paragraph in text_of(chunks).split("\n\n"):
        if paragraph.startswith("According to"):
            number = int(paragraph.rsplit("[", 1)[1].rstrip("]"))
            assert paragraph.startswith(f'According to "{titles[number - 1]}"')


def test_an_abstention_in_a_stream_is_a_refusal(settings: Settings, home: Workspace, gateway: StandIn):
    gateway.replies(streams("`", "NO_", "ANSWER", "`"))
    with chat_client(settings, gateway) as client:
        chunks = chunks_of(say(client, home.actor, stream=True))
    assert text_of(chunks) == INSUFFICIENT
    metadata = chunks[-1]["metadata"]
    assert (metadata["withheld"], metadata["confidence_detail"]["level"]) == (True, "low")


# test_chat_completions_streams.py has all faults of endpoints.
FAULTS = {
    "busy": Reply(status=429), "silent": streams(),
    "an error inside": Reply(chunks=[*encode(piece("Stripe "), {"error": {"message": "sk-model"}})]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_in_a_stream_is_a_chunk_and_stores_nothing(
    settings: Settings, services: Services, home: Workspace, gateway: StandIn, name: str
):
    gateway.replies(FAULTS[name])
    with chat_client(settings, gateway) as client:
        response = say(client, home.actor, stream=True)
    chunks = chunks_of(response)
    assert types_of(chunks)[0] == "sources"
    assert types_of(chunks)[-1] == "error"
    assert [StreamChunk.model_validate_json(json.dumps(chunk)).type for chunk in chunks] == types_of(chunks)
    error = chunks[-1]["error_detail"]
    codes = {"busy": "generation_busy", "silent": "generation_empty"}
    assert error["code"] == codes.get(name, "generation_failed")
    assert chunks[-1]["error"] == error["message"]
    assert "sk-model" not in response.text
    assert services.database.call(home.actor.principal, "rag_list_sessions", {}) == []


def test_a_disconnected_client_ends_the_model_call_and_stores_nothing(
    settings: Settings, services: Services, home: Workspace, gateway: StandIn
):
    gateway.replies(Reply(chunks=[*encode(piece("Stripe ")), Event(), *encode(piece("webhooks"))]))
    model = {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url}
    body = {"message": QUESTION}
    with (
        services_with(settings, **model) as made_core,
        live(chat.app, made_core) as url,
        httpx.Client() as client,
    ):
        with client.stream("POST", f"{url}{PATH}", json=body, headers=home.actor.headers()) as answer:
            lines = answer.iter_lines()
            assert any('"type":"delta"' in line for line in lines)
        assert gateway.left.wait(60)
    # The app is gone by now, and with it whatever it still had to do.
    assert services.database.call(home.actor.principal, "rag_list_sessions", {}) == []
