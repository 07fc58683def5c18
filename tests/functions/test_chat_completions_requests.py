"""What chat completions take: requests of every form, questions of any kind and length."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from functions import chat_completions
from shared.config import Settings
from shared.services import Services
from shared.text.token_count import count_tokens
from tests.actors import vector
from tests.conftest import People
from tests.functions.app_server import app_with, json_of
from tests.functions.chat_completions_client import (
    KETTLE,
    MODEL_ANSWER,
    PATH,
    PICTURE,
    QUESTION,
    SECRET,
    ask,
    chat_client,
    index,
    user,
)
from tests.stand_in_server import Reply, StandIn

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


def test_tool_messages_of_any_form_are_forwarded_and_counted(people: People, settings: Settings):
    messages = [
        user([PICTURE, {"type": "text", "text": "What?"}]),
        {"role": "tool", "content": [7, None, {}]},
    ]
    with StandIn() as silent, chat_client(settings, silent) as client:
        silent.replies(Reply(json={**MODEL_ANSWER, "usage": None}))
        response = ask(client, people.ann, messages)
    assert response.status_code == 200, response.text
    assert silent.requests[0].json["messages"] == messages
