"""Refusals of bad credentials in each contract's envelope, and callers who belong to no org or to several."""

from typing import Any

import httpx
import pytest

from functions import collections
from shared.config import Settings
from shared.errors import NoOrg
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.test_mcp import ingest, key_of

# A route of each contract, and what its refusal of a credential contains.
CONTRACTS: list[tuple[str, str, Any]] = [
    ("POST", "/api/rag/search", {"code": "unauthorized"}),
    ("GET", "/indexes", None),
    ("GET", "/v1/models", None),
    ("GET", "/api/v1/knowledge/namespaces", "Invalid or missing credentials"),
    ("GET", "/v1/collections", {"type": "authentication_error", "code": "invalid_api_key"}),
    ("POST", "/v1/search", {"code": "UNAUTHENTICATED"}),
]


def test_every_contract_refuses_a_bad_credential_in_its_envelope(subtests: pytest.Subtests, people: People):
    stack = people.ann.stack
    secrets = (people.ann.token(exp=1_700_000_000), "mn_live_" + "A" * 43)
    for method, path, expected in CONTRACTS:
        for authorization in (
            None, "Basic dXNlcjpwYXNz", *(f"Bearer {one}" for one in secrets),
        ):  # fmt: skip
            with subtests.test(path=path, authorization=authorization):
                headers = {"apikey": stack.publishable_key}
                headers |= {} if authorization is None else {"Authorization": authorization}
                response = httpx.request(method, f"{stack.url}{path}", headers=headers)
                assert response.status_code == 401, response.text
                assert response.headers["www-authenticate"] == "Bearer"
                assert [secret for secret in secrets if secret in response.text] == []
                if expected is None:
                    assert isinstance(response.json()["detail"], str)
                elif isinstance(expected, str):
                    assert response.json() == {"detail": expected}
                else:
                    assert response.json()["error"].items() >= expected.items()


# Requests that write to the caller's org.
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/collections", {"name": "x"}),
    ("/v1/webhooks", {"url": "https://hooks.example/", "events": ["document.deleted"]}),
    ("/index", {"index_name": "x", "documents": [{"text": "x"}]}),
]


def test_a_member_of_several_orgs_must_name_one(subtests: pytest.Subtests, people: People, world: World):
    admin = world.user(people.acme, people.bolt, role="admin")
    for path, body in WRITES:
        with subtests.test(path=path):
            response = admin.request("POST", path, body)
            assert response.status_code == 400, response.text
            if path == "/index":
                # This contract has no field for it.
                text = "You belong to several orgs: use an API key of one of them."
                assert response.json()["detail"] == text
                continue
            assert response.json()["error"]["code"] == "org_required"
            named = admin.request("POST", path, {**body, "org_id": people.bolt.id})
            assert named.status_code == 201, named.text
            rows = admin.request("GET", path).json()["data"]
            assert [row["org_id"] for row in rows] == [people.bolt.id]


QUESTION = "What is the lid of kettle 7 made of?"
CHAT = {"messages": [{"role": "user", "content": QUESTION}], "stream": True}
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {**CHAT, "model": "rag"},
    "/v1/chat": {"message": QUESTION, "stream": True},
    "/v1/answer": {"question": QUESTION, "stream": True},
}


def refusal(actor: Actor, token: str | None = None) -> tuple[int, str]:
    """Status and code of a search by the actor, or with the token."""
    response = actor.post("/v1/retrievals", {"query": QUESTION}, token=token)
    return response.status_code, response.json().get("error", {}).get("code", "")


def test_python_and_sql_have_one_sentence(people: People):
    of_sql = people.sam.rpc("rag_list_collections").json()
    assert (of_sql["details"], of_sql["message"]) == (NoOrg.code, str(NoOrg()))
    of_route = people.sam.answer(QUESTION).json()["error"]
    assert of_route == {"code": NoOrg.code, "message": str(NoOrg())}


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_is_refused_before_it_begins(people: People, path: str):
    request = {**STREAMS[path], "workspaceId": ingest(people.ann)}
    response = people.sam.post(path, request)
    assert response.status_code == 403
    assert response.headers["Content-Type"] == "application/json"
    assert "no_org" in response.text
    assert people.ann.post(path, request).headers["Content-Type"].startswith("text/event-stream")


def test_such_requests_count_against_the_limit(people: People, settings: Settings):
    with app_with(collections.app, settings, rag_rate_limit_api="2/minute") as app:
        answers = [app.get("/v1/collections", headers=people.sam.headers()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [403, 403, 429]


def test_an_anonymous_user_is_a_user(people: People, world: World):
    """Of Supabase's anonymous sign-in. An unconfirmed user has no token, and so is no caller."""
    token = people.sam.token(is_anonymous=True)
    assert refusal(people.sam, token) == (403, "no_org")
    world.sql("insert into rag.members (org_id, user_id) values (%s, %s)", people.acme.id, people.sam.id)
    assert refusal(people.sam, token) == (200, "")


def test_a_user_loses_the_org_with_its_deletion(people: People, world: World):
    key = key_of(people.bob, "retrievals:read")
    ingest(people.bob)
    assert refusal(people.bob) == refusal(people.bob, key) == (200, "")
    world.sql("delete from rag.orgs where id = %s", people.bolt.id)
    # The key's token is cached for some seconds. Afterwards the key is unknown.
    assert refusal(people.bob) == refusal(people.bob, key) == (403, "no_org")
    assert refusal(people.kim) == (200, "")


def test_health_says_how_many_orgs_the_caller_has(people: People):
    def orgs(actor: Actor) -> Any:
        return actor.request("GET", "/api/v1/health").json()["orgs"]

    assert [orgs(actor) for actor in (people.sam, people.ann, people.ada, people.kim)] == [0, 1, 1, 2]
    assert httpx.get(f"{people.sam.stack.url}/api/v1/health").json()["orgs"] is None
