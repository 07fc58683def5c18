"""collections over HTTP, on the real stack: made, listed, changed, deleted, as the platform contract says."""

from typing import Any

import pytest

from functions import collections
from shared.config import Settings
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.functions.app_server import app_with, json_of
from tests.functions.app_server import platform_error as error
from tests.stand_in_server import Reply, StandIn

PATH = "/api/v1/collections"
FIELDS = {
    "id", "org_id", "user_id", "owner_id", "name", "description", "metadata", "config", "document_count",
    "created_at", "updated_at",
}  # fmt: skip
Row = dict[str, Any]


def create(actor: Actor, name: str = "docs", **more: Any) -> Row:
    return json_of(actor.request("POST", PATH, {"name": name, **more}), 201)


def listed(actor: Actor, query: str = "") -> Row:
    return json_of(actor.request("GET", f"{PATH}{query}"))


def names(actor: Actor, query: str = "") -> list[str]:
    return [row["name"] for row in listed(actor, query)["data"]]


def test_a_collection_is_created_and_read_back(people: People):
    request: Row = {
        "name": "company-docs",
        "description": "Internal company documentation",
        "metadata": {"department": "engineering", "visibility": "private"},
        "config": {"chunk_size": 256, "chunk_overlap": 20, "enable_hybrid_search": False},
    }
    made = create(people.ann, **request)
    assert set(made) == FIELDS
    assert {name: made[name] for name in ("name", "description", "metadata")} == {
        name: request[name] for name in ("name", "description", "metadata")
    }
    assert made["config"] == {
        "chunk_size": 256, "chunk_overlap": 20, "embedding_model": "all-MiniLM-L6-v2",
        "enable_hybrid_search": False, "enable_knowledge_graph": True,
    }  # fmt: skip
    assert made["document_count"] == 0
    assert (made["user_id"], made["owner_id"]) == (people.ann.id, None)
    assert people.alf.request("GET", f"{PATH}/{made['id']}").json() == made
    assert people.alf.request("GET", f"/v1/collections/col_{made['id']}").json() == made


CONFIGS: list[tuple[Row, str | None, int, int]] = [
    ({}, None, 128, 12),
    ({"chunk_size": 8000, "chunk_overlap": 4000}, None, 256, 128),
    ({}, "sk-none", 512, 50),
    ({"chunk_size": 8000, "chunk_overlap": 4000}, "sk-none", 8000, 4000),
]


def test_the_config_reports_the_effective_settings(
    subtests: pytest.Subtests, settings: Settings, world: World
):
    """The key selects the model; the model is never called."""
    for config, key, size, overlap in CONFIGS:
        deployment = app_with(collections.app, settings, openai_api_key=key)
        with subtests.test(config=config, key=key), deployment as app:
            headers = world.user(world.org()).headers()
            answer = app.post(PATH, json={"name": "docs", "config": config}, headers=headers)
            body = answer.json()["config"]
            assert (body["chunk_size"], body["chunk_overlap"]) == (size, overlap)
            assert app.get(PATH, headers=headers).json()["data"][0]["config"] == body


def test_the_chunk_size_fits_the_window_that_the_embedder_s_server_reports(
    settings: Settings, people: People, gateway: StandIn
):
    gateway.replies(Reply(json={"data": [{"id": "m", "max_model_len": 300}]}))
    remote = {"openai_api_key": "sk-none", "rag_embedding_url": f"{gateway.url}/v1"}
    with app_with(collections.app, settings, **remote) as app:
        for name, config, size, overlap in (("a", {}, 300, 30), ("b", {"chunk_size": 8000}, 300, 30)):
            body = {"name": name, "config": config}
            made = app.post(PATH, json=body, headers=people.ann.headers()).json()["config"]
            assert (made["chunk_size"], made["chunk_overlap"]) == (size, overlap)
    assert [request.path for request in gateway.requests] == ["/v1/models"]


def test_lists_are_paged_in_any_order(people: People):
    for name in ("b", "a", "c"):
        create(people.ann, name)
    people.ann.put([vector(1)], collection="a")
    assert names(people.ann) == ["c", "a", "b"]
    assert names(people.ann, "?order=asc") == ["b", "a", "c"]
    assert names(people.ann, "?sort_by=name&order=asc") == ["a", "b", "c"]
    assert names(people.ann, "?sort_by=document_count")[0] == "a"
    page = listed(people.ann, "?sort_by=name&order=asc&limit=2&offset=1")
    assert [row["name"] for row in page["data"]] == ["b", "c"]
    assert page["pagination"] == {"total": 3, "limit": 2, "offset": 1, "has_more": False}
    assert listed(people.ann, "?limit=2")["pagination"]["has_more"] is True
    assert listed(people.ann, "?offset=10")["data"] == []


def test_null_leaves_a_field_unchanged(people: People):
    made = create(people.ann, description="old", metadata={"a": 1}, config={"chunk_size": 100})
    config = {"enable_hybrid_search": False}
    changes = {"name": None, "description": "new", "metadata": None, "config": config}
    changed = json_of(people.ann.request("PATCH", f"{PATH}/{made['id']}", changes))
    assert changed["updated_at"] > made["updated_at"]
    expected = {**made, "description": "new", "config": {**made["config"], **config}}
    assert changed == {**expected, "updated_at": changed["updated_at"]}
    again = {"metadata": {"b": 2}, "name": "renamed"}
    replaced = json_of(people.ann.request("PATCH", f"{PATH}/{made['id']}", again))
    assert {name: replaced[name] for name in again} == again


def test_an_empty_collection_is_deleted(people: People):
    made = create(people.ann)
    assert people.ann.request("DELETE", f"{PATH}/{made['id']}").status_code == 204
    for method in ("GET", "DELETE"):
        gone = error(people.ann.request(method, f"{PATH}/{made['id']}"), 404)
        assert (gone["type"], gone["code"]) == ("not_found_error", "collection_not_found")
        assert gone["details"] == {"collection_id": made["id"]}


def test_a_collection_s_documents_are_deleted_only_on_request(people: People, world: World):
    made = create(people.ann, "full")
    people.ann.put([vector(1), vector(2)], collection="full")
    refused = error(people.ann.request("DELETE", f"{PATH}/{made['id']}"), 409)
    assert refused["code"] == "collection_not_empty"
    assert refused["type"] == "invalid_request_error"
    assert len(people.ann.match(vector(1), 1)) == 1
    assert people.ann.request("DELETE", f"{PATH}/{made['id']}?cascade=true").status_code == 204
    assert people.ann.match(vector(1), 1) == []


def test_a_collection_s_documents_are_queued_for_extraction(people: People, subtests: pytest.Subtests):
    """Those that the caller sees: all with `again`, else those that were never read."""
    home = create(people.ann, "graphed")["id"]
    for owner in (people.ann, people.alf):
        owner.put([vector(1)], collection="graphed", private=True)
    people.ann.put([vector(1)], collection="graphed")
    for prefix in ("/api/v1", "/v1"):
        path = f"{prefix}/collections/{home}/graph"
        for actor, body, queued in (
            (people.ann, {}, 0), (people.ann, {"again": True}, 2), (people.ada, {"again": True}, 3),
        ):  # fmt: skip
            with subtests.test(path=path, body=body, queued=queued):
                response = json_of(actor.request("POST", path, body), 202)
                assert response == {"collection_id": home, "queued": queued}
    path = f"{PATH}/{home}/graph"
    assert error(people.ann.request("POST", path, {"again": "yes"}), 400)["details"] == {"field": "again"}
    assert error(people.bob.request("POST", path, {}), 404)["code"] == "collection_not_found"
    reader = people.ann.key_token(scopes=["documents:read", "collections:manage"])
    assert error(people.ann.request("POST", path, {}, token=reader), 403)["code"] == "missing_scope"
    people.ann.request("PATCH", f"{PATH}/{home}", {"config": {"enable_knowledge_graph": False}})
    assert error(people.ann.request("POST", path, {}), 409)["code"] == "graph_off"


def test_a_name_is_unique_among_users_who_share_it(people: People):
    create(people.ann, "docs")
    taken = error(people.alf.request("POST", PATH, {"name": "docs"}), 409)
    assert taken["code"] == "duplicate_collection"
    assert taken["details"] == {"name": "docs"}
    create(people.bob, "docs")
    mine, his = create(people.ann, "docs", private=True), create(people.alf, "docs", private=True)
    assert mine["user_id"] == mine["owner_id"] == people.ann.id
    assert his["user_id"] == his["owner_id"] == people.alf.id
    other = create(people.ann, "others")
    clash = error(people.ann.request("PATCH", f"{PATH}/{other['id']}", {"name": "docs"}), 409)
    assert clash["code"] == "duplicate_collection"


def test_a_tier_limits_the_number_of_collections(people: People, world: World):
    world.sql("update rag.orgs set tier = 'free' where id = %s", people.acme.id)
    for number in range(5):
        create(people.ann, f"c{number}")
    refused = error(people.ann.request("POST", PATH, {"name": "c5"}), 429)
    assert (refused["type"], refused["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert "5" in refused["message"]
    create(people.bob, "c5")
