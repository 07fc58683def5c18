"""Who gets in: every wrong credential is 401 at both functions, with a body that helps and leaks nothing."""

import base64
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from jose import jwt

from local import access_tokens
from tests.actors import Actor
from tests.conftest import People

ROUTES = ("/api/rag/search", "/api/rag/answer", "/functions/v1/rag-search", "/functions/v1/rag-answer")


def ask(actor: Actor, authorization: str | None, route: str = ROUTES[0]) -> httpx.Response:
    headers = {"apikey": actor.stack.anon_key}
    if authorization is not None:
        headers["Authorization"] = authorization
    return httpx.post(f"{actor.stack.url}{route}", json={"query_text": "x"}, headers=headers)


def refused(answer: httpx.Response, *secrets: str) -> None:
    assert answer.status_code == 401, answer.text
    assert answer.json()["status"] == "error"
    assert answer.json()["error"]["code"] == "unauthorized"
    assert answer.headers["www-authenticate"] == "Bearer"
    for secret in secrets:
        assert secret not in answer.text


def unsigned(claims: dict[str, Any], **header: str) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'typ': 'JWT', **header})}.{part(claims)}."


def test_a_missing_token_is_refused_everywhere(subtests: pytest.Subtests, people: People):
    for route in ROUTES:
        with subtests.test(route=route):
            refused(ask(people.ann, None, route))


def test_a_header_without_a_token_is_refused(subtests: pytest.Subtests, people: People):
    for authorization in ["", "Bearer", "Basic dXNlcjpwYXNz", "Bearer a.b.c", "Bearer x"]:
        with subtests.test(authorization=authorization):
            refused(ask(people.ann, authorization))


WRONG_CLAIMS: list[dict[str, Any]] = [
    {"exp": 1_700_000_000},
    {"exp": None},
    {"exp": "tomorrow"},
    {"nbf": 4_000_000_000},
    {"aud": "somebody-else"},
    {"aud": None},
    {"iss": "https://evil.example/auth/v1"},
    {"iss": None},
    {"sub": None},
    {"sub": "not-a-uuid"},
    {"role": "anon"},
    {"role": "service_role"},
    {"role": None},
]


def test_an_invalid_or_missing_claim_is_refused(subtests: pytest.Subtests, people: People):
    for claims in WRONG_CLAIMS:
        with subtests.test(claims=claims):
            token = people.ann.token(**claims)
            refused(ask(people.ann, f"Bearer {token}"), token, "evil.example")


def test_the_anon_key_is_not_a_user(people: People):
    anon_key = people.ann.stack.anon_key
    refused(ask(people.ann, f"Bearer {anon_key}"), anon_key)


def test_alg_none_is_refused(people: People):
    claims = jwt.get_unverified_claims(people.ann.token())
    for algorithm in ("none", "None", "NONE", ""):
        refused(ask(people.ann, f"Bearer {unsigned(claims, alg=algorithm)}"))


def test_another_project_s_signature_is_refused(people: People):
    forged = access_tokens.user_token(
        "another-secret-of-at-least-32-characters", people.ann.stack.url, people.ann.id
    )
    refused(ask(people.ann, f"Bearer {forged}"), forged)


def test_a_tampered_payload_is_refused(people: People):
    head, _, signature = people.ann.token().split(".")
    claims = {**jwt.get_unverified_claims(people.ann.token()), "sub": people.bob.id}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    refused(ask(people.ann, f"Bearer {head}.{payload}.{signature}"))


def test_the_scheme_is_case_insensitive_and_only_the_token_counts(people: People):
    assert ask(people.ann, f"bearer {people.ann.token()}").status_code == 200
    headers = {"Authorization": f"Bearer {people.ann.token()}"}
    url = f"{people.ann.stack.url}{ROUTES[0]}"
    assert httpx.post(url, json={"query_text": "x"}, headers=headers).status_code == 200, "no apikey needed"


def test_a_user_without_an_org_is_accepted_and_finds_nothing(people: People):
    assert people.sam.search("x").json()["results"] == []


def test_a_user_without_a_row_is_accepted_and_finds_nothing(people: People):
    stranger = Actor(people.ann.stack, str(uuid4()), "new@test.example")
    assert stranger.search("x").json()["results"] == []
