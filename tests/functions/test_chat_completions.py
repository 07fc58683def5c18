"""Chat completions over HTTP: requests of every form, with and without an index, with and without a model."""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from functions import chat_completions
from shared.answering.chat_completions.available_models import MAX_MODELS
from shared.api.contracts.shared_fields import LOCATION
from shared.config import Settings
from shared.generation.refusal_texts import INSUFFICIENT
from shared.services import Services
from shared.text.token_count import count_tokens
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.functions.app_server import app_with, client_of, json_of
from tests.functions.chat_completions_client import (
    KETTLE,
    MODEL_ANSWER,
    PATH,
    PICTURE,
    QUESTION,
    SECRET,
    ask,
    chat_client,
    events_of,
    index,
    piece,
    streamed,
    streams,
    user,
    words,
)
from tests.isolation.test_api_keys import make
from tests.stand_in_server import Reply, StandIn

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def test_without_an_index_the_request_reaches_the_model_unchanged(
    client: TestClient, people: People, gateway: StandIn
):
    query = {
        "messages": [{"role": "system", "content": "Be brief."}, user("Hello")],
        "model": "vendor/model-1",
        "temperature": 0.7,
        "max_tokens": 2048,
        "logit_bias": {"50256": -100},
        "metadata": {"of": ["the", "vendor's"]},
        "top_k": 7,
    }
    response = client.post(PATH, json=query, headers=people.ann.headers())
    assert response.status_code == 200, response.text
    assert response.json() == {**MODEL_ANSWER, "source_nodes": None}
    (request,) = gateway.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.json == {name: value for name, value in query.items() if name != "top_k"}
    assert "x-ratelimit-remaining" in response.headers


@pytest.fixture
def client(settings: Settings, gateway: StandIn) -> Iterator[TestClient]:
    gateway.replies(Reply(json=MODEL_ANSWER))
    with chat_client(settings, gateway) as client:
        yield client


BEYOND_DOCUMENTS: dict[str, Any] = {
    "tools": {"tools": [TOOL]},
    "functions": {"functions": [TOOL["function"]]},
    "a tool's message": {"messages": [user(), {"role": "tool", "tool_call_id": "1", "content": "20"}]},
    "another role": {"messages": [{"role": "critic", "content": "Why?"}, user()]},
    "a picture": {"messages": [user([{"type": "text", "text": QUESTION}, PICTURE])]},
    "sound": {"messages": [user([{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}])]},
}


def test_a_request_without_a_retrieval_question_bypasses_the_index(
    subtests: pytest.Subtests, client: TestClient, people: People, services: Services, gateway: StandIn
):
    index(services, people.ann, "kettles", KETTLE)
    model = "google/gemini-3.5-flash-lite"
    by_index = [{"index_name": "kettles"}, *({"model": f"rag{name}"} for name in ("", "/kettles", "/no"))]
    for (name, body), named in zip(BEYOND_DOCUMENTS.items(), cycle(by_index)):
        with subtests.test(name=name, named=named):
            answer = ask(client, people.ann, **{**named, **body})
            assert answer.json() == {**MODEL_ANSWER, "source_nodes": None}
            assert gateway.requests[-1].json == {"messages": [user()], "model": model, **body}


def test_with_an_index_the_model_gets_its_documents_and_the_answer_cites_them(
    client: TestClient, people: People, services: Services, gateway: StandIn
):
    kettle, _ = index(services, people.ann, "kettles", KETTLE, "The toaster browns bread.")
    index(services, people.ann, "others", "The kettle switches off at 999 degrees.")
    answer = ask(client, people.ann, index_name="kettles", top_k=1, temperature=0.3, user="u-1").json()
    (node,) = answer.pop("source_nodes")
    assert answer.pop("confidence_detail")["level"] == "high"
    assert answer == MODEL_ANSWER
    assert (node["doc_id"], node["text"], node["metadata"]) == (kettle, KETTLE, {"n": 1})
    assert 0 < node["score"] <= 1
    assert set(node) == {"doc_id", "node_id", "text", "score", "metadata", *LOCATION}
    request = gateway.requests[-1].json
    assert (request["model"], request["temperature"], request["user"]) == (
        "google/gemini-3.5-flash-lite", 0.3, "u-1",
    )  # fmt: skip
    assert not {"index_name", "top_k"} & set(request)
    assert KETTLE in request["messages"][-1]["content"]
    assert "999 degrees" not in json.dumps(request)


def test_the_passages_support_the_model_s_sentences_or_confidence_falls(
    people: People, services: Services, settings: Settings
):
    index(services, people.ann, "kettles", KETTLE)
    invented = "The kettle switches off at 100 degrees. The kettle was made in Norway by Jotun."
    *events, done = streamed(settings, people.ann, piece(invented), piece())
    assert (words(events), done) == (invented, "[DONE]")
    detail = events[-1]["confidence_detail"]
    assert detail["level"] == "medium"
    assert detail["unsupported"] == ["The kettle was made in Norway by Jotun."]


def test_the_reply_of_a_model_that_finds_no_answer_is_replaced_by_the_refusal(
    people: People, services: Services, settings: Settings
):
    index(services, people.ann, "kettles", KETTLE)
    ended = piece("NO_"), piece("ANSWER"), piece("."), piece()
    for parts in (ended, [piece("NO_ANSWER")]):
        *events, done = streamed(settings, people.ann, *parts)
        assert "ANSWER" not in json.dumps(events)
        assert words(events) == INSUFFICIENT
        assert events[-1]["confidence_detail"]["level"] == "low"
        assert done == "[DONE]"


def test_several_replies_and_json_are_neither_checked_nor_replaced(
    subtests: pytest.Subtests, people: People, services: Services, settings: Settings
):
    index(services, people.ann, "kettles", KETTLE)
    message = {"role": "assistant", "content": "NO_ANSWER"}
    choices = [{"index": place, "finish_reason": "stop", "message": message} for place in range(2)]
    several = {**MODEL_ANSWER, "choices": choices}
    for options in ({"n": 2}, {"response_format": {"type": "json_object"}}):
        with subtests.test(options=options), StandIn() as model, chat_client(settings, model) as client:
            model.replies(Reply(json=several))
            answer = ask(client, people.ann, index_name="kettles", **options).json()
            assert answer["choices"] == choices
            assert answer["confidence_detail"]["level"] == "high"
            assert "NO_ANSWER" not in model.requests[0].body.decode()


def test_a_reply_that_begins_like_an_abstention_is_streamed_whole(
    people: People, services: Services, settings: Settings
):
    index(services, people.ann, "kettles", KETTLE)
    events = streamed(settings, people.ann, piece("NO"), piece("RMALLY at 100 degrees."), piece())
    assert words(events) == "NORMALLY at 100 degrees."


OF_BOLT = "The kettle of Bolt switches off at 999 degrees."
OTHER = "The toaster switches off at 200 degrees."


def test_the_model_rag_searches_everything_or_one_collection(
    people: People, services: Services, settings: Settings
):
    index(services, people.ann, "kettles", KETTLE)
    index(services, people.ann, "team/toasters", OTHER)
    index(services, people.bob, "kettles of bolt", OF_BOLT)
    requests: list[tuple[dict[str, Any], list[str]]] = [
        ({"model": "rag"}, [KETTLE, OTHER]),
        ({"model": "rag", "index_name": "kettles"}, [KETTLE]),
        ({"model": "rag/kettles"}, [KETTLE]),
        ({"model": "rag/kettles", "index_name": "kettles"}, [KETTLE]),
        ({"model": "rag/team/toasters"}, [OTHER]),
    ]
    with StandIn() as model, chat_client(settings, model) as client:
        model.replies(streams())
        for body, texts in requests:
            assert sorted(nodes(ask(client, people.ann, stream=True, **body))) == texts
            request = model.requests[-1].json
            assert request["model"] == "google/gemini-3.5-flash-lite"
            assert all(text in request["messages"][-1]["content"] for text in texts)
        assert len(model.requests) == len(requests)
    with client_of(chat_completions.app, services) as local:
        for body, texts in requests:
            assert sorted(nodes(ask(local, people.ann, **body))) == texts
        # kim belongs to both orgs.
        of_both = nodes(ask(local, people.kim, model="rag"))
        assert sorted(of_both) == sorted([KETTLE, OTHER, OF_BOLT])


def nodes(response: Any) -> list[str]:
    """The texts of an answer's nodes, or of a stream's."""
    assert response.status_code == 200, response.text
    if not response.headers["content-type"].startswith("text/event-stream"):
        return [node["text"] for node in response.json()["source_nodes"]]
    *_, last, end = events_of(response.text)
    assert end == "[DONE]"
    return [node["text"] for node in last["source_nodes"]]


def test_a_model_of_a_missing_collection_is_404_with_the_contract_s_message(
    subtests: pytest.Subtests, people: People, services: Services, settings: Settings, gateway: StandIn
):
    index(services, people.ann, "kettles", KETTLE)
    refused: list[tuple[dict[str, Any], int, str]] = [
        *(
            ({"model": f"rag/{name}"}, 404, f"No such index: '{name}' exists.")
            for name in ("nope", "", "...", "Kettles", "a\0b")
        ),
        (
            {"model": "rag/kettles", "index_name": "nope"},
            400,
            "'model' and 'index_name' name two indexes. Send one.",
        ),
        ({"model": "rag", "index_name": "nope"}, 404, "No such index: 'nope' exists."),
        ({"index_name": "nope"}, 404, "No such index: 'nope' exists."),
        ({"model": "rag", "messages": [{"role": "system", "content": "x"}]}, 400, "a user prompt"),
    ]
    # With a model and without one.
    for deployment, stream in (
        (chat_client(settings, gateway), True),
        (client_of(chat_completions.app, services), False),
    ):
        with deployment as client:
            for body, status, words in refused:
                with subtests.test(body=body, stream=stream):
                    content = json.dumps({"messages": [user()], "stream": stream, **body})
                    headers = {**people.ann.headers(), "Content-Type": "application/json"}
                    response = json_of(client.post(PATH, content=content, headers=headers), status)
                    assert words in response["detail"]
                    assert response["error"]["message"] == response["detail"]
            # Another org's collection is as one that is not there. Of two orgs a name does not say which.
            refusal = ask(client, people.bob, model="rag/kettles").json()
            assert refusal["detail"] == "No such index: 'kettles' exists."
            assert ask(client, people.kim, model="rag/kettles").json()["error"]["code"] == "org_required"
    assert gateway.requests == []


def test_a_model_name_that_only_starts_with_rag_goes_to_the_gateway(people: People, local: TestClient):
    for model in ("ragged", "RAG", "rag-1", " rag"):
        assert ask(local, people.ann, model=model).json()["error"]["code"] == "no_model"


def test_the_model_is_called_although_the_index_has_no_match(
    client: TestClient, people: People, services: Services, gateway: StandIn
):
    services.database.call(people.ann.principal, "rag_create_collection", {"name": "empty"})
    answer = ask(client, people.ann, [user("Thanks!")], index_name="empty").json()
    assert answer["source_nodes"] == []
    assert "(No document has anything on this.)" in gateway.requests[-1].json["messages"][-1]["content"]


def test_without_a_model_an_index_answers_by_extraction(
    people: People, services: Services, local: TestClient
):
    (kettle,) = index(services, people.ann, "kettles", KETTLE)
    answer = ask(local, people.ann, index_name="kettles", model="whatever", n=1).json()
    assert answer["id"].startswith("chatcmpl-")
    assert (answer["object"], answer["model"]) == ("chat.completion", "extractive")
    (choice,) = answer["choices"]
    assert (choice["message"]["role"], choice["finish_reason"]) == ("assistant", "stop")
    assert "The kettle switches off at 100 degrees." in choice["message"]["content"]
    assert [node["doc_id"] for node in answer["source_nodes"]] == [kettle]
    assert answer["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_without_a_model_and_an_index_the_request_is_refused(people: People, local: TestClient, stream: bool):
    response = ask(local, people.ann, stream=stream)
    assert response.status_code == 503
    assert response.json()["detail"].startswith("No model is configured here.")
    assert response.json()["error"]["code"] == "no_model"


FAULTS = {
    "elsewhere": Reply(None, 302, {"Location": "http://127.0.0.1:9/secret"}),
    "html": Reply(body=b"<html>secret</html>"),
    "NaN": Reply(body=b'{"choices": [{"secret": NaN}]}'),
    "giant": Reply(body=b'{"choices": ["' + b"secret" * 2_900_000 + b'"]}'),
}


def test_a_model_error_has_a_proper_status_and_leaks_nothing(
    subtests: pytest.Subtests, shared_people: People, settings: Settings
):
    """test_chat_endpoints_in_all_contracts.py has the refusals of endpoints."""
    for name, reply in FAULTS.items():
        for stream in [False, True] if name == "elsewhere" else [False]:
            with subtests.test(name=name, stream=stream), StandIn() as server:
                server.replies(reply)
                with chat_client(settings, server) as client:
                    response = ask(client, shared_people.ann, stream=stream)
                assert len(server.requests) == 1
                assert (response.status_code, response.json()["error"]["code"]) == (500, "generation_failed")
                assert set(response.json()) == {"detail", "error"}
                assert "secret" not in response.text


def test_a_lone_surrogate_from_a_model_is_replaced(
    settings: Settings, shared_people: People, gateway: StandIn
):
    gateway.replies(Reply(body=b'{"choices": [{"message": {"role": "assistant", "content": "a\\ud800"}}]}'))
    with chat_client(settings, gateway) as client:
        answer = ask(client, shared_people.ann)
    assert answer.json()["choices"][0]["message"]["content"] == "a?"


def test_anonymous_chat_needs_a_configured_user(
    people: People, services: Services, settings: Settings, local: TestClient
):
    index(services, people.ann, "kettles", KETTLE)
    body = {"messages": [user()], "index_name": "kettles"}
    assert local.post(PATH, json=body).status_code == 401
    anonymous = {
        "rag_index_anonymous_org": UUID(people.acme.id),
        "rag_index_anonymous_user": UUID(people.alf.id),
    }
    with app_with(chat_completions.app, settings, **anonymous) as client:
        assert KETTLE in client.post(PATH, json=body).text
        bearer = {"Authorization": "Bearer nonsense"}
        assert client.post(PATH, json=body, headers=bearer).status_code == 401


def test_chats_are_counted_by_outcome_across_instances(
    people: People, world: World, services: Services, local: TestClient
):
    def counted() -> dict[str, float]:
        rows = world.sql(
            "select label, sum from rag.api_metrics where name = 'rag_chat_requests_total' and user_id = %s",
            people.ann.id,
        )  # fmt: skip
        return {label: float(value) for label, value in rows}

    index(services, people.ann, "kettles", KETTLE)
    ask(local, people.ann, index_name="kettles")
    ask(local, people.ann, index_name="nowhere")
    ask(local, people.ann, index_name="kettles", stream=True)
    assert counted() == {"success": 2, "failure": 1}


ROLELESS = "Invalid request format: messages must contain 'role'."
NO_USER = "There must be a user prompt since the latest assistant message."


BAD_REQUESTS: list[tuple[Any, str]] = [
    ({"messages": [{"content": "Hello"}]}, ROLELESS),
    ({"messages": [{"role": ["user"], "content": "Hello"}]}, ROLELESS),
    ({"messages": [{"role": "user"}]}, "messages must contain 'content' for role 'user'."),
    ({"messages": [{"role": "user", "content": [7]}]}, "'content' must be a text or a list of parts."),
    ({"stop": [7]}, "Invalid request format: stop"),
]


def test_a_malformed_request_is_400(subtests: pytest.Subtests, people: People, local: TestClient):
    for body, text in BAD_REQUESTS:
        with subtests.test(body=body):
            response = json_of(ask(local, people.ann, **{"index_name": "kettles", **body}), 400)
            assert text in response["detail"]
            assert response["error"]["message"] == response["detail"]


def test_a_request_without_messages_or_with_another_content_type_is_refused(
    people: People, local: TestClient
):
    headers = {**people.ann.headers(), "Content-Type": "application/json"}
    deep = b'{"messages": [{"role": "user", "content": "x"}], "a": ' + b"[" * 99_999 + b"]" * 99_999 + b"}"
    nan = b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}'
    hidden = b'{"messages": [{"role": "user", "content": "x"}], "logit_bias": {"1": 1e400}}'
    for raw in (b"{}", deep, nan, hidden):
        response = local.post(PATH, content=raw, headers=headers)
        assert response.status_code == 400, (raw[:60], response.text)
        assert response.json()["detail"]


NO_QUESTIONS: list[Any] = [
    [{"role": "system", "content": "Be brief."}],
    [user(), {"role": "assistant", "content": "At 100 degrees."}],
    [user(" \n")],
    [user("")],
    [user([])],
]


def test_a_question_is_required_to_query_an_index(
    subtests: pytest.Subtests, people: People, services: Services, local: TestClient
):
    index(services, people.ann, "kettles", KETTLE)
    for messages in NO_QUESTIONS:
        with subtests.test(messages=messages):
            response = ask(local, people.ann, messages, index_name="kettles")
            assert (response.status_code, response.json()["detail"]) == (400, NO_USER)


def test_a_body_of_a_megabyte_is_accepted(people: People, settings: Settings, gateway: StandIn):
    gateway.replies(Reply(json=MODEL_ANSWER))
    with chat_client(settings, gateway) as client:
        assert ask(client, people.ann, [user("x" * 1_000_000)]).status_code == 200


def test_a_long_question_with_unusual_characters_is_accepted(
    people: People, services: Services, local: TestClient
):
    index(services, people.ann, "kettles", KETTLE)
    for text in ("word " * 4000 + QUESTION, f"\0{QUESTION}", [{"type": "text", "text": QUESTION}]):
        response = ask(local, people.ann, [user(text)], index_name="kettles")
        assert response.status_code == 200, response.text
    raw = b'{"index_name": "kettles", "messages": [{"role": "user", "content": "\\ud800 kettle degrees"}]}'
    headers = {**people.ann.headers(), "Content-Type": "application/json"}
    assert local.post(PATH, content=raw, headers=headers).status_code == 200


def test_a_question_is_truncated_to_the_embedder_s_window(
    people: People, services: Services, settings: Settings
):
    """Ten thousand characters of a script that costs more than a token each."""
    (row,) = services.database.call(people.ann.principal, "rag_create_collection", {"name": "kettles"})
    assert row
    data = [{"object": "embedding", "index": 0, "embedding": vector(1)}]
    with StandIn() as service:
        service.replies(Reply(json={"object": "list", "model": "m", "data": data}))
        changes = {"openai_api_key": SECRET, "rag_embedding_url": service.url}
        with app_with(chat_completions.app, settings, **changes) as client:
            response = ask(client, people.ann, [user("\u1200" * 20_000 + " end?")], index_name="kettles")
        (sent,) = next(each for each in service.requests if each.path == "/embeddings").json["input"]
    assert response.status_code == 200, response.text
    assert sent.endswith(" end?")
    assert 2000 < len(sent) < 10_000
    assert count_tokens(sent) <= 8191


CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    user("What does the kettle weigh?"),
    {"role": "assistant", "content": "It weighs 900 grams. [1]"},
    user(),
]


def test_open_webui_lists_models_and_streams_answers(local: TestClient, people: People, services: Services):
    index(services, people.ann, "kettles", KETTLE)
    models = local.get("/v1/models", headers=people.ann.headers()).json()["data"]
    assert "rag/kettles" in [model["id"] for model in models]
    options = {"stream_options": {"include_usage": True}, "temperature": 0.8, "stop": ["\n\n\n"], "seed": 7}
    # LibreChat sends these.
    options |= {"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "n": 1, "user": "6741f0"}
    body: dict[str, Any] = {"model": "rag/kettles", "stream": True, **options}
    # The composer sends parts where a picture was attached and removed again.
    for messages in (CONVERSATION, [user([{"type": "text", "text": QUESTION}])]):
        *events, last = events_of(ask(local, people.ann, messages, **body).text)
        assert last == "[DONE]"
        assert "100 degrees" in words(events)
        # Both front ends take the end of the answer and the usage from these.
        assert [event["choices"][0]["finish_reason"] for event in events if event["choices"]][-1] == "stop"
        assert events[-1]["usage"]["total_tokens"] > 0


MODELS = "/v1/models"
DEFAULT = "google/gemini-3.5-flash-lite"
LISTED = [
    {"id": "vendor/model-1", "object": "model", "created": 1_700_000_000, "owned_by": "vendor", "price": 1},
    {"id": DEFAULT, "object": "model", "created": 1_600_000_000, "owned_by": "google"},
    {"id": "bare"},
    # These have no name that a request may have, or one of ours.
    {"id": "rag"}, {"id": "rag/kettles"}, {"id": ""}, {"id": None}, {"id": 7}, {"id": "x" * 260},
    {"id": "a\nb"}, {"id": "\ud800"}, {}, "vendor/model-2", None, [],
]  # fmt: skip


def listed(client: TestClient, actor: Actor, token: str | None = None) -> list[dict[str, Any]]:
    body = json_of(client.get(MODELS, headers=actor.headers(token)))
    assert set(body) == {"object", "data"}
    assert body["object"] == "list"
    models: list[dict[str, Any]] = body["data"]
    assert all(set(model) == {"id", "object", "created", "owned_by"} for model in models)
    assert {model["object"] for model in models} == {"model"}
    return models


def ids(client: TestClient, actor: Actor, token: str | None = None) -> list[str]:
    return [model["id"] for model in listed(client, actor, token)]


def test_the_gateway_s_models_come_before_the_collections(
    people: People, services: Services, settings: Settings, gateway: StandIn
):
    index(services, people.ann, "kettles", KETTLE)
    index(services, people.ann, "team/a b", KETTLE)
    index(services, people.bob, "of bolt", KETTLE)
    index(services, people.alf, f"notes:u:{people.alf.id}", KETTLE)
    gateway.replies(Reply(json={"object": "list", "data": LISTED}))
    with chat_client(settings, gateway) as client:
        first, second, third, *ours = listed(client, people.ann)
        assert first == {"id": DEFAULT, "object": "model", "created": 1_600_000_000, "owned_by": "google"}
        assert (second["id"], second["owned_by"]) == ("vendor/model-1", "vendor")
        assert second["created"] == 1_700_000_000
        assert (third["id"], third["created"], third["owned_by"]) == ("bare", 0, "gateway")
        assert [model["id"] for model in ours] == ["rag", "rag/kettles", "rag/team/a b"]
        # The gateway's list is reused, for another caller too.
        assert ids(client, people.bob) == [DEFAULT, "vendor/model-1", "bare", "rag", "rag/of bolt"]
    (request,) = gateway.requests
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert request.headers["authorization"] == "Bearer sk-secret-7f3x"


NO_LISTS: dict[str, Reply] = {
    "none": Reply({"error": "secret"}, 404),
    "elsewhere": Reply(None, 302, {"Location": "http://127.0.0.1:9/secret"}),
    "html": Reply(body=b"<html>secret</html>"),
    "too long": Reply(json={"data": ["secret" * 3_000_000]}),
}


def test_a_gateway_without_a_model_list_shows_its_default_model(
    subtests: pytest.Subtests, people: People, settings: Settings
):
    for name, reply in NO_LISTS.items():
        with subtests.test(name), StandIn() as server, chat_client(settings, server) as client:
            server.replies(reply)
            assert ids(client, people.ann) == [DEFAULT, "rag"]


def test_without_a_gateway_only_collections_are_listed(people: People, services: Services, local: TestClient):
    index(services, people.ann, "kettles", KETTLE)
    assert ids(local, people.alf) == ["rag", "rag/kettles"]
    # A name does not say which of several orgs is meant.
    assert ids(local, people.kim) == ["rag"]


def test_a_key_lists_only_its_visible_collections(people: People, services: Services, local: TestClient):
    index(services, people.ann, "kettles", KETTLE)
    index(services, people.ann, "toasters", KETTLE)
    for scopes in (["chat:read"], ["retrievals:read"]):
        key = make(people.ann, scopes=scopes, collection="toasters")["key"]
        assert ids(local, people.ann, key) == ["rag", "rag/toasters"]


def test_the_list_is_bounded(people: People, world: World, settings: Settings, gateway: StandIn):
    world.sql(
        "insert into rag.collections (org_id, name) select %s, 'c' || n from generate_series(1, %s) as n",
        people.acme.id, MAX_MODELS + 5,
    )  # fmt: skip
    gateway.replies(Reply(json={"data": [{"id": f"m{number}"} for number in range(MAX_MODELS + 5)]}))
    with chat_client(settings, gateway) as client:
        # And the gateway's default model, and rag.
        assert len(ids(client, people.ann)) == 2 * MAX_MODELS + 2
