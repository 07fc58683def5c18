"""Attacks on the search API: by others' ids in every place that takes one, by keys, through kept answers."""

from typing import Any

import httpx
import pytest

from tests.actors import NOBODYS, Actor, World
from tests.functions.search_workspace import Row, error_of
from tests.isolation.test_knowledge import key
from tests.isolation.victim_documents import (
    INTERNALS,
    QUESTION,
    SECRETS,
    Library,
    assert_tells_nothing,
    store,
)

ROUTES: list[tuple[str, Row]] = [
    ("/v1/search", {"q": QUESTION}),
    ("/v1/contents", {"ids": [{"kind": "document", "id": NOBODYS}]}),
    ("/v1/similar", {"subject": {"kind": "text", "text": QUESTION}}),
    ("/v1/answer", {"question": QUESTION}),
    ("/v1/answer", {"question": QUESTION, "stream": True}),
]
every_route = pytest.mark.parametrize(("path", "body"), ROUTES)
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


def assert_not_found(answer: httpx.Response, library: Library) -> None:
    error_of(answer, 404, "NOT_FOUND")
    assert_tells_nothing(answer, library)
    assert not INTERNALS.search(answer.text), answer.text


@every_route
@pytest.mark.parametrize("scope", ["auto", "workspace"])
def test_another_org_s_workspace_is_404(shared_library: Library, path: str, body: Row, scope: str):
    """One that is not there at all looks the same."""
    ann, theirs = shared_library.people.ann, workspace_of(shared_library.people.bob)
    request = {**body, "scope": scope}
    answer = ann.post(path, {**request, "workspaceId": theirs})
    assert_not_found(answer, shared_library)
    for absent in (NOBODYS, "ws_1"):
        assert ann.post(path, {**request, "workspaceId": absent}).json()["error"] == answer.json()["error"]
    by_header = ann.request("POST", path, request, **{"X-Workspace-Id": theirs})
    assert_not_found(by_header, shared_library)


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


def test_a_former_member_s_answer_is_not_replayed(library: Library, world: World):
    ann = library.people.ann
    assert secrets_in(ask(ann)) == {"acme", "ann"}
    world.sql(f"delete from rag.members where user_id = '{ann.id}'")
    answer = ask(ann)
    error_of(answer, 403, "PERMISSION_DENIED")
    assert secrets_in(answer) == set()
