"""Attacks on the search API: by others' ids in every place that takes one, by keys, through kept answers."""

from typing import Any

import httpx

from tests.actors import Actor
from tests.functions.search_workspace import Row
from tests.isolation.test_knowledge import key
from tests.isolation.victim_documents import QUESTION, SECRETS, Library, store

IDEMPOTENT = {"Idempotency-Key": "2b1c6d1e-8a1f-4a0e-9a51-7c0f3f3f9d10"}


def workspace_of(actor: Actor, name: str = "default") -> str:
    """The id of the collection of that name."""
    body = actor.rpc("rag_find_collection", {"collection": name}).json()
    return f"ws_{body[0]['id']}"


def everywhere(actor: Actor) -> Row:
    """A body that looks in the whole of the actor's org."""
    assert actor.org is not None
    return {"organizationId": f"org_{actor.org.id}", "scope": "org"}


def secrets_in(answer: httpx.Response) -> set[str]:
    return {whose for whose, secret in SECRETS.items() if secret in answer.text}


def bound(library: Library, *scopes: str) -> tuple[str, str, str]:
    """A key that is bound to a workspace of ann's, which has a secret; that workspace, and another one."""
    ann = library.people.ann
    store(library.services, ann, "INSIDE-1", collection="inside")
    inside = workspace_of(ann, "inside")
    outside = workspace_of(ann)
    return key(ann, *scopes, collection="inside"), inside, outside


# --- Kept answers ---


def ask(actor: Actor, token: str | None = None, **more: Any) -> httpx.Response:
    body = {"question": QUESTION, **everywhere(actor), **more}
    return actor.request("POST", "/v1/answer", body, token=token, **IDEMPOTENT)


def is_replay(answer: httpx.Response) -> bool:
    assert answer.status_code == 200, answer.text
    return "idempotency-replayed" in answer.headers


def test_another_user_s_stored_answer_is_not_replayed(library: Library):
    people = library.people
    assert secrets_in(ask(people.ann)) == {"acme", "ann"}
    assert is_replay(ask(people.ann))
    for thief in (people.alf, people.ada):
        answer = ask(thief)
        assert not is_replay(answer)
    assert "ann" not in secrets_in(ask(people.alf))
    assert secrets_in(ask(people.bob)) == {"bolt"}


def test_an_answer_for_a_wider_credential_is_not_replayed(library: Library):
    ann = library.people.ann
    narrow, inside, _ = bound(library, "chat:read")
    wide = key(ann, "chat:read")
    where = {"organizationId": None, "scope": "auto", "workspaceId": inside}
    answers = [ask(ann, token, **where) for token in (None, wide, narrow)]
    assert [is_replay(answer) for answer in answers] == [False] * 3
    assert len({answer.json()["requestId"] for answer in answers}) == 3
    assert is_replay(ask(ann, narrow, **where))
