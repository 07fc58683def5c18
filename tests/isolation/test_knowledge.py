"""Attacks on namespaces and on their audit events: by name, by id, by filter, by key."""

from typing import Any

import httpx
import pytest

from tests.actors import Actor
from tests.conftest import People
from tests.functions.knowledge_client import PREFIX, at, delete, ids, ingest

SECRET = "The vault door opens with ACME-4417."
QUESTION = "What opens the vault door?"
ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "documents", {"documents": [{"text": "stolen"}]}),
    ("GET", "documents", None),
    ("DELETE", "documents/plan", None),
    ("POST", "retrieve", {"query": QUESTION, "include_citations": True}),
    ("POST", "query", {"question": QUESTION}),
]


def ingest_plan(actor: Actor, namespace: str = "vault", **more: Any) -> None:
    ingest(actor, {"text": SECRET, "document_id": "plan", **more}, namespace=namespace)


def call(
    actor: Actor, namespace: str, route: tuple[str, str, Any], *, token: str | None = None, **headers: str
) -> httpx.Response:
    method, rest, body = route
    return actor.request(method, at(namespace, rest), body, token=token, **headers)


def events(actor: Actor, token: str | None = None, **more: Any) -> list[dict[str, Any]]:
    answer = actor.rpc("rag_list_events", more, token=token)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["events"]
    return rows


def key(actor: Actor, *scopes: str, **more: Any) -> str:
    answer = actor.request("POST", "/api/keys", {"name": "k", "scopes": list(scopes), **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["key"])


# Names that say, or seem to say, that they are a user's.
NAMES_OF_OTHERS = [
    "notes:u:{id}", "notes:u:{upper}", "notes:u:al", "notes:u:", "notes:u:{prefix}", "notes:u:{id} ",
    "notes:u:x{id}", "notes:u:{id}x", ":u:{id}", "a/b:u:{id}",
]  # fmt: skip


def test_a_namespace_with_another_user_s_name_is_out_of_reach(people: People, subtests: pytest.Subtests):
    """403 whether or not it exists: the name alone says whose it is."""
    parts = {"id": people.ann.id, "upper": people.ann.id.upper(), "prefix": people.ann.id[:8]}
    own = f"notes:u:{people.ann.id}"
    refused = {"detail": "This name belongs to another user. Choose another name."}
    requests = [(actor, own, route) for actor in (people.alf, people.bob) for route in ROUTES]
    names = [name.format(**parts) for name in NAMES_OF_OTHERS]
    requests += [(people.alf, name, route) for name in names for route in ROUTES[:2]]

    def attack(*, exists: bool) -> None:
        for actor, name, route in requests:
            with subtests.test(name=name, route=route[:2], actor=actor.email, exists=exists):
                answer = call(actor, name, route)
                assert (answer.status_code, answer.json()) == (403, refused)

    attack(exists=False)
    for actor in (people.ann, people.bob):
        assert actor.request("GET", f"{PREFIX}/namespaces").json() == {"namespaces": []}
    ingest_plan(people.ann, own)
    attack(exists=True)
    for actor in (people.alf, people.bob):
        assert actor.request("GET", f"{PREFIX}/namespaces").json() == {"namespaces": []}
    assert ids(people.ann, own) == ["plan"]


def test_private_documents_in_a_shared_namespace_are_hidden(people: People):
    ingest(people.ann, {"text": "Shared.", "document_id": "shared"}, namespace="vault")
    people.ann.put([], collection="vault", private=True, external_id="plan", content=SECRET)
    assert ids(people.ann, "vault") == ["shared", "plan"]
    assert ids(people.alf, "vault") == ["shared"]
    assert delete(people.alf, "plan", "vault").status_code == 404
    # Under that name alf writes the shared one, and never the private one.
    ingest(people.alf, {"text": "Another.", "document_id": "plan"}, namespace="vault")
    assert delete(people.alf, "plan", "vault").status_code == 204
    assert ids(people.ann, "vault") == ["shared", "plan"]
