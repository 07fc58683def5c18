"""Refusals of bad credentials in the envelope of each contract, and users without an org or with several.

tests/local/test_signing_keys.py has the faults of tokens, the attack sweep (verify/) has every route."""

from typing import Any

import httpx
import pytest

from tests.actors import World
from tests.conftest import People

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
