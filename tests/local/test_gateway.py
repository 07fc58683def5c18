"""The gateway behaves like a hosted project's: apikey on /rest/v1, everything else passed on untouched."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from local import access_tokens, gateway, service_environments
from shared.api.dependencies import get_services
from tests.actors import vector
from tests.conftest import People
from tests.stand_in_server import Reply, StandIn

MEMBER = "/rest/v1/rpc/is_org_member"


def test_rest_without_an_apikey_is_refused(people: People):
    url = f"{people.ann.stack.url}{MEMBER}"
    bearer = {"Authorization": f"Bearer {people.ann.token()}"}
    missing = httpx.post(url, json={"org_id": people.acme.id}, headers=bearer)
    wrong = httpx.post(url, json={"org_id": people.acme.id}, headers={**bearer, "apikey": "guess"})
    assert (missing.status_code, missing.json()) == (401, {"message": "No API key found in request"})
    assert (wrong.status_code, wrong.json()) == (401, {"message": "Invalid authentication credentials"})


def test_a_publishable_key_is_an_apikey_and_no_bearer(subtests: pytest.Subtests, people: People):
    stack, token = people.ann.stack, people.ann.token()
    publishable, secret = stack.publishable_key, "sb_secret_" + "x" * 32
    invalid = (401, {"message": "Invalid authentication credentials"})
    cases: list[tuple[str, str | None, tuple[int, Any]]] = [
        (publishable, token, (200, True)),
        (stack.anon_key, token, (200, True)),
        (publishable, None, (401, "42501")),
        # The gateway forwards it, and PostgREST knows only JWTs.
        (publishable, publishable, (401, "PGRST301")),
        (stack.anon_key, publishable, invalid),
        (publishable, secret, invalid),
        (secret, secret, invalid),
        (secret, token, invalid),
    ]
    for key, bearer, expected in cases:
        with subtests.test(key=key[:15], bearer=bearer and bearer[:15]):
            headers = {"apikey": key} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
            answer = httpx.post(f"{stack.url}{MEMBER}", json={"org_id": people.acme.id}, headers=headers)
            body = answer.json()
            shown = body.get("code", body) if isinstance(body, dict) else body
            assert (answer.status_code, shown) == expected


def test_the_apikey_may_be_in_the_query_and_is_not_forwarded(people: People):
    url = f"{people.ann.stack.url}{MEMBER}?apikey={people.ann.stack.anon_key}"
    bearer = {"Authorization": f"Bearer {people.ann.token()}"}
    assert httpx.post(url, json={"org_id": people.acme.id}, headers=bearer).json() is True


def test_a_preflight_to_rest_passes_without_a_key(people: People):
    headers = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "apikey, authorization",
    }
    answer = httpx.options(f"{people.ann.stack.url}{MEMBER}", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] in ("*", "https://app.example")


def test_postgrest_s_responses_pass_unchanged(people: People):
    wrong = people.ann.rpc("no_such_function")
    assert wrong.status_code == 404
    assert wrong.json()["code"] == "PGRST202"
    people.ann.put([vector(seed) for seed in range(5)])
    page = httpx.post(
        f"{people.ann.stack.url}/rest/v1/rpc/rag_match?select=content&limit=2",
        json={"query_vector": vector(0), "top_k": 5},
        headers={**people.ann.headers(), "Prefer": "count=exact"},
    )
    assert page.headers["content-range"] == "0-1/5"
    assert page.json() == [{"content": "0"}, page.json()[1]]


def test_an_unknown_path_is_404(people: People):
    for path in ("/nothing", "/functions/v1/other", "/auth/v1/token", "/rest/v2/x"):
        assert httpx.get(f"{people.ann.stack.url}{path}").status_code == 404


def test_a_path_cannot_leave_rest(people: People):
    """PostgREST's admin address and other services of the machine stay out of reach."""
    headers = people.ann.headers()
    for path in ("/rest/v1/../../health", "/rest/v1//127.0.0.1:1/", "/rest/v1/http://127.0.0.1:1/"):
        answer = httpx.get(f"{people.ann.stack.url}{path}", headers=headers)
        assert answer.status_code in (200, 404), answer.text
        assert "connection refused" not in answer.text.lower()


def test_its_functions_reach_postgrest_without_the_gateway(
    people: People, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    stack = people.ann.stack
    get_services.cache_clear()
    with StandIn() as project:
        project.replies(Reply(json=access_tokens.public_jwks(stack.signing_key)))
        own = service_environments.of_gateway(stack.state, tmp_path)
        own |= {"SUPABASE_URL": project.url, "SUPABASE_JWT_ISSUER": f"{stack.url}/auth/v1"}
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        with TestClient(gateway.app) as client:
            body = {"query_text": "Where?"}
            response = client.post("/api/rag/search", json=body, headers=people.ann.headers())
        assert response.status_code == 200, response.text
        assert not [request for request in project.requests if "/rest/" in request.path]
