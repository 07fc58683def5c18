"""Attacks on the search API: through kept answers."""

from typing import Any

import httpx

from tests.actors import Actor
from tests.functions.search_workspace import Row
from tests.isolation.victim_documents import QUESTION, Library, secrets_in

IDEMPOTENT = {"Idempotency-Key": "2b1c6d1e-8a1f-4a0e-9a51-7c0f3f3f9d10"}


def workspace_of(actor: Actor, name: str = "default") -> str:
    """The id of the collection of that name."""
    body = actor.rpc("rag_find_collection", {"collection": name}).json()
    return f"ws_{body[0]['id']}"


def everywhere(actor: Actor) -> Row:
    """A body that looks in the whole of the actor's org."""
    assert actor.org is not None
    return {"organizationId": f"org_{actor.org.id}", "scope": "org"}


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
