"""Attacks with API keys that the sweep does not generate: claims, quotas, hashes, other orgs of the owner."""

from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from shared.access.api_key_authenticator import ApiKeyAuthenticator
from shared.access.api_keys import hash_of
from shared.access.token_signer import signer_for
from tests.actors import NOBODYS, Actor, World, hit_arguments, key_arguments, put_arguments, vector
from tests.isolation.victim_documents import (
    ENTRY_POINTS,
    HTTP_ROUTES,
    MATCH,
    Library,
    assert_refused,
    assert_tells_nothing,
)

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
    return actor.rpc("rag_put_document", arguments, token=token)


# -- whose rows ---------------------------------------------------------------------------------------


def test_a_key_does_not_reach_its_owner_s_other_org(library: Library):
    """Kim belongs to both, and the key to one."""
    people = library.people
    token = scoped(library, people.kim, *SCOPES, org_id=people.bolt.id)
    assert library.secrets(MATCH, people.kim, token) == {"bolt"}
    assert library.secrets(MATCH, people.kim, token, org_id=people.acme.id) == set()
    assert put(library, people.kim, token).status_code == 404
    answer = people.kim.rpc("rag_delete_document", {"document_id": library.acme_document}, token=token)
    assert answer.json() is False
    assert library.is_unchanged()


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


def test_a_former_member_s_old_key_token_finds_and_writes_nothing(library: Library, world: World):
    people = library.people
    token = scoped(library, people.ann, *SCOPES)
    assert library.secrets(MATCH, people.ann, token) == {"acme", "ann"}
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert library.secrets(MATCH, people.ann, token) == set()
    assert put(library, people.ann, token).status_code == 403


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


def assert_powerless(library: Library, actor: Actor, token: str) -> None:
    """The token reads, writes and deletes nothing."""
    results = library.ask(MATCH, actor.headers(token))
    assert results.status_code == 403 or results.json() == []
    assert put(library, actor, token).status_code in (400, 403, 404)
    deletion = actor.rpc("rag_delete_document", {"document_id": library.acme_document}, token=token)
    assert deletion.status_code == 403 or deletion.json() is False


def test_a_malformed_claim_grants_nothing(subtests: pytest.Subtests, library: Library):
    """A malformed claim of the key, then of its collection, grants none of the user's rights."""
    ann = library.people.ann
    for claim in ["", "admin", 7, True, [], ["admin"], [{"scopes": ["admin"]}]]:
        with subtests.test(claim=claim):
            token = ann.token(rag=claim)
            assert_powerless(library, ann, token)
            for function, arguments in (("rag_list_keys", {}), ("rag_create_key", key_arguments())):
                assert ann.rpc(function, arguments, token=token).status_code == 403
    for collection in ["", "binder", 7, True, [], {}, ["x"], "null", NOBODYS]:
        with subtests.test(collection=collection):
            assert_powerless(library, ann, ann.key_token(collection=collection))
    assert library.is_unchanged()


# -- too small a scope --------------------------------------------------------------------------------


# A user's token with the claim of a key that has no such scope must not pass for the user's own.
NO_SEARCH_SCOPES: list[Any] = [
    ["documents:read"], [], ["admin "], ["RETRIEVALS:READ"], "admin", "retrievals:read", 7, True, {},
    {"admin": True}, {"retrievals:read": True}, [["admin"]],
]  # fmt: skip


def test_a_malformed_list_of_scopes_grants_nothing(subtests: pytest.Subtests, shared_library: Library):
    people = shared_library.people
    for scopes in NO_SEARCH_SCOPES:
        with subtests.test(scopes=scopes):
            token = people.ann.key_token(scopes=scopes)
            for route in ENTRY_POINTS:
                answer = shared_library.ask(route, people.ann.headers(token))
                assert answer.status_code == 403, answer.text
                assert_tells_nothing(answer, shared_library)


def test_documents_write_puts_replaces_and_deletes(library: Library):
    people = library.people
    token = scoped(library, people.ann, "documents:write")
    (first,) = put(library, people.ann, token, external_id="mine", collection="a new one").json()
    (second,) = put(library, people.ann, token, external_id="mine", collection="a new one").json()
    assert (first["document_id"], second["replaced"]) == (second["document_id"], True)
    deletion = people.ann.rpc("rag_delete_document", {"document_id": first["document_id"]}, token=token)
    assert deletion.json() is True


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


# -- bound to a collection ----------------------------------------------------------------------------


@pytest.fixture
def bound(library: Library) -> str:
    """The token of a key of ann's that may do everything, in the collection "binder"."""
    library.people.ann.put([vector(1)], collection="binder", title="in the binder", external_id="same")
    return scoped(library, library.people.ann, *SCOPES, collection="binder")


def test_a_bound_key_cannot_write_outside_its_collection(library: Library, world: World, bound: str):
    """Neither into the default one, nor another's, nor a new one; by no name of its own either."""
    people = library.people
    people.ann.put([vector(1)], collection="another", external_id="same", title="as it was")
    before = world.sql("select count(*) from rag.documents where org_id = %s", people.acme.id)
    elsewhere = [{"collection": name} for name in ("default", "another", "a new one", "BINDER", "")]
    for fields in ({}, {"collection": "another", "external_id": "same"}, *elsewhere):
        for private in (False, True):
            answer = put(library, people.ann, bound, private=private, **fields)
            assert answer.status_code in (400, 403, 404), (fields, answer.text)
            assert_tells_nothing(answer, library)
    assert world.sql("select count(*) from rag.documents where org_id = %s", people.acme.id) == before
    names = world.sql("select name from rag.collections where org_id = %s order by 1", people.acme.id)
    assert names == [("another",), ("binder",), ("default",)]
    assert library.is_unchanged()


def test_a_bound_key_cannot_leave_its_collection_in_sql(library: Library, world: World, bound: str):
    people = library.people
    ((collection,),) = world.sql(
        "select id::text from rag.collections where org_id = %s and name = 'binder'", people.acme.id
    )
    claims = {"rag": {"org": people.acme.id, "scopes": ["admin"], "collection": collection}}
    for table, column in (("documents", "collection_id"), ("chunks", "collection_id"), ("collections", "id")):
        rows = world.as_user(people.ann, f"select distinct {column}::text from rag.{table}", **claims)
        assert rows == [(collection,)]
        outside = f"from rag.{table} where {column} <> '{collection}'"
        assert world.as_user(people.ann, f"delete {outside} returning 1", **claims) == []
    ((other,),) = world.sql(
        "select collection_id::text from rag.documents where id = %s", library.acme_document
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.ann, "update rag.documents set collection_id = %s", other, **claims)
    assert library.is_unchanged()


def test_a_key_cannot_create_a_stronger_key(library: Library, world: World):
    """It would outlive its own end in it; and who holds a key of one collection does not widen it."""
    people = library.people
    people.ada.put([vector(1)], collection="binder")
    unbound = make(people.ada, scopes=["admin"])
    key = make(people.ada, scopes=["admin"], collection="binder")["key"]
    for more in ({}, {"collection": "default"}, {"collection": "binder"}):
        for token in (key, unbound["key"]):
            body = {"name": "x", "scopes": ["chat:read"], **more}
            assert_refused(people.ada.request("POST", PATH, body, token=token), 403, library)
    for token in (key, unbound["key"]):
        rotate = f"{PATH}/{unbound['id']}/rotate"
        assert people.ada.request("POST", rotate, token=token).status_code in (403, 404)
    assert_refused(people.ada.request("DELETE", f"{PATH}/{unbound['id']}", token=key), 404, library)
    keys = people.ada.request("GET", PATH, token=key).json()["keys"]
    assert {row["collection"] for row in keys} == {"binder"}
    assert world.sql("select revoked_at from rag.api_keys where id = %s", unbound["id"]) == [(None,)]


# -- at the keys themselves ---------------------------------------------------------------------------


def test_key_hashes_and_texts_never_leave_the_database(library: Library):
    """By no exposed function, no column of it, and no address of a table."""
    people = library.people
    key = make(people.ann, scopes=["chat:read"])
    digest = hash_of(key["key"])
    answers = [people.ann.request("GET", PATH), people.ada.request("GET", PATH)]
    answers.append(people.ann.request("POST", f"{PATH}/{key['id']}/rotate"))
    options = ("select=*,hash", "select=hash", "select=*,api_keys(*)", f"hash=eq.{digest}", "order=hash")
    for actor in (people.ann, people.ada, people.bob):
        answers += [actor.rpc("rag_list_keys", {"key_id": key["id"]}), actor.rpc("rag_open_key")]
        answers += [actor.rpc("rag_list_keys"), *(actor.rpc(f"rag_list_keys?{one}") for one in options)]
        for table in ("api_keys", "rag.api_keys", "api_key", "shown"):
            answers.append(actor.request("GET", f"/rest/v1/{table}?select=*"))
            assert answers[-1].status_code == 404
    for answer in answers:
        assert digest not in answer.text
        assert key["key"] not in answer.text


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


# -- budgets and counters -----------------------------------------------------------------------------


def test_another_key_s_quota_cannot_be_spent(library: Library, world: World):
    """Neither another user, nor an argument, uses up a key's limit, which is its user's."""
    people = library.people
    key, other = make(people.ada, scopes=["admin"]), make(people.ada, scopes=["admin"])
    people.ann.rpc("rag_check_rate_limit", hit_arguments(bucket="api", requests=1000, amount=600))
    assert people.ann.request("GET", PATH).status_code == 429
    left = []
    for token in (other["key"], key["key"], None, key["key"]):
        answer = people.ada.request("GET", PATH, token=token)
        assert answer.status_code == 200
        left.append(int(answer.headers["X-RateLimit-Remaining"]))
    assert left == list(range(left[0], left[0] - 4, -1))
    for name in ("key", "key_id", "caller_id"):
        arguments = {**hit_arguments(bucket="api"), name: key["id"]}
        assert people.ann.rpc("rag_check_rate_limit", arguments).status_code == 404
    statement = "update rag.rate_limits set hits = 1000 where caller_id = %s returning 1"
    for actor in (people.ada, people.ann):
        assert world.as_user(actor, statement, key["id"]) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(
            people.ann, "insert into rag.rate_limits values (%s, 'api', 3600, now(), 1000)", key["id"]
        )
