"""api-keys over HTTP, on the real stack: keys made, shown once, listed, rotated, revoked; and what a key as a
bearer is exchanged for."""

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from jose import jwt
from pydantic import ValidationError

from functions import api_keys
from shared.access import api_key_authenticator
from shared.access.api_key_authenticator import CACHED_SECONDS, ApiKeyAuthenticator
from shared.access.api_keys import hash_of
from shared.access.token_signer import LIFETIME_SECONDS, UNTRUSTED, Signer, signer_for
from shared.api.contracts.api_keys import CreatedKey
from shared.config import Settings
from shared.errors import DatabaseFailed, Unauthorized
from shared.services import Services
from tests.actors import NOBODYS, Actor, World, hit_arguments, vector
from tests.conftest import People
from tests.functions.app_server import client_of, proxy_to, services_with

PATH = "/api/keys"
KEY_FIELDS = {
    "id", "org_id", "owner_id", "name", "prefix", "scopes", "collection", "created_at", "expires_at",
    "last_used_at", "revoked_at",
}  # fmt: skip
SCOPES = ["documents:read", "documents:write", "retrievals:read", "chat:read", "collections:manage"]
UNKNOWN = "mn_live_" + "A" * 43
LIMIT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def asked_for(**more: Any) -> dict[str, Any]:
    return {"name": "CI", "scopes": ["retrievals:read"], **more}


def create(actor: Actor, *, token: str | None = None, **more: Any) -> dict[str, Any]:
    answer = actor.request("POST", PATH, asked_for(**more), token=token)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def listed(actor: Actor, token: str | None = None) -> list[dict[str, Any]]:
    answer = actor.request("GET", PATH, token=token)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"keys"}
    results: list[dict[str, Any]] = answer.json()["keys"]
    return results


# Of httpx, or of the test client's own.
Response = Any


def assert_refused(answer: Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"status", "error"}
    assert answer.json()["status"] == "error"
    assert set(answer.json()["error"]) == {"code", "message"}
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["message"]


def limit_of(answer: Response) -> tuple[int, int]:
    """The limit and what remains, as the headers say."""
    assert int(answer.headers["x-ratelimit-reset"]) > time.time() - 5
    return int(answer.headers["x-ratelimit-limit"]), int(answer.headers["x-ratelimit-remaining"])


def key_row(world: World, key: dict[str, Any], columns: str) -> tuple[Any, ...]:
    (row,) = world.sql(f"select {columns} from rag.api_keys where id = %s", key["id"])
    return row


# -- making keys --------------------------------------------------------------------------------------


def test_a_new_key_is_returned_with_its_text_and_rights(people: People):
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    answer = people.ann.request("POST", PATH, asked_for(scopes=SCOPES, expires_at=until.isoformat()))
    assert answer.status_code == 201
    body = answer.json()
    assert set(body) == {*KEY_FIELDS, "key"}
    assert re.fullmatch(r"mn_live_[A-Za-z0-9_-]{43}", body["key"])
    assert body["prefix"] == body["key"][:12]
    assert (body["org_id"], body["owner_id"], body["name"]) == (people.acme.id, people.ann.id, "CI")
    assert (body["scopes"], body["collection"]) == (SCOPES, None)
    assert datetime.fromisoformat(body["expires_at"]) == until
    assert body["last_used_at"] is body["revoked_at"] is None


KINDS: list[tuple[str, str]] = [
    ("live", "mn_live_"),
    ("test", "mn_test_"),
    ("admin", "mn_admin_"),
    ("sk", "sk_"),
]


def test_each_kind_has_its_own_prefix_and_works(subtests: pytest.Subtests, people: People):
    for kind, beginning in KINDS:
        with subtests.test(kind=kind):
            key = create(people.ada, kind=kind, scopes=["admin"])
            assert re.fullmatch(rf"{beginning}[A-Za-z0-9_-]{{43}}", key["key"])
            assert key["prefix"] == key["key"][: len(beginning) + 4]
            assert key["id"] in {row["id"] for row in listed(people.ada, key["key"])}


def test_a_kind_grants_no_rights(people: People):
    """An "admin" key without the scope may do nothing of an admin's."""
    key = create(people.ann, kind="admin")
    assert_refused(people.ann.request("GET", PATH, token=key["key"]), 403, "missing_scope")


def test_a_key_is_shown_only_once(people: People, world: World):
    key = create(people.ann)
    rotated = people.ann.request("POST", f"{PATH}/{key['id']}/rotate").json()
    answer = people.ann.request("GET", PATH)
    assert len(answer.json()["keys"]) == 2
    for row in answer.json()["keys"]:
        assert set(row) == KEY_FIELDS
    stored = str(world.sql("select api_keys from rag.api_keys where owner_id = %s", people.ann.id))
    for text in (key["key"], rotated["key"]):
        assert text not in answer.text + stored
        assert text[12:] not in answer.text + stored
        assert hash_of(text) not in answer.text
        assert hash_of(text) in stored


def test_keys_are_distinct(people: People):
    keys = [create(people.ann) for _ in range(5)]
    assert len({key["key"] for key in keys}) == len({key["id"] for key in keys}) == 5


def test_a_key_is_bound_to_an_org_and_a_collection_by_name(people: People):
    people.bob.put([vector(1)], collection="manuals")
    key = create(people.kim, org_id=people.bolt.id, collection="manuals")
    assert (key["org_id"], key["collection"]) == (people.bolt.id, "manuals")
    assert listed(people.kim)[0]["collection"] == "manuals"


BAD_FIELDS: list[tuple[Any, str]] = [
    ({}, "name"), ([], "body"), ("x", "body"), (None, "body"),
    (asked_for(name=None), "name"), (asked_for(name=""), "name"), (asked_for(name="  \n"), "name"),
    (asked_for(name="x" * 101), "name"), (asked_for(name=7), "name"), (asked_for(name=["x"]), "name"),
    ({"name": "CI"}, "scopes"), (asked_for(scopes=None), "scopes"), (asked_for(scopes=[]), "scopes"),
    (asked_for(scopes="admin"), "scopes"), (asked_for(scopes={"admin": True}), "scopes"),
    (asked_for(scopes=["everything"]), "scopes.0"), (asked_for(scopes=["chat:read", 7]), "scopes.1"),
    (asked_for(scopes=[["chat:read"]]), "scopes.0"), (asked_for(scopes=[None]), "scopes.0"),
    (asked_for(scopes=["chat:read"] * 7), "scopes"),
    (asked_for(kind="root"), "kind"), (asked_for(kind=None), "kind"), (asked_for(kind=7), "kind"),
    (asked_for(org_id="acme"), "org_id"), (asked_for(org_id=7), "org_id"),
    (asked_for(org_id=[]), "org_id"),
    (asked_for(collection=""), "collection"), (asked_for(collection="x" * 201), "collection"),
    (asked_for(collection=7), "collection"),
    # Unknown fields: a misspelled restriction, and columns of the key.
    (asked_for(collection_id="manuals"), "collection_id"), (asked_for(id=NOBODYS), "id"),
    (asked_for(owner_id=NOBODYS), "owner_id"), (asked_for(hash="0" * 64), "hash"),
    (asked_for(requests_per_minute=10**6), "requests_per_minute"), (asked_for(prefix="sk_ab"), "prefix"),
    (asked_for(expires_at="tomorrow"), "expires_at"), (asked_for(expires_at="2999-01-01"), "expires_at"),
    (asked_for(expires_at="2999-01-01T00:00:00"), "expires_at"),
    (asked_for(expires_at="2999-02-30T00:00:00Z"), "expires_at"),
    (asked_for(expires_at=[]), "expires_at"),
]  # fmt: skip


def test_an_invalid_field_is_400_and_named(subtests: pytest.Subtests, world: World):
    for body, field in BAD_FIELDS:
        with subtests.test(body=body):
            ann = world.user(world.org())
            answer = ann.request("POST", PATH, body)
            assert_refused(answer, 400, "invalid_request")
            assert answer.json()["error"]["message"].startswith(f"{field}: ")
            assert "xxx" not in answer.text
            assert limit_of(answer) == (600, 599), "it counts, and says so"
            assert listed(ann) == []


REFUSED_BY_DATABASE: list[tuple[dict[str, Any], str]] = [
    ({"name": "a\u200bb"}, "invalid_request"),
    ({"name": "a\u0000b"}, "invalid_request"),
    ({"expires_at": "2020-01-01T00:00:00Z"}, "invalid_expiry"),
    ({"expires_at": 1_600_000_000}, "invalid_expiry"),
    ({"expires_at": "9999-12-31T23:59:59Z"}, "invalid_request"),
]


def test_a_value_that_the_database_rejects_is_400_without_its_message(
    subtests: pytest.Subtests, world: World
):
    for more, code in REFUSED_BY_DATABASE:
        with subtests.test(more=more):
            ann = world.user(world.org())
            answer = ann.request("POST", PATH, asked_for(**more))
            assert_refused(answer, 400, code)
            assert not re.search(r"rag\.|constraint|SQL|PT400|22P05|api_keys", answer.text)
            assert listed(ann) == []


def test_a_name_is_trimmed(people: People, world: World):
    key = create(people.ann, name="  CI \n")
    assert (key["name"], key["owner_id"], key["prefix"][:8]) == ("CI", people.ann.id, "mn_live_")
    row = key_row(world, key, "owner_id::text, requests_per_minute, collection_id, hash")
    assert row == (people.ann.id, None, None, hash_of(key["key"]))


def test_a_body_that_is_not_a_json_object_is_400(subtests: pytest.Subtests, people: People):
    for content in [b"{", b"", b"\xff", b"name=x", b"[" * 5000]:
        with subtests.test(content=content):
            headers = {**people.ann.headers(), "Content-Type": "application/json"}
            answer = httpx.post(f"{people.ann.stack.url}{PATH}", content=content, headers=headers)
            assert_refused(answer, 400, "invalid_request")
            assert listed(people.ann) == []


def test_a_body_without_its_content_type_is_400_with_the_header_to_send(people: People):
    answer = httpx.post(f"{people.ann.stack.url}{PATH}", content=b"{}", headers=people.ann.headers())
    assert_refused(answer, 400, "invalid_request")
    message = "body: Send a JSON object, with the header Content-Type: application/json."
    assert answer.json()["error"]["message"] == message


def test_another_org_and_another_user_s_collection_are_404_like_missing_ones(people: People, world: World):
    people.bob.put([vector(1)], collection="of Bolt")
    world.sql(
        "insert into rag.collections (org_id, owner_id, name) values (%s, %s, 'alf''s own')",
        people.acme.id, people.alf.id,
    )  # fmt: skip
    for org in (people.bolt.id, str(uuid4())):
        answer = people.ann.request("POST", PATH, asked_for(org_id=org))
        assert_refused(answer, 404, "org_not_found")
    for name in ("of Bolt", "alf's own", "never made"):
        answer = people.ann.request("POST", PATH, asked_for(collection=name))
        assert_refused(answer, 404, "collection_not_found")
    assert_refused(people.sam.request("POST", PATH, asked_for()), 404, "org_not_found")
    assert_refused(people.kim.request("POST", PATH, asked_for()), 400, "org_required")


def test_the_scope_admin_is_403_for_non_admins(people: People):
    answer = people.ann.request("POST", PATH, asked_for(scopes=["admin"]))
    assert_refused(answer, 403, "admin_required")
    assert create(people.ada, scopes=["admin"])["scopes"] == ["admin"]


# -- listing, rotating, revoking ----------------------------------------------------------------------


def test_users_list_their_own_keys_and_admins_all_keys_of_the_org(people: People):
    ann, alf, bob = create(people.ann), create(people.alf), create(people.bob)
    assert [key["id"] for key in listed(people.ann)] == [ann["id"]]
    assert [key["id"] for key in listed(people.bob)] == [bob["id"]]
    assert {key["id"] for key in listed(people.ada)} == {ann["id"], alf["id"]}
    assert listed(people.sam) == []


# A list of lists of scopes is stored, and then no list that holds it can be shown.
def test_a_key_inserted_through_sql_does_not_break_an_admin_s_list(people: People):
    good = create(people.alf)
    spoiled = {
        "name": "x", "prefix": "sk_abcd", "hash": hash_of("x" + people.ann.id), "scopes": [["chat:read"]],
    }  # fmt: skip
    people.ann.rpc("rag_create_key", spoiled)
    assert good["id"] in {key["id"] for key in listed(people.ada)}


def test_a_rotated_key_has_the_same_rights_and_the_old_key_stops_working(people: People):
    old = create(people.ada, scopes=["admin"], kind="test", expires_at="2999-01-01T00:00:00Z")
    answer = people.ada.request("POST", f"{PATH}/{old['id']}/rotate")
    assert answer.status_code == 201
    new = answer.json()
    assert set(new) == {*KEY_FIELDS, "key"}
    assert new["id"] != old["id"]
    assert re.fullmatch(r"mn_test_[A-Za-z0-9_-]{43}", new["key"])
    assert new["key"] != old["key"]
    for field in ("name", "scopes", "org_id", "owner_id", "collection"):
        assert new[field] == old[field]
    assert_refused(people.ada.request("GET", PATH, token=old["key"]), 401, "unauthorized")
    rows = {key["id"]: key for key in listed(people.ada, new["key"])}
    assert rows[old["id"]]["revoked_at"]
    assert rows[new["id"]]["revoked_at"] is None


def test_a_key_of_every_kind_rotates_into_the_same_kind(subtests: pytest.Subtests, people: People):
    for kind, beginning in (
        ("live", "mn_live_"),
        ("test", "mn_test_"),
        ("admin", "mn_admin_"),
        ("sk", "sk_"),
    ):
        with subtests.test(kind=kind):
            old = create(people.ada, kind=kind)
            answer = people.ada.request("POST", f"{PATH}/{old['id']}/rotate")
            assert answer.status_code == 201, answer.text
            assert answer.json()["key"].startswith(beginning)


def test_with_an_overlap_both_keys_work_until_it_ends(people: People, world: World):
    old = create(people.ada, scopes=["admin"])
    body = {"overlap_seconds": 3600}
    new = people.ada.request("POST", f"{PATH}/{old['id']}/rotate", body).json()
    for key in (old, new):
        assert len(listed(people.ada, key["key"])) == 2
    end = key_row(world, old, "expires_at - now() between interval '59 minutes' and interval '60 minutes'")
    assert end == (True,)


def test_an_unknown_field_is_400_and_rotates_nothing(people: People):
    """Otherwise the old key would stop at once."""
    key = create(people.ann)
    answer = people.ann.request("POST", f"{PATH}/{key['id']}/rotate", {"overlap": 3600})
    assert_refused(answer, 400, "invalid_request")
    assert answer.json()["error"]["message"].startswith("overlap: ")
    assert [row["id"] for row in listed(people.ann)] == [key["id"]]


def test_a_rotation_needs_no_body(subtests: pytest.Subtests, world: World):
    for body in [None, {}, {"overlap_seconds": 0}]:
        with subtests.test(body=body):
            ann = world.user(world.org())
            key = create(ann)
            assert ann.request("POST", f"{PATH}/{key['id']}/rotate", body).status_code == 201
            assert sum(row["revoked_at"] is None for row in listed(ann)) == 1


def test_an_invalid_overlap_is_400_and_rotates_nothing(subtests: pytest.Subtests, world: World):
    for overlap in [-1, 604_801, "60", 1.5, True, None, [], 10**30]:
        with subtests.test(overlap=overlap):
            ann = world.user(world.org())
            key = create(ann)
            answer = ann.request("POST", f"{PATH}/{key['id']}/rotate", {"overlap_seconds": overlap})
            assert_refused(answer, 400, "invalid_request")
            assert answer.json()["error"]["message"].startswith("overlap_seconds: ")
            (row,) = listed(ann)
            assert row["revoked_at"] is row["expires_at"] is None


def test_the_longest_overlap_is_a_week(people: People):
    key = create(people.ann)
    answer = people.ann.request("POST", f"{PATH}/{key['id']}/rotate", {"overlap_seconds": 604_800})
    assert answer.status_code == 201


def test_a_revoked_key_stops_working_and_revocation_is_idempotent(people: People):
    key = create(people.ada, scopes=["admin"])
    for _ in range(2):
        answer = people.ada.request("DELETE", f"{PATH}/{key['id']}")
        assert (answer.status_code, answer.content) == (204, b"")
    assert_refused(people.ada.request("GET", PATH, token=key["key"]), 401, "unauthorized")
    (row,) = listed(people.ada)
    assert row["revoked_at"]


def test_an_admin_can_revoke_but_not_rotate_a_member_s_key(people: People):
    key = create(people.ann)
    assert_refused(people.ada.request("POST", f"{PATH}/{key['id']}/rotate"), 404, "key_not_found")
    assert people.ada.request("DELETE", f"{PATH}/{key['id']}").status_code == 204
    assert listed(people.ann)[0]["revoked_at"]


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_another_user_s_key_is_404_like_a_missing_one(people: People, action: str):
    key = create(people.ann)
    texts = set()
    for actor, key_id in (
        (people.alf, key["id"]),
        (people.bob, key["id"]),
        (people.sam, key["id"]),
        (people.ann, str(uuid4())),
    ):
        method, path = ("POST", "/rotate") if action == "rotate" else ("DELETE", "")
        answer = actor.request(method, f"{PATH}/{key_id}{path}")
        assert_refused(answer, 404, "key_not_found")
        assert limit_of(answer)[0] == 600
        texts.add(answer.text)
    assert len(texts) == 1
    assert listed(people.ann)[0]["revoked_at"] is None


def test_a_malformed_id_is_400_and_counted(subtests: pytest.Subtests, world: World):
    for key_id in ["x", "1", "'; drop table rag.api_keys; --", "%00", "null", "0" * 300]:
        with subtests.test(key_id=key_id):
            ann = world.user(world.org())
            requests = (("POST", f"/{key_id}/rotate"), ("DELETE", f"/{key_id}"))
            for number, (method, path) in enumerate(requests):
                answer = ann.request(method, PATH + path)
                assert_refused(answer, 400, "invalid_request")
                assert limit_of(answer) == (600, 599 - number)


def test_an_ended_key_cannot_be_rotated(people: People, world: World):
    revoked, expired = create(people.ann), create(people.ann)
    people.ann.request("DELETE", f"{PATH}/{revoked['id']}")
    world.sql("update rag.api_keys set expires_at = now() where id = %s", expired["id"])
    for key in (revoked, expired):
        answer = people.ann.request("POST", f"{PATH}/{key['id']}/rotate")
        assert_refused(answer, 404, "key_not_found")


# -- the frame of every response ----------------------------------------------------------------------


def test_every_authenticated_response_has_rate_limit_headers(people: People):
    """201, 200, 204, 400, 403 and 404 alike, one less each time."""
    key = create(people.ann)
    answers = [
        people.ann.request("POST", PATH, asked_for()),
        people.ann.request("GET", PATH),
        people.ann.request("POST", PATH, {}),
        people.ann.request("POST", PATH, asked_for(scopes=["admin"])),
        people.ann.request("POST", PATH, asked_for(org_id=str(uuid4()))),
        people.ann.request("POST", f"{PATH}/{key['id']}/rotate"),
        people.ann.request("DELETE", f"{PATH}/{key['id']}"),
        people.ann.request("DELETE", f"{PATH}/{uuid4()}"),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 400, 403, 404, 201, 204, 404]
    assert [limit_of(answer) for answer in answers] == [(600, left) for left in range(598, 590, -1)]
    for answer in answers:
        assert answer.headers["x-request-id"]


def test_a_request_over_the_limit_is_429_and_changes_nothing(people: People, world: World):
    world.tier(people.acme, api=2)
    key = create(people.ann)
    people.ann.request("GET", PATH)
    for method, path in (("POST", PATH), ("GET", PATH), ("DELETE", f"{PATH}/{key['id']}")):
        answer = people.ann.request(method, path, asked_for() if method == "POST" else None)
        assert_refused(answer, 429, "rate_limited")
        assert limit_of(answer) == (2, 0)
        assert 1 <= int(answer.headers["retry-after"]) <= 61
    assert key_row(world, key, "revoked_at") == (None,)
    assert people.alf.request("GET", PATH).status_code == 200


def test_the_rag_contract_has_its_own_limit(people: People):
    people.ann.rpc("rag_check_rate_limit", hit_arguments(amount=60))
    assert people.ann.search("x").status_code == 429
    assert limit_of(people.ann.request("GET", PATH)) == (600, 599)


def test_requests_without_a_credential_are_401_and_cost_no_quota(people: People):
    stack = people.ann.stack
    for method, path in (
        ("POST", PATH),
        ("GET", PATH),
        ("POST", f"{PATH}/{uuid4()}/rotate"),
        ("DELETE", f"{PATH}/{uuid4()}"),
    ):
        for headers in ({}, {"Authorization": f"Bearer {stack.anon_key}"}, {"Authorization": "Bearer x"}):
            body = asked_for() if method == "POST" else None
            answer = httpx.request(method, f"{stack.url}{path}", json=body, headers=headers)
            assert_refused(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert not set(answer.headers) & set(LIMIT_HEADERS)


def test_an_options_request_is_answered_without_a_token(subtests: pytest.Subtests, people: People):
    for path in [PATH, f"{PATH}/x", f"{PATH}/x/rotate"]:
        with subtests.test(path=path):
            url = f"{people.ann.stack.url}{path}"
            plain = httpx.options(url)
            assert plain.status_code == 204
            preflight = httpx.options(
                url,
                headers={
                    "Origin": "https://app.example",
                    "Access-Control-Request-Method": "DELETE",
                    "Access-Control-Request-Headers": "authorization, content-type",
                },
            )
            assert preflight.status_code in (200, 204)
            assert preflight.headers["access-control-allow-origin"] == "*"
            for method in ("GET", "POST", "DELETE"):
                assert method in preflight.headers["access-control-allow-methods"]


OTHER_METHODS: list[tuple[str, str]] = [
    ("PUT", PATH), ("PATCH", PATH), ("DELETE", PATH),
    ("GET", f"{PATH}/x"), ("POST", f"{PATH}/x"), ("PATCH", f"{PATH}/x"),
    ("GET", f"{PATH}/x/rotate"), ("DELETE", f"{PATH}/x/rotate"),
]  # fmt: skip


def test_unsupported_methods_are_405(subtests: pytest.Subtests, people: People):
    for method, path in OTHER_METHODS:
        with subtests.test(method=method, path=path):
            answer = people.ann.request(method, path)
            assert_refused(answer, 405, "method_not_allowed")


# -- a key as a bearer --------------------------------------------------------------------------------


def managed_by(key: dict[str, Any], bearer: str, actor: Actor) -> dict[str, httpx.Response]:
    """What each route that takes keys answers to this bearer."""
    return {
        "create": actor.request("POST", PATH, asked_for(), token=bearer),
        "list": actor.request("GET", PATH, token=bearer),
        "rotate": actor.request("POST", f"{PATH}/{key['id']}/rotate", token=bearer),
        "revoke": actor.request("DELETE", f"{PATH}/{key['id']}", token=bearer),
    }


def test_a_key_with_the_scope_lists_and_revokes_but_cannot_create_keys(people: People):
    key, other = create(people.ada, scopes=["admin"]), create(people.ada)
    answers = managed_by(other, key["key"], people.ada)
    assert [answer.status_code for answer in answers.values()] == [403, 200, 403, 204]
    for refused in (answers["create"], answers["rotate"]):
        assert refused.json()["error"]["code"] == "user_required"
    # A budget of its own, and the user's is as it was.
    assert [limit_of(answer) for answer in answers.values()] == [(600, left) for left in range(599, 595, -1)]
    assert limit_of(people.ada.request("GET", PATH)) == (600, 597)


def test_a_key_without_the_scope_is_403_on_every_key_route(subtests: pytest.Subtests, world: World):
    for scopes in [[scope] for scope in SCOPES] + [SCOPES]:
        with subtests.test(scopes=scopes):
            ada = world.user(world.org(), role="admin")
            key, other = create(ada, scopes=scopes), create(ada)
            for number, answer in enumerate(managed_by(other, key["key"], ada).values(), start=1):
                assert_refused(answer, 403, "missing_scope")
                assert limit_of(answer) == (600, 600 - number), "what is refused is counted as well"
            assert len(listed(ada)) == 2


def test_the_bearer_scheme_is_case_insensitive_for_keys(people: People):
    key = create(people.ada, scopes=["admin"])["key"]
    for authorization in (f"Bearer {key}", f"bearer {key}", f"BEARER   {key}"):
        answer = httpx.get(f"{people.ada.stack.url}{PATH}", headers={"Authorization": authorization})
        assert answer.status_code == 200, authorization


def test_a_key_is_accepted_as_a_bearer_only(people: People):
    key = create(people.ada, scopes=["admin"])["key"]
    url = f"{people.ada.stack.url}{PATH}"
    for headers in (
        {"Authorization": key},
        {"Authorization": f"Basic {key}"},
        {"apikey": key},
        {"x-api-key": key},
        {"Cookie": f"Authorization=Bearer {key}"},
    ):
        assert_refused(httpx.get(url, headers=headers), 401, "unauthorized")
    assert_refused(httpx.get(f"{url}?apikey={key}"), 401, "unauthorized")


SPOILED_KEYS: list[Callable[[str], str]] = [
    lambda key: key[:-1],
    lambda key: key + "A",
    lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
    lambda key: key.replace("mn_live_", "mn_test_"),
    lambda key: key.replace("mn_live_", "sk_"),
    lambda key: key.replace("mn_live_", ""),
    lambda key: key.swapcase(),
    lambda key: f"{key} {key}",
    lambda key: f"{key},{key}",
    hash_of,
    lambda key: f"mn_live_{hash_of(key)[:43]}",
    lambda _: UNKNOWN,
    lambda _: "mn_live_" + "'" * 43,
]


def test_an_altered_key_is_401_without_a_reason(subtests: pytest.Subtests, people: People):
    for spoil in SPOILED_KEYS:
        with subtests.test(key=spoil(UNKNOWN)):
            key = create(people.ada, scopes=["admin"])["key"]
            answer = people.ada.request("GET", PATH, token=spoil(key))
            assert_refused(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert spoil(key) not in answer.text
            assert not set(answer.headers) & set(LIMIT_HEADERS)


def test_unknown_revoked_and_expired_keys_get_the_same_error(people: People, world: World):
    revoked, expired = create(people.ada, scopes=["admin"]), create(people.ada, scopes=["admin"])
    people.ada.request("DELETE", f"{PATH}/{revoked['id']}")
    world.sql("update rag.api_keys set expires_at = now() where id = %s", expired["id"])
    answers = [
        people.ada.request("GET", PATH, token=key) for key in (revoked["key"], expired["key"], UNKNOWN)
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1


RAG_ROUTES = (
    "/api/rag/search",
    "/api/rag/answer",
    "/functions/v1/rag-search",
    "/functions/v1/rag-answer",
)


def test_the_rag_contract_accepts_no_key(subtests: pytest.Subtests, people: People, world: World):
    for route in RAG_ROUTES:
        with subtests.test(route=route):
            key = create(people.ada, scopes=["admin"])
            answer = people.ada.request("POST", route, {"query_text": "x"}, token=key["key"])
            assert_refused(answer, 401, "unauthorized")
            assert key["key"] not in answer.text
            assert key_row(world, key, "last_used_at") == (None,), "nor does it look it up"


def test_the_last_use_of_a_key_is_recorded(people: People, world: World):
    key = create(people.ada, scopes=["admin"])
    assert listed(people.ada)[0]["last_used_at"] is None
    listed(people.ada, key["key"])
    assert key_row(world, key, "last_used_at > now() - interval '1 minute'") == (True,)


def test_a_key_whose_owner_left_the_org_loses_access_at_once(people: People, world: World):
    """Also one that was exchanged a moment ago: row security asks the memberships each time."""
    key = create(people.ada, scopes=["admin"])
    assert len(listed(people.ada, key["key"])) == 1
    world.sql("delete from rag.members where user_id = %s", people.ada.id)
    assert listed(people.ada, key["key"]) == []
    answers = managed_by(key, key["key"], people.ada)
    assert [answer.status_code for answer in answers.values()] == [404, 200, 404, 404]
    assert key_row(world, key, "revoked_at") == (None,)


def test_a_key_of_a_former_admin_lists_only_the_owner_s_keys(people: People, world: World):
    key = create(people.ada, scopes=["admin"])
    create(people.ann)
    assert len(listed(people.ada, key["key"])) == 2
    world.sql("update rag.members set role = 'member' where user_id = %s", people.ada.id)
    assert [row["id"] for row in listed(people.ada, key["key"])] == [key["id"]]
    answer = people.ada.request("POST", PATH, asked_for(scopes=["admin"]), token=key["key"])
    assert_refused(answer, 403, "admin_required")


def test_rate_limit_headers_report_the_key_s_own_limit(people: People, world: World):
    key = create(people.ada, scopes=["admin"])
    world.sql("update rag.api_keys set requests_per_minute = 2 where id = %s", key["id"])
    answers = [people.ada.request("GET", PATH, token=key["key"]) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [limit_of(answer) for answer in answers] == [(2, 1), (2, 0), (2, 0)]
    assert limit_of(people.ada.request("GET", PATH)) == (600, 598)


# -- the exchange -------------------------------------------------------------------------------------


@pytest.fixture
def ring(services: Services) -> ApiKeyAuthenticator:
    """A process that has seen no key yet."""
    signer = signer_for(services.settings)
    assert signer
    return ApiKeyAuthenticator(services.database, signer)


class Clock:
    """The wall clock's, until the test sets it."""

    offset = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def clocked_ring(services: Services, clock: Clock) -> ApiKeyAuthenticator:
    """The same with that clock."""
    assert services.signer
    return ApiKeyAuthenticator(services.database, services.signer, clock=clock)


def test_a_key_is_exchanged_for_a_one_minute_token_with_its_rights(
    people: People, ring: ApiKeyAuthenticator, world: World
):
    people.ann.put([vector(1)], collection="manuals")
    key = create(people.ann, scopes=["chat:read"], collection="manuals")
    principal = ring.principal(key["key"])
    assert (principal.user_id, principal.key_id) == (people.ann.id, key["id"])
    assert principal.scopes == frozenset({"chat:read"})
    claims = jwt.get_unverified_claims(principal.token)
    assert claims["sub"] == people.ann.id
    assert claims["role"] == "authenticated"
    assert claims["exp"] - claims["iat"] == 60
    assert str(claims["rag"]["collection"]) == str(key_row(world, key, "collection_id")[0])
    assert {**claims["rag"], "collection": None} == {
        "key": key["id"],
        "org": people.acme.id,
        "collection": None,
        "scopes": ["chat:read"],
        "requests_per_minute": None,
    }
    assert key["key"] not in repr(principal)
    assert principal.token not in repr(principal)


def test_a_token_never_outlives_its_key(people: People, ring: ApiKeyAuthenticator, world: World):
    key = create(people.ann)
    world.sql("update rag.api_keys set expires_at = now() + interval '20 seconds' where id = %s", key["id"])
    claims = jwt.get_unverified_claims(ring.principal(key["key"]).token)
    assert claims["exp"] - claims["iat"] <= 20


def test_a_cached_key_needs_no_look_up(people: People, settings: Settings):
    keys = [create(people.ann)["key"] for _ in range(2)]
    with (
        proxy_to(settings.supabase_url) as (address, requests),
        services_with(settings, supabase_url=address) as services,
    ):
        assert services.api_key_authenticator
        for key in keys * 3:
            services.api_key_authenticator.principal(key)
        assert requests == ["/rest/v1/rpc/rag_open_key"] * 2


def new_key_of(owner: Actor, key: str) -> str:
    """Make that text a key of the owner's; its id."""
    row = {"name": "k", "prefix": "mn_live_abcd", "hash": hash_of(key), "scopes": ["chat:read"]}
    body: str = owner.rpc("rag_create_key", row).json()[0]["id"]
    return body


def test_an_unknown_key_needs_a_look_up_each_time_and_is_not_cached(
    people: People, world: World, settings: Settings
):
    """Revoked and expired ones as well: constant work, and nothing that a flood of them could fill."""
    revoked, expired = create(people.ann), create(people.ann)
    people.ann.request("DELETE", f"{PATH}/{revoked['id']}")
    world.sql("update rag.api_keys set expires_at = now() where id = %s", expired["id"])
    unknown = "mn_live_" + "B" * 43
    with (
        proxy_to(settings.supabase_url) as (address, requests),
        services_with(settings, supabase_url=address) as services,
    ):
        assert services.api_key_authenticator
        for number, key in enumerate([unknown, revoked["key"], expired["key"], unknown], start=1):
            with pytest.raises(Unauthorized):
                services.api_key_authenticator.principal(key)
            assert requests == ["/rest/v1/rpc/rag_open_key"] * number
        # An unknown key that comes into being works at once.
        made_now = new_key_of(people.ann, unknown)
        assert services.api_key_authenticator.principal(unknown).key_id == made_now


def test_over_http_an_unknown_key_needs_one_look_up_and_a_malformed_key_none(settings: Settings):
    with (
        proxy_to(settings.supabase_url) as (address, requests),
        services_with(settings, supabase_url=address, supabase_jwt_issuer=settings.issuer) as services,
        client_of(api_keys.app, services) as client,
    ):
        for key in ("mn_live_short", UNKNOWN + "A", "x" * 51):
            assert client.get(PATH, headers={"Authorization": f"Bearer {key}"}).status_code == 401
        assert requests == []
        assert client.get(PATH, headers={"Authorization": f"Bearer {UNKNOWN}"}).status_code == 401
        assert requests == ["/rest/v1/rpc/rag_open_key"]


def test_a_revoked_key_stops_working_when_its_cache_entry_expires(
    people: People, clocked_ring: ApiKeyAuthenticator, clock: Clock
):
    """The time runs from the look-up, not from the last use."""
    key = create(people.ann)
    clocked_ring.principal(key["key"])
    people.ann.request("DELETE", f"{PATH}/{key['id']}")
    for offset in (0, CACHED_SECONDS / 2):
        clock.offset = offset
        clocked_ring.principal(key["key"])
    clock.offset = CACHED_SECONDS
    for _ in range(2):
        with pytest.raises(Unauthorized):
            clocked_ring.principal(key["key"])


def test_a_cache_entry_is_shorter_than_the_token_and_than_a_minute():
    assert 0 < api_key_authenticator.CACHED_SECONDS < LIFETIME_SECONDS <= 60


def test_a_key_expires_on_time_although_it_is_cached(
    people: People, clocked_ring: ApiKeyAuthenticator, clock: Clock, world: World
):
    key = create(people.ann)
    seconds = CACHED_SECONDS / 2
    expiry = "update rag.api_keys set expires_at = now() + make_interval(secs => %s) where id = %s"
    world.sql(expiry, seconds, key["id"])
    clocked_ring.principal(key["key"])
    world.sql(expiry, 0, key["id"])
    clocked_ring.principal(key["key"])
    clock.offset = seconds
    with pytest.raises(Unauthorized):
        clocked_ring.principal(key["key"])


def test_sixteen_threads_with_one_key_get_the_same_principal(people: People, ring: ApiKeyAuthenticator):
    key = create(people.ann)["key"]
    with ThreadPoolExecutor(16) as pool:
        principals = list(pool.map(lambda _: ring.principal(key), range(64)))
    assert {(one.user_id, one.key_id, one.scopes) for one in principals} == {
        (people.ann.id, ring.principal(key).key_id, frozenset({"retrievals:read"}))
    }


def test_threads_with_keys_of_several_owners_never_mix_them(people: People, ring: ApiKeyAuthenticator):
    owners = {create(actor)["key"]: actor.id for actor in (people.ann, people.alf, people.ada, people.bob)}
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda key: (key, ring.principal(key)), [*owners] * 16))
    for key, principal in ids:
        assert principal.user_id == owners[key]
        assert jwt.get_unverified_claims(principal.token)["sub"] == owners[key]


def test_a_full_cache_evicts_keys_and_looks_them_up_again(
    people: People, services: Services, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(api_key_authenticator, "CACHED_KEYS", 2)
    signer = signer_for(services.settings)
    assert signer
    small = ApiKeyAuthenticator(services.database, signer)
    keys = [create(people.ann) for _ in range(4)]
    for key in keys * 2:
        assert small.principal(key["key"]).key_id == key["id"]


@pytest.mark.usefixtures("short_pauses")
def test_a_database_outage_is_not_reported_as_an_invalid_key(settings: Settings):
    """A 500, and not a 401 after which a user would throw a good key away."""
    with (
        services_with(settings, supabase_url="http://127.0.0.1:9") as services,
        client_of(api_keys.app, services) as client,
    ):
        answer = client.get(PATH, headers={"Authorization": f"Bearer {UNKNOWN}"})
    assert_refused(answer, 500, "database_error")


# -- switched off -------------------------------------------------------------------------------------


@pytest.fixture
def keyless(settings: Settings) -> Iterator[Services]:
    """A deployment that verifies users' tokens and holds nothing to sign with."""
    with services_with(settings) as services:
        services.settings = settings.model_copy(update={"supabase_jwt_secret": None})
        yield services


def test_without_a_signing_key_users_can_only_list_and_revoke_keys(people: People, keyless: Services):
    key = create(people.ada, scopes=["admin"])
    user = {"Authorization": f"Bearer {people.ada.token()}"}
    bearer = {"Authorization": f"Bearer {key['key']}"}
    with client_of(api_keys.app, keyless) as client:
        assert_refused(client.post(PATH, json=asked_for(), headers=user), 503, "api_keys_off")
        assert_refused(client.post(f"{PATH}/{key['id']}/rotate", headers=user), 503, "api_keys_off")
        assert_refused(client.get(PATH, headers=bearer), 503, "api_keys_off")
        assert_refused(client.delete(f"{PATH}/{key['id']}", headers=bearer), 503, "api_keys_off")
        assert [row["id"] for row in client.get(PATH, headers=user).json()["keys"]] == [key["id"]]
        assert client.delete(f"{PATH}/{key['id']}", headers=user).status_code == 204
    assert len(listed(people.ada)) == 1


def test_without_a_signing_key_unauthenticated_requests_get_the_usual_error(keyless: Services):
    with client_of(api_keys.app, keyless) as client:
        assert_refused(client.get(PATH), 401, "unauthorized")
        assert_refused(client.get(PATH, headers={"Authorization": "Bearer x"}), 401, "unauthorized")


# Whether keys are on is asked before who asks, so a stranger is told, and nothing is counted.
def test_without_a_signing_key_an_unauthenticated_key_creation_is_401(keyless: Services):
    with client_of(api_keys.app, keyless) as client:
        assert_refused(client.post(PATH, json=asked_for()), 401, "unauthorized")
        assert_refused(client.post(f"{PATH}/{uuid4()}/rotate"), 401, "unauthorized")


# For the same reason a user's 503 says nothing of their limit.
def test_without_a_signing_key_an_error_still_has_rate_limit_headers(people: People, keyless: Services):
    with client_of(api_keys.app, keyless) as client:
        answer = client.post(
            PATH, json=asked_for(), headers={"Authorization": f"Bearer {people.ann.token()}"}
        )
    assert_refused(answer, 503, "api_keys_off")
    assert limit_of(answer) == (600, 599)


def test_a_key_is_looked_up_again_after_a_clock_change(
    subtests: pytest.Subtests, people: People, settings: Settings
):
    """A machine slept, or its clock was set back: an entry of before is old, since its token is."""
    for offset in [CACHED_SECONDS + 1, 3600.0, -60.0, -3600.0]:
        with subtests.test(offset=offset):
            key, clock = create(people.ann)["key"], Clock()
            with (
                proxy_to(settings.supabase_url) as (address, requests),
                services_with(settings, supabase_url=address) as services,
            ):
                assert services.signer
                ring = ApiKeyAuthenticator(services.database, services.signer, clock=clock)
                for _ in range(3):
                    ring.principal(key)
                assert len(requests) == 1
                clock.offset = offset
                ring.principal(key)
                assert len(requests) == 2


def test_a_signing_key_that_the_project_rejects_is_a_server_error(people: People, settings: Settings):
    key = create(people.ann)["key"]
    with services_with(settings) as services:
        stranger = Signer("a secret of another project, long enough", settings.issuer, "authenticated")
        with pytest.raises(DatabaseFailed) as refused:
            ApiKeyAuthenticator(services.database, stranger).principal(key)
        assert refused.value.log_reason == UNTRUSTED


def test_a_refused_credential_names_what_the_route_takes(subtests: pytest.Subtests, people: People):
    key = create(people.ada, scopes=["admin"])["key"]
    cases = {
        ("GET", PATH, "mn_live_wrong"): "A valid user token or API key is required: "
        "Authorization: Bearer <JWT or API key>.",
        ("POST", "/api/rag/search", key): "This route takes no API keys. Send a signed-in user's token.",
    }
    for (method, path, token), message in cases.items():
        with subtests.test(path=path):
            answer = people.ada.request(method, path, {"query_text": "kettle"}, token=token)
            assert (answer.status_code, answer.json()["error"]["message"]) == (401, message)


def test_an_invalid_row_of_a_new_key_raises_an_error_without_its_text():
    with pytest.raises(ValidationError) as raised:
        CreatedKey.model_validate({"key": "mn_live_text"})
    assert "mn_live_text" not in str(raised.value)
