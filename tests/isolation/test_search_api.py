"""Attacks on the search API: by others' ids in every place that takes one, by keys, through kept answers."""

from typing import Any

import httpx
import pytest

from tests.actors import NOBODYS, Actor, World
from tests.functions.search_workspace import Row, error_of
from tests.isolation.bad_tokens import BAD_TOKENS
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
def test_another_org_s_workspace_is_404(library: Library, path: str, body: Row, scope: str):
    theirs = workspace_of(library.people.bob)
    nobodys = library.people.ann.post(path, {**body, "workspaceId": NOBODYS, "scope": scope})
    answer = library.people.ann.post(path, {**body, "workspaceId": theirs, "scope": scope})
    assert_not_found(answer, library)
    same = answer.json()["error"], nobodys.json()["error"]
    assert same[0] == same[1], "one that is not there at all looks the same"
    garbage = library.people.ann.post(path, {**body, "workspaceId": "ws_1", "scope": scope})
    assert garbage.json()["error"] == same[1]
    header = {"X-Workspace-Id": theirs}
    assert_not_found(library.people.ann.request("POST", path, {**body, "scope": scope}, **header), library)


@every_route
def test_another_org_s_id_is_missing(library: Library, path: str, body: Row):
    forged = {"organizationId": library.people.bolt.id, "scope": "org"}
    assert_not_found(library.people.ann.post(path, {**body, **forged}), library)
    # Nor beside a workspace of one's own.
    own = {"organizationId": library.people.bolt.id, "workspaceId": workspace_of(library.people.ann)}
    assert_not_found(library.people.ann.post(path, {**body, **own}), library)


@pytest.mark.parametrize("path", ["/v1/search", "/v1/similar", "/v1/answer"])
def test_searches_return_only_visible_documents(library: Library, path: str):
    body = dict(ROUTES)[path] if path != "/v1/answer" else {"question": QUESTION}
    body = {**body, "topK": 50}
    people = library.people
    for actor, visible in ((people.ann, {"acme", "ann"}), (people.alf, {"acme"}), (people.bob, {"bolt"})):
        whole = actor.post(path, {**body, **everywhere(actor)})
        assert whole.status_code == 200, whole.text
        assert secrets_in(whole) == visible
        home = actor.post(path, {**body, "workspaceId": workspace_of(actor)})
        assert secrets_in(home) <= visible


def test_contents_by_ids_of_others_are_missing(library: Library):
    people = library.people
    chunk = people.bob.post("/v1/search", {"q": QUESTION, **everywhere(people.bob)}).json()["results"][0]
    private = people.ann.post("/v1/search", {"q": QUESTION, **everywhere(people.ann)}).json()["results"]
    hidden = [entry["chunkId"] for entry in private if entry["documentId"].endswith(library.ann_document)]
    assert hidden
    ids = [
        {"kind": "document", "id": library.bolt_document},
        {"kind": "chunk", "id": chunk["chunkId"]},
        {"kind": "document", "id": library.ann_document},
        {"kind": "chunk", "id": hidden[0]},
        # An id of the one kind is none of the other.
        {"kind": "chunk", "id": library.acme_document},
    ]
    more = {"includeRaw": True, "expand": {"chunks": True, "graph": {"hops": 2}}}
    for where in (everywhere(people.alf), {"workspaceId": workspace_of(people.alf)}):
        answer = people.alf.post("/v1/contents", {"ids": ids, **more, **where})
        assert answer.status_code == 200
        body = answer.json()
        assert (body["documents"], body["chunks"]) == ([], [])
        assert body["missing"] == [entry["id"] for entry in ids]
        assert secrets_in(answer) == set()


@pytest.mark.parametrize("mode", ["auto", "keyword", "hybrid"])
def test_similar_by_subjects_of_others_is_404(library: Library, mode: str):
    people = library.people
    where = {"workspaceId": workspace_of(people.alf), "mode": mode}
    for document in (library.bolt_document, library.ann_document):
        subject = {"kind": "document", "documentId": document}
        assert_not_found(people.alf.post("/v1/similar", {"subject": subject, **where}), library)


def test_another_user_s_own_workspace_is_404(library: Library):
    people = library.people
    response = people.ann.request("POST", "/api/v1/collections", {"name": f"mine:u:{people.ann.id}"})
    store(library.services, people.ann, "ANN-9", collection=f"mine:u:{people.ann.id}", private=True)
    own = people.ann.rpc("rag_find_collection", {"collection": f"mine:u:{people.ann.id}"}).json()
    assert own, response.text
    workspace = own[0]["id"]
    for path, body in ROUTES:
        assert_not_found(people.alf.post(path, {**body, "workspaceId": workspace}), library)


@every_route
def test_an_invalid_token_is_refused(library: Library, path: str, body: Row):
    token = BAD_TOKENS["another secret"](library.people.ann)
    answer = library.people.ann.post(path, {**body, **everywhere(library.people.ann)}, token=token)
    error_of(answer, 401, "UNAUTHENTICATED")
    assert_tells_nothing(answer, library)


@every_route
def test_a_key_without_the_scope_is_refused(library: Library, path: str, body: Row):
    ann = library.people.ann
    for scope in ("documents:write", "collections:manage"):
        answer = ann.post(path, {**body, **everywhere(ann)}, token=key(ann, scope))
        error_of(answer, 403, "PERMISSION_DENIED")
        assert_tells_nothing(answer, library)
    if path == "/v1/answer":
        # What searches alone does not spend a model's tokens.
        answer = ann.post(path, {**body, **everywhere(ann)}, token=key(ann, "retrievals:read"))
        error_of(answer, 403, "PERMISSION_DENIED")


def bound(library: Library, *scopes: str) -> tuple[str, str, str]:
    """A key that is bound to a workspace of ann's, which has a secret; that workspace, and another one."""
    ann = library.people.ann
    store(library.services, ann, "INSIDE-1", collection="inside")
    inside = workspace_of(ann, "inside")
    outside = workspace_of(ann)
    return key(ann, *scopes, collection="inside"), inside, outside


@every_route
def test_a_key_bound_to_another_workspace_is_refused(library: Library, path: str, body: Row):
    ann = library.people.ann
    token, inside, outside = bound(library, "retrievals:read", "chat:read")
    assert_not_found(ann.post(path, {**body, "workspaceId": outside}, token=token), library)
    if path == "/v1/contents":
        ids = [{"kind": "document", "id": library.acme_document}]
        answer = ann.post(path, {"ids": ids, "workspaceId": inside, "scope": "auto"}, token=token)
        assert answer.json()["missing"] == [library.acme_document]
        return
    for where in ({"workspaceId": inside}, everywhere(ann)):
        answer = ann.post(path, {**body, **where}, token=token)
        assert answer.status_code == 200, answer.text
        assert secrets_in(answer) == set(), "the org is no larger than the key"
        assert "INSIDE-1" in answer.text


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
    error_of(answer, 404, "NOT_FOUND")
    assert secrets_in(answer) == set()
