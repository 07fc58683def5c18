"""Attacks with API keys that the sweep does not generate: claims, quotas, hashes, other orgs of the owner."""

from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from shared.access.api_key_authenticator import ApiKeyAuthenticator
from shared.access.api_keys import hash_of
from shared.access.token_signer import signer_for
from tests.actors import Actor, World, hit_arguments, put_arguments, vector
from tests.isolation.victim_documents import HTTP_ROUTES, MATCH, Library, assert_refused

PATH = "/api/keys"
SCOPES = ["documents:read", "documents:write", "retrievals:read", "chat:read", "collections:manage"]


def make(actor: Actor, **more: Any) -> dict[str, Any]:
    """A key as the API makes it: its row, and `key`, its text."""
    answer = actor.request("POST", PATH, {"name": "a key", "scopes": SCOPES, **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def exchanged(library: Library, key: dict[str, Any]) -> str:
    """The token that the functions would act with for this key."""
    signer = signer_for(library.services.settings)
    assert signer
    return ApiKeyAuthenticator(library.services.database, signer).principal(key["key"]).token


def scoped(library: Library, actor: Actor, *scopes: str, **more: Any) -> str:
    """The token of a new key with these scopes."""
    return exchanged(library, make(actor, scopes=list(scopes), **more))


def planted(actor: Actor, world: World, scopes: list[str], owner: Actor | None = None) -> str:
    """A working key's text, written straight into the table by the deployer."""
    assert actor.org
    text = f"mn_live_{uuid4().hex}{uuid4().hex[:11]}"
    world.sql(
        "insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes) "
        "values (%s, %s, 'planted', %s, %s, %s)",
        actor.org.id, (owner or actor).id, text[:12], hash_of(text), scopes,
    )  # fmt: skip
    return text


def put(library: Library, actor: Actor, token: str, **fields: Any) -> httpx.Response:
    arguments = put_arguments(library.people.acme, [vector(1)], **fields)
    return actor.store(arguments, token=token)


# -- whose rows ---------------------------------------------------------------------------------------


def test_an_admin_s_key_without_the_scope_does_not_reach_private_rows(library: Library):
    """The key sees what a member would; with the scope, what its owner does."""
    people = library.people
    token = scoped(library, people.ada, *SCOPES)
    assert library.secrets(MATCH, people.ada, token) == {"acme"}
    answer = people.ada.rpc("rag_delete_document", {"document_id": library.ann_document}, token=token)
    assert answer.json() is False
    assert library.secrets(MATCH, people.ada, scoped(library, people.ada, "admin")) == {"acme", "ann"}
    assert library.is_unchanged()


def test_the_scope_admin_gives_a_non_admin_no_rights(library: Library, world: World):
    """Planted in the table, since no function makes one: it is its owner's key all the same."""
    people = library.people
    key = make(people.ann)
    text = planted(people.alf, world, ["admin"])
    token = exchanged(library, {"key": text})
    assert library.secrets(MATCH, people.alf, token) == {"acme"}
    answer = people.alf.rpc("rag_delete_document", {"document_id": library.ann_document}, token=token)
    assert answer.json() is False
    keys = people.alf.request("GET", PATH, token=text).json()["keys"]
    assert [row["name"] for row in keys] == ["planted"]
    for method, path in (("DELETE", ""), ("POST", "/rotate")):
        answer = people.alf.request(method, f"{PATH}/{key['id']}{path}", token=text)
        assert_refused(answer, 404, library)
    body = {"name": "x", "scopes": ["admin"]}
    assert_refused(people.alf.request("POST", PATH, body, token=text), 403, library)
    assert library.is_unchanged()


# -- ended and forged ---------------------------------------------------------------------------------


def test_claims_in_user_writable_metadata_are_ignored(shared_library: Library):
    """A project lets its users fill user_metadata: nothing of ours is read there, nor beside `rag`."""
    people = shared_library.people
    key = make(people.ann)
    ours: dict[str, Any] = {"key_hash": hash_of(key["key"]), "metrics": True, "scopes": ["admin"]}
    ours |= {"org": people.acme.id, "key": key["id"]}
    places = ("app_metadata", "user_metadata", "claims")
    for claims in (ours, *({place: {**ours, "rag": ours}} for place in places)):
        token = people.bob.token(**claims)
        assert shared_library.secrets(MATCH, people.bob, token) == {"bolt"}, claims
        for function in ("rag_open_key", "rag_metrics", "rag_list_keys"):
            assert people.bob.rpc(function, token=token).json() == [], (claims, function)


# -- too small a scope --------------------------------------------------------------------------------


def test_a_key_without_the_scope_cannot_change_rows_in_sql(library: Library, world: World):
    people = library.people
    for scopes, visible in ((["collections:manage"], False), ([], False), (["documents:read"], True)):
        claims = {"rag": {"org": people.acme.id, "scopes": scopes}}
        for table in ("documents", "chunks"):
            assert bool(world.as_user(people.ann, f"select 1 from rag.{table}", **claims)) is visible
            assert world.as_user(people.ann, f"delete from rag.{table} returning 1", **claims) == []
            if visible:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    world.as_user(people.ann, f"update rag.{table} set lang = 'en'", **claims)
        change = "update rag.collections set name = 'mine' returning 1"
        if scopes != ["collections:manage"]:
            assert world.as_user(people.ann, change, **claims) == []
            assert world.as_user(people.ann, "delete from rag.collections returning 1", **claims) == []
    assert library.is_unchanged()


# -- at the keys themselves ---------------------------------------------------------------------------


def test_a_key_s_token_is_not_a_user_s_token(library: Library):
    """Should one ever get out: over HTTP it is no wider than the key was."""
    people = library.people
    other = make(people.ada)
    token = scoped(library, people.ada, "collections:manage")
    for route in HTTP_ROUTES:
        assert_refused(library.ask(route, people.ada.headers(token)), 403, library)
    assert_refused(people.ada.request("GET", PATH, token=token), 403, library)
    body = {"name": "x", "scopes": ["chat:read"]}
    assert_refused(people.ada.request("POST", PATH, body, token=token), 403, library)
    assert_refused(people.ada.request("DELETE", f"{PATH}/{other['id']}", token=token), 403, library)


def test_the_look_up_token_is_not_a_user(library: Library):
    """What looks a key up can do nothing else, at any door."""
    people = library.people
    key = make(people.ada, scopes=["admin"])
    signer = signer_for(library.services.settings)
    assert signer
    for claims in ({"key_hash": hash_of(key["key"])}, {"metrics": True}):
        token = signer.token(10, rag=claims)
        assert library.secrets(MATCH, people.ada, token) == set()
        assert_refused(library.ask(HTTP_ROUTES[0], people.ada.headers(token)), 401, library)
        assert_refused(people.ada.request("GET", PATH, token=token), 401, library)
        assert put(library, people.ada, token).status_code == 404
        assert people.ada.rpc("rag_check_rate_limit", hit_arguments(), token=token).json() == []
        assert people.ada.rpc("rag_list_keys", token=token).json() == []
        assert people.ada.rpc("rag_revoke_key", {"key_id": key["id"]}, token=token).json() is False
    assert library.is_unchanged()
