"""The models that chat completions take: the gateway's, and those that answer over documents."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from shared.answering.chat_completions.available_models import MAX_MODELS
from shared.config import Settings
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.chat_completions_client import KETTLE, chat_client, index
from tests.isolation.test_api_keys import make
from tests.stand_in_server import Reply, StandIn

PATH = "/v1/models"
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
    body = json_of(client.get(PATH, headers=actor.headers(token)))
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
