"""The platform's chat over HTTP: requests, the model's input, memory, and streams with their ends."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi.testclient import TestClient

from functions import chat
from shared.answering.platform_chat import turn
from shared.config import Settings
from shared.generation.extractive.answer import INDIRECT
from shared.generation.refusal_texts import INSUFFICIENT
from shared.services import Services
from shared.text.prefixed_ids import NIL
from tests.clients.upstream_models import StreamChunk
from tests.functions.app_server import live, platform_error, services_with
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
    post,
    reply_of,
    result_of,
    say,
    streams,
    text_of,
)
from tests.functions.search_workspace import OUTAGE, Workspace
from tests.stand_in_server import Reply, StandIn


def request_of(gateway: StandIn) -> dict[str, Any]:
    row: dict[str, Any] = gateway.requests[-1].json
    return row


def test_an_answer_comes_from_the_documents_and_is_stored(
    client: TestClient, services: Services, home: Workspace, gateway: StandIn
):
    collection = home.id.removeprefix("ws_")
    body = result_of(say(client, home.actor, collection_id=f"col_{collection}"))
    assert set(body) == {"query", "response", "sources", "usage", "metadata"}
    assert (body["query"], body["response"]) == (QUESTION, ANSWER)
    first = body["sources"][0]
    assert (first["document_id"], first["title"], first["chunk_index"]) == (
        home.documents["Billing outage"].removeprefix("doc_"), "Billing outage", 0,
    )  # fmt: skip
    assert 1 >= first["score"] >= body["sources"][-1]["score"] >= 0
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (50, 5, 55)
    assert usage["retrieval_tokens"] > 20
    metadata = body["metadata"]
    assert (metadata["user_id"], metadata["collection_id"]) == (home.actor.id, collection)
    assert (metadata["retrieval_mode"], metadata["model"]) == ("hybrid", "google/gemini-3.5-flash-lite")
    assert metadata["latency_ms"] >= metadata["retrieval_latency_ms"]
    assert [metadata[name] for name in ("withheld", "extractive", "is_follow_up", "kept")] == [
        False, False, False, True,
    ]  # fmt: skip
    assert str(UUID(metadata["session_id"])) == metadata["session_id"]
    assert messages_of(services, home.actor, metadata["session_id"]) == [
        ("user", QUESTION),
        ("assistant", ANSWER),
    ]
    request_body = request_of(gateway)
    assert OUTAGE in request_body["messages"][-1]["content"]
    assert QUESTION in request_body["messages"][-1]["content"]


def test_without_a_model_the_answer_is_extracted_and_marked_so(extractive: TestClient, home: Workspace):
    body = result_of(say(extractive, home.actor, model="gpt-4o", preset="creative"))
    assert "Stripe webhook retries that piled up in the queue." in body["response"]
    assert body["metadata"]["model"] == "extractive"
    assert body["metadata"]["extractive"] is True
    assert body["usage"]["retrieval_tokens"] > 0
    # Each number is that of a source, whose paragraph it ends.
    paragraphs = body["response"].removeprefix(f"{INDIRECT['en']}\n\n").split("\n\n")
    numbers = [int(paragraph.rsplit("[", 1)[1].rstrip("]")) for paragraph in paragraphs]
    assert [
        f'"{body["sources"][number - 1]["title"]}"' in text
        for number, text in zip(numbers, paragraphs, strict=True)
    ] == [True] * len(numbers)
    assert len({source["document_id"] for source in body["sources"]}) == len(body["sources"])


@pytest.mark.parametrize("deep", [False, True])
def test_insufficient_context_is_reported_without_an_answer(
    client: TestClient, home: Workspace, gateway: StandIn, deep: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(turn, "MULTI_STEP_TOKENS", 0)
    mode = "deep" if deep else "standard"
    body = result_of(say(client, home.actor, OFF_TOPIC, reasoning_mode=mode))
    assert body["response"] == INSUFFICIENT
    assert body["metadata"]["withheld"] is True
    assert body["metadata"]["extractive"] is False
    assert body["metadata"]["confidence_detail"]["level"] == "low"
    assert gateway.requests == []


@pytest.fixture
def client(settings: Settings, gateway: StandIn) -> Iterator[TestClient]:
    gateway.replies(reply_of(ANSWER))
    with chat_client(settings, gateway) as client:
        yield client


@pytest.fixture
def extractive(settings: Settings) -> Iterator[TestClient]:
    """A deployment without a model."""
    with chat_client(settings, None) as client:
        yield client


SETTINGS_OF_THE_MODEL: list[tuple[dict[str, Any], float, int]] = [
    ({}, 0.5, 2000), ({"preset": "concise"}, 0.3, 500),
    ({"preset": "qna", "generation": {"temperature": 1, "max_tokens": 7}}, 1, 7),
    ({"preset": "qna", "generation": {"temperature": 1, "max_tokens": None}}, 1, 4000),
    ({"temperature": 0, "max_tokens": 8192, "generation": {"temperature": 1, "max_tokens": 7}}, 0, 8192),
]  # fmt: skip


def test_top_level_fields_override_nested_fields_and_those_the_preset(
    subtests: pytest.Subtests, client: TestClient, home: Workspace, gateway: StandIn
):
    for body, temperature, max_tokens in SETTINGS_OF_THE_MODEL:
        with subtests.test(body=body):
            result_of(say(client, home.actor, **body))
            request_body = request_of(gateway)
            assert (request_body["temperature"], request_body["max_tokens"]) == (temperature, max_tokens)


def test_the_request_sets_the_model_and_its_sampling(client: TestClient, home: Workspace, gateway: StandIn):
    sampling = {"top_p": 0.5, "frequency_penalty": -1, "presence_penalty": 2}
    nested = {"model": "inner", **sampling}
    more = {"model": "outer", "preset": "technical", "custom_instruction": "Focus on security."}
    body = result_of(say(client, home.actor, generation=nested, **more))
    request_body = request_of(gateway)
    result_of(say(client, home.actor, generation=nested))
    assert (request_body["model"], body["metadata"]["model"]) == ("outer", "outer")
    assert {name: request_body[name] for name in sampling} == sampling
    system = request_body["messages"][0]["content"]
    assert "exact terms" in system
    assert system.endswith("Focus on security.")
    assert request_of(gateway)["model"] == "inner"


def test_the_client_s_instructions_and_history_reach_the_model_and_are_stored(
    client: TestClient, services: Services, home: Workspace, gateway: StandIn
):
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Answer in rhymes."},
        {"role": "user", "content": "Which service was down?"},
        {"role": "assistant", "content": "The billing service."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    answer = result_of(post(client, home.actor, {"messages": messages, "stream": False}))
    prompt = request_of(gateway)["messages"]
    assert [message["role"] for message in prompt] == ["system", "system", "user", "assistant", "user"]
    assert [message["content"] for message in prompt[1:4]] == [text["content"] for text in messages[:3]]
    assert messages_of(services, home.actor, answer["metadata"]["session_id"]) == [
        ("user", "Which service was down?"), ("assistant", "The billing service."),
        ("user", QUESTION), ("assistant", ANSWER),
    ]  # fmt: skip


def test_a_follow_up_question_is_completed_before_retrieval(
    settings: Settings, services: Services, home: Workspace
):
    whole = "Who was the on-call engineer of the billing outage?"
    with chat_client(settings, None) as client:
        before = result_of(say(client, home.actor))
    session = before["metadata"]["session_id"]
    with StandIn() as model, chat_client(settings, model) as client:
        model.replies(reply_of(whole), reply_of("Priya Nair."))
        body = result_of(say(client, home.actor, "And who was it on call?", session_id=session))
    rewriting, writing = (request.json["messages"] for request in model.requests)
    assert f"USER: {QUESTION}" in rewriting[-1]["content"]
    assert "FOLLOW-UP: And who was it on call?" in rewriting[-1]["content"]
    assert (body["response"], body["metadata"]["search_query"]) == ("Priya Nair.", whole)
    assert body["metadata"]["is_follow_up"] is True
    assert [message["content"] for message in writing[1:3]] == [QUESTION, before["response"]]
    assert body["usage"]["prompt_tokens"] == 100
    assert len(messages_of(services, home.actor, session)) == 4


# A model that returns nothing is asked once more.
REWRITING_FAULTS = [[Reply(status=500)], [Reply(json={"choices": []})] * 2, [reply_of("a\nb")]]


def test_without_a_model_a_follow_up_is_searched_with_the_previous_question(
    subtests: pytest.Subtests, settings: Settings, home: Workspace
):
    with chat_client(settings, None) as client:
        session = result_of(say(client, home.actor))["metadata"]["session_id"]
        plain = result_of(say(client, home.actor, "And when?", session_id=session))["metadata"]
    assert plain["search_query"] == f"{QUESTION}\nAnd when?"
    for faults in REWRITING_FAULTS:
        with subtests.test(faults=faults), StandIn() as failing, chat_client(settings, failing) as client:
            failing.replies(*faults, reply_of("At 14:20."))
            body = result_of(say(client, home.actor, "Then when?", session_id=session))
            assert body["metadata"]["search_query"] == f"{QUESTION}\nThen when?"
            assert body["response"] == "At 14:20."


def test_is_follow_up_marks_a_question_that_looks_independent(extractive: TestClient, home: Workspace):
    question = "Which engineer paused the queue?"
    session = result_of(say(extractive, home.actor))["metadata"]["session_id"]
    first = result_of(say(extractive, home.actor, question, session_id=session))
    second = result_of(say(extractive, home.actor, question, session_id=session, is_follow_up=True))
    alone, leaning = first["metadata"], second["metadata"]
    assert (alone["search_query"], alone["is_follow_up"]) == (question, False)
    assert leaning["is_follow_up"] is True
    assert leaning["search_query"].endswith(f"\n{question}")
    # The same passages, though the search had more words.
    assert second["usage"]["retrieval_tokens"] == first["usage"]["retrieval_tokens"]


def test_graph_context_reaches_only_the_model(client: TestClient, own_home: Workspace, gateway: StandIn):
    own_home.put("Ledger", "The Ledger service is owned by Team Heron.")
    question = "Who owns the Ledger service?"
    body = result_of(say(client, own_home.actor, question))
    prompt = request_of(gateway)["messages"][-1]["content"]
    without = result_of(say(client, own_home.actor, question, retrieval={"enable_graph": False}))
    assert "How what the documents name is connected" in prompt
    assert "is owned by" in prompt
    assert "How what the documents name is connected" not in request_of(gateway)["messages"][-1]["content"]
    assert "connected" not in json.dumps([body, without])


def test_every_mode_respects_the_collection_and_the_filter(
    subtests: pytest.Subtests, extractive: TestClient, own_home: Workspace
):
    own_home.put("Other outage", OUTAGE, collection="elsewhere")
    own_home.put("Other type", OUTAGE, metadata={"category": "x"})
    own_home.put("Tagged", OUTAGE, metadata={"category": "x", "document_type": "legal"})
    collection = own_home.id.replace("ws_", "col_")
    for mode in ["semantic", "keyword", "hybrid", "hierarchical", "graph"]:
        with subtests.test(mode=mode):
            filters = {"metadata_filter": {"category": "x"}, "document_type": "legal"}
            retrieval = {"mode": mode, "top_k": 3, **filters, "rerank": False}
            answer = say(extractive, own_home.actor, collection_id=collection, retrieval=retrieval)
            body = result_of(answer)
            assert [source["title"] for source in body["sources"]] == ["Tagged"]
            assert body["metadata"]["retrieval_mode"] == mode
            assert body["metadata"]["withheld"] is False


def plan_of(*queries: str) -> list[Reply]:
    """A model's replies that divide a question, and find the parts complete."""
    plan = json.dumps({"steps": [{"description": query, "query": query} for query in queries]})
    return [reply_of(plan), reply_of('{"steps": []}')]


def test_deep_reasoning_answers_when_half_of_the_sub_questions_have_results(
    settings: Settings, home: Workspace
):
    """An easy match of one of three is not an answer to the question: the model is not asked to make one."""
    sleep, food = "How do penguins sleep?", "What do penguins eat?"
    for queries, question, answer, withheld in (
        ((QUESTION, sleep, food), OFF_TOPIC, INSUFFICIENT, True),
        ((QUESTION, sleep), f"{QUESTION} {sleep}", ANSWER, False),
    ):
        with StandIn() as model, chat_client(settings, model) as client:
            model.replies(*plan_of(*queries), reply_of(ANSWER))
            body = result_of(say(client, home.actor, question, reasoning_mode="deep"))
            assert len(model.requests) == 2 + (not withheld)
        assert body["metadata"]["sub_queries"] == list(queries)
        assert (body["response"], body["metadata"]["withheld"]) == (answer, withheld)


def test_a_session_stores_messages_up_to_its_limit(
    extractive: TestClient, services: Services, home: Workspace
):
    earlier = [{"role": ("user", "assistant")[number % 2], "content": "a"} for number in range(499)]
    messages = [*earlier, {"role": "user", "content": QUESTION}]
    answer = result_of(post(extractive, home.actor, {"messages": messages, "stream": False}))
    assert answer["metadata"]["kept"] is True
    assert len(messages_of(services, home.actor, answer["metadata"]["session_id"])) == 501


def test_the_contract_s_other_errors(settings: Settings, services: Services, own_home: Workspace):
    home = own_home
    other = services.database.call(home.actor.principal, "rag_create_collection", {"name": "other"})[0]["id"]
    with chat_client(settings, None) as client:
        session = result_of(say(client, home.actor, collection_id=home.id.removeprefix("ws_")))["metadata"]
        answer = say(client, home.actor, session_id=session["session_id"], collection_id=other)
        assert platform_error(answer, 409)["code"] == "session_of_another_collection"
    with chat_client(settings, None, rag_rate_limit_api="1/hour") as client:
        # (The hour is counted for itself.)
        result_of(say(client, home.actor))
        limited = say(client, home.actor)
    assert platform_error(limited, 429)["code"] == "rate_limit_exceeded"
    assert int(limited.headers["Retry-After"]) > 0


@pytest.mark.parametrize("gone", ["session", "collection"])
def test_an_answer_survives_the_deletion_of_its_session_or_collection(
    settings: Settings, services: Services, own_home: Workspace, gone: str
):
    """Without a collection it has the nil UUID, with which the next turn begins a session."""
    home, release = own_home, Event()
    with chat_client(settings, None) as client:
        session = result_of(say(client, home.actor))["metadata"]["session_id"]
    collection = home.id.removeprefix("ws_")
    subject, deletion = {
        "session": ({"session_id": session}, {"session_id": session}),
        "collection": ({"collection_id": collection}, {"collection_id": collection, "cascade": True}),
    }[gone]
    with StandIn() as model, chat_client(settings, model) as client, ThreadPoolExecutor(1) as pool:
        model.replies(Reply(json=reply_of(ANSWER).json, after=release))
        answering = pool.submit(say, client, home.actor, **subject)
        model.wait_for_requests(1)
        services.database.call(home.actor.principal, f"rag_delete_{gone}", deletion)
        release.set()
        body = result_of(answering.result())
        begun = result_of(say(client, home.actor, session_id=NIL))["metadata"]
    assert (body["response"], body["metadata"]["kept"]) == (ANSWER, False)
    assert body["metadata"]["session_id"] == (session if gone == "session" else NIL)
    assert begun["kept"] is True
    assert begun["session_id"] != NIL


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
        # Which streams by default.
        chunks = chunks_of(post(client, home.actor, {"message": QUESTION}))
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
        if paragraph.startswith('"'):
            number = int(paragraph.rsplit("[", 1)[1].rstrip("]"))
            assert paragraph.startswith(f'"{titles[number - 1]}"')


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
