"""The lifecycle of API keys over HTTP, and the exchange of a key for a token."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
from shared.access.token_signer import UNTRUSTED_KEY, Signer
from shared.api.contracts.api_keys import CreatedKey
from shared.config import Settings
from shared.errors import DatabaseFailed, Unauthorized
from shared.services import Services
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.functions.app_server import app_with, client_of, proxy_to, services_with

PATH = "/api/keys"
KEY_FIELDS = {
    "id", "org_id", "owner_id", "name", "prefix", "scopes", "collection", "created_at", "expires_at",
    "last_used_at", "revoked_at",
}  # fmt: skip
SCOPES = ["documents:read", "documents:write", "retrievals:read", "chat:read", "collections:manage"]
UNKNOWN = "mn_live_" + "A" * 43
LIMIT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def body_of(**more: Any) -> dict[str, Any]:
    return {"name": "CI", "scopes": ["retrievals:read"], **more}


def create(actor: Actor, *, token: str | None = None, **more: Any) -> dict[str, Any]:
    answer = actor.request("POST", PATH, body_of(**more), token=token)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def list_keys(actor: Actor, token: str | None = None) -> list[dict[str, Any]]:
    answer = actor.request("GET", PATH, token=token)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"keys"}
    results: list[dict[str, Any]] = answer.json()["keys"]
    return results


# Of httpx, or of the test client's own.
Response = Any


def assert_refused(answer: Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert answer.json() == {"status": "error", "error": {"code": code, "message": error["message"]}}
    assert error["message"]


def limit_of(answer: Response) -> tuple[int, int]:
    """The limit and what remains, as the headers say."""
    assert int(answer.headers["x-ratelimit-reset"]) > time.time() - 5
    return int(answer.headers["x-ratelimit-limit"]), int(answer.headers["x-ratelimit-remaining"])


def key_row(world: World, key: dict[str, Any], columns: str) -> tuple[Any, ...]:
    (row,) = world.sql(f"select {columns} from rag.api_keys where id = %s", key["id"])
    return row


def expire(world: World, key: dict[str, Any], seconds: float = 0) -> None:
    expiry = "update rag.api_keys set expires_at = now() + make_interval(secs => %s) where id = %s"
    world.sql(expiry, seconds, key["id"])


# -- making keys --------------------------------------------------------------------------------------


def test_a_new_key_is_returned_with_its_text_and_rights(people: People):
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    body = create(people.ann, name="  CI \n", scopes=SCOPES, expires_at=until.isoformat())
    assert set(body) == {*KEY_FIELDS, "key"}
    assert re.fullmatch(r"mn_live_[A-Za-z0-9_-]{43}", body["key"])
    assert body["prefix"] == body["key"][:12]
    assert (body["org_id"], body["owner_id"], body["name"]) == (people.acme.id, people.ann.id, "CI")
    assert (body["scopes"], body["collection"]) == (SCOPES, None)
    assert datetime.fromisoformat(body["expires_at"]) == until
    assert body["last_used_at"] is body["revoked_at"] is None


KINDS = {"live": "mn_live_", "test": "mn_test_", "admin": "mn_admin_", "sk": "sk_"}


def test_a_key_of_each_kind_works_and_rotates_into_the_same_kind(subtests: pytest.Subtests, people: People):
    for kind, beginning in KINDS.items():
        with subtests.test(kind=kind):
            key = create(people.ada, kind=kind, scopes=["admin"])
            rotation = people.ada.request("POST", f"{PATH}/{key['id']}/rotate")
            assert rotation.status_code == 201, rotation.text
            for text in (key["key"], rotation.json()["key"]):
                assert re.fullmatch(rf"{beginning}[A-Za-z0-9_-]{{43}}", text)
            assert key["prefix"] == key["key"][: len(beginning) + 4]
            assert key["id"] in {row["id"] for row in list_keys(people.ada, rotation.json()["key"])}
            # A kind grants nothing.
            powerless = create(people.ann, kind=kind)
            assert_refused(people.ann.request("GET", PATH, token=powerless["key"]), 403, "missing_scope")


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


def test_a_key_is_bound_to_an_org_and_a_collection_by_name(people: People):
    people.bob.put([vector(1)], collection="manuals")
    key = create(people.kim, org_id=people.bolt.id, collection="manuals")
    assert (key["org_id"], key["collection"]) == (people.bolt.id, "manuals")
    assert list_keys(people.kim)[0]["collection"] == "manuals"


def test_another_org_and_another_user_s_collection_are_404_like_missing_ones(people: People, world: World):
    people.bob.put([vector(1)], collection="of Bolt")
    own = "insert into rag.collections (org_id, owner_id, name) values (%s, %s, 'alf''s own')"
    world.sql(own, people.acme.id, people.alf.id)
    for org in (people.bolt.id, str(uuid4())):
        assert_refused(people.ann.request("POST", PATH, body_of(org_id=org)), 404, "org_not_found")
    # Not even for an admin, who sees the collection of alf's.
    for actor in (people.ann, people.ada):
        for name in ("of Bolt", "alf's own", "never created"):
            answer = actor.request("POST", PATH, body_of(collection=name))
            assert_refused(answer, 404, "collection_not_found")
    assert_refused(people.sam.request("POST", PATH, body_of()), 403, "no_org")
    assert_refused(people.kim.request("POST", PATH, body_of()), 400, "org_required")


# -- listing, rotating, revoking ----------------------------------------------------------------------


def test_with_an_overlap_both_keys_work_until_it_ends(people: People, world: World):
    old = create(people.ada, scopes=["admin"])
    body = {"overlap_seconds": 3600}
    new = people.ada.request("POST", f"{PATH}/{old['id']}/rotate", body).json()
    for key in (old, new):
        assert len(list_keys(people.ada, key["key"])) == 2
    end = key_row(world, old, "expires_at - now() between interval '59 minutes' and interval '60 minutes'")
    assert end == (True,)


OVERLAPS: list[tuple[Any, int]] = [
    (None, 201), ({"overlap_seconds": 0}, 201), ({"overlap_seconds": 604_800}, 201),
    # A misspelled overlap would end the old key at once.
    ({"overlap": 3600}, 400), *(({"overlap_seconds": bad}, 400) for bad in (-1, 604_801, "60", None)),
]  # fmt: skip


def test_a_rotation_takes_an_overlap_of_up_to_a_week(subtests: pytest.Subtests, people: People, world: World):
    for body, status in OVERLAPS:
        with subtests.test(body=body):
            key = create(people.ann)
            answer = people.ann.request("POST", f"{PATH}/{key['id']}/rotate", body)
            assert answer.status_code == status, answer.text
            if status == 400:
                assert_refused(answer, 400, "invalid_request")
                assert answer.json()["error"]["message"].startswith(f"{next(iter(body))}: ")
                assert key_row(world, key, "revoked_at, expires_at") == (None, None)


def test_a_revoked_key_stops_working_and_revocation_is_idempotent(people: People, world: World):
    key = create(people.ada, scopes=["admin"])
    ends = set()
    for _ in range(2):
        answer = people.ada.request("DELETE", f"{PATH}/{key['id']}")
        assert (answer.status_code, answer.content) == (204, b"")
        ends.add(key_row(world, key, "revoked_at"))
    assert len(ends) == 1
    assert ends != {(None,)}
    assert_refused(people.ada.request("GET", PATH, token=key["key"]), 401, "unauthorized")


def test_an_admin_can_revoke_but_not_rotate_a_member_s_key(people: People, world: World):
    """Rotation would put a key that acts as the member into the admin's hands."""
    keys = [create(people.ann), create(people.alf)]
    assert_refused(people.ada.request("POST", f"{PATH}/{keys[0]['id']}/rotate"), 404, "key_not_found")
    world.sql("delete from rag.members where user_id = %s", people.alf.id)
    for key in keys:
        assert people.ada.request("DELETE", f"{PATH}/{key['id']}").status_code == 204
        assert key_row(world, key, "revoked_at is not null") == (True,)


def test_keys_of_others_missing_keys_and_ended_keys_are_404(people: People, world: World):
    key, revoked, expired = (create(people.ann) for _ in range(3))
    people.ann.request("DELETE", f"{PATH}/{revoked['id']}")
    expire(world, expired)
    strangers = [(actor, key["id"]) for actor in (people.alf, people.bob)]
    for method, path, rows in (
        ("POST", "/rotate", [(people.ann, revoked["id"]), (people.ann, expired["id"])]),
        ("DELETE", "", []),
    ):
        texts = set()
        for actor, key_id in [*strangers, (people.ann, str(uuid4())), *rows]:
            answer = actor.request(method, f"{PATH}/{key_id}{path}")
            assert_refused(answer, 404, "key_not_found")
            texts.add(answer.text)
        assert len(texts) == 1
    assert key_row(world, key, "revoked_at") == (None,)


# -- the frame of every response ----------------------------------------------------------------------


def test_every_authenticated_response_has_rate_limit_headers(people: People):
    key = create(people.ann)
    for number, (status, method, path, body) in enumerate((
        (201, "POST", "", body_of()), (200, "GET", "", None), (400, "POST", "", {}),
        (403, "POST", "", body_of(scopes=["admin"])), (404, "POST", "", body_of(org_id=str(uuid4()))),
        (201, "POST", f"/{key['id']}/rotate", None), (204, "DELETE", f"/{key['id']}", None),
        (404, "DELETE", f"/{uuid4()}", None), (400, "DELETE", "/%00", None), (400, "POST", "/x/rotate", None),
    )):  # fmt: skip
        answer = people.ann.request(method, PATH + path, body)
        assert (answer.status_code, limit_of(answer)) == (status, (600, 598 - number))
        assert answer.headers["x-request-id"]


def test_a_request_over_the_limit_is_429_and_changes_nothing(people: People, world: World):
    world.tier(people.acme, api=2)
    key = create(people.ann)
    people.ann.request("GET", PATH)
    for method, path in (("POST", PATH), ("GET", PATH), ("DELETE", f"{PATH}/{key['id']}")):
        answer = people.ann.request(method, path, body_of() if method == "POST" else None)
        assert_refused(answer, 429, "rate_limited")
        assert limit_of(answer) == (2, 0)
        assert 1 <= int(answer.headers["retry-after"]) <= 61
    assert key_row(world, key, "revoked_at") == (None,)
    assert people.alf.request("GET", PATH).status_code == 200


# -- a key as a bearer --------------------------------------------------------------------------------


def managed_by(key: dict[str, Any], bearer: str, actor: Actor) -> dict[str, httpx.Response]:
    """What each route that takes keys answers to this bearer."""
    return {
        "create": actor.request("POST", PATH, body_of(), token=bearer),
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
    # They count for the user, whose two requests created the keys.
    assert [limit_of(answer) for answer in answers.values()] == [(600, left) for left in range(597, 593, -1)]
    assert limit_of(people.ada.request("GET", PATH)) == (600, 593)


def test_a_key_is_accepted_as_a_bearer_only(people: People):
    key = create(people.ada, scopes=["admin"])["key"]
    for status, name, value in (
        (200, "Authorization", f"bearer {key}"), (200, "Authorization", f"BEARER   {key}"),
        (401, "Authorization", key), (401, "Authorization", f"Basic {key}"),
        (401, "apikey", key), (401, "x-api-key", key), (401, "Cookie", f"Authorization=Bearer {key}"),
    ):  # fmt: skip
        answer = httpx.get(f"{people.ada.stack.url}{PATH}?apikey={key}", headers={name: value})
        assert answer.status_code == status, (name, value)


def test_an_altered_unknown_revoked_or_expired_key_is_401_without_a_reason(people: People, world: World):
    key, revoked, expired = (create(people.ada, scopes=["admin"]) for _ in range(3))
    people.ada.request("DELETE", f"{PATH}/{revoked['id']}")
    expire(world, expired)
    text = key["key"]
    ended = (UNKNOWN, revoked["key"], expired["key"])
    answers = {}
    for bearer in (text[:-1], text + "A", text.replace("mn_live_", "sk_"), f"{text} {text}", *ended):
        answer = people.ada.request("GET", PATH, token=bearer)
        assert_refused(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert bearer not in answer.text
        assert not set(answer.headers) & set(LIMIT_HEADERS), "it costs no quota"
        answers[bearer] = answer.text
    assert len({answers[bearer] for bearer in ended}) == 1


def test_a_key_whose_owner_left_the_org_loses_access_at_once(people: People, world: World):
    """Also one that was exchanged a moment ago: row security asks the memberships each time."""
    key = create(people.ada, scopes=["admin"])
    assert len(list_keys(people.ada, key["key"])) == 1
    world.sql("delete from rag.members where user_id = %s", people.ada.id)
    answers = managed_by(key, key["key"], people.ada)
    assert [answer.status_code for answer in answers.values()] == [403] * 4
    assert key_row(world, key, "revoked_at") == (None,)


def test_a_key_of_a_former_admin_lists_only_the_owner_s_keys(people: People, world: World):
    key = create(people.ada, scopes=["admin"])
    create(people.ann)
    assert len(list_keys(people.ada, key["key"])) == 2
    world.sql("update rag.members set role = 'member' where user_id = %s", people.ada.id)
    assert [row["id"] for row in list_keys(people.ada, key["key"])] == [key["id"]]
    answer = people.ada.request("POST", PATH, body_of(scopes=["admin"]), token=key["key"])
    assert_refused(answer, 403, "admin_required")


def test_rate_limit_headers_report_the_key_s_own_limit(people: People, world: World):
    key = create(people.ada, scopes=["admin"])
    world.sql("update rag.api_keys set requests_per_minute = 2 where id = %s", key["id"])
    answers = [people.ada.request("GET", PATH, token=key["key"]) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [limit_of(answer) for answer in answers] == [(2, 1), (2, 0), (2, 0)]
    # They count for the user, too.
    assert limit_of(people.ada.request("GET", PATH)) == (600, 596)


# -- the exchange -------------------------------------------------------------------------------------


@dataclass
class Clock:
    """The wall clock's, until the test sets it."""

    offset: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset


@dataclass
class Process:
    """A process that has seen no key yet, and its calls of the database."""

    ring: ApiKeyAuthenticator
    clock: Clock
    requests: list[str]


@pytest.fixture
def process(settings: Settings) -> Iterator[Process]:
    proxy, clock = proxy_to(settings.supabase_url), Clock()
    with proxy as (address, requests), services_with(settings, supabase_url=address) as services:
        assert services.signer
        yield Process(ApiKeyAuthenticator(services.database, services.signer, clock=clock), clock, requests)


def test_a_key_is_exchanged_for_a_one_minute_token_with_its_rights(
    people: People, process: Process, world: World
):
    people.ann.put([vector(1)], collection="manuals")
    key = create(people.ann, scopes=["chat:read"], collection="manuals")
    principal = process.ring.principal(key["key"])
    assert (principal.user_id, principal.key_id) == (people.ann.id, key["id"])
    assert principal.scopes == frozenset({"chat:read"})
    claims = jwt.get_unverified_claims(principal.token)
    assert (claims["sub"], claims["role"]) == (people.ann.id, "authenticated")
    assert claims["exp"] - claims["iat"] == 60
    assert claims["rag"] == {
        "key": key["id"], "org": people.acme.id, "collection": str(key_row(world, key, "collection_id")[0]),
        "scopes": ["chat:read"], "requests_per_minute": None,
    }  # fmt: skip
    assert key["key"] not in repr(principal)
    assert principal.token not in repr(principal)


def test_a_token_never_outlives_its_key(people: People, process: Process, world: World):
    key = create(people.ann)
    expire(world, key, 20)
    claims = jwt.get_unverified_claims(process.ring.principal(key["key"]).token)
    assert claims["exp"] - claims["iat"] <= 20


def test_an_unknown_key_needs_a_look_up_each_time_and_is_not_cached(
    people: People, world: World, process: Process
):
    """Revoked and expired ones as well: constant work, and nothing that a flood of them could fill."""
    revoked, expired = create(people.ann), create(people.ann)
    people.ann.request("DELETE", f"{PATH}/{revoked['id']}")
    expire(world, expired)
    unknown = "mn_live_" + "B" * 43
    for number, key in enumerate([unknown, revoked["key"], expired["key"], unknown], start=1):
        with pytest.raises(Unauthorized):
            process.ring.principal(key)
        assert process.requests == ["/rest/v1/rpc/rag_open_key"] * number
    # An unknown key that comes into being works at once.
    row = {"name": "k", "prefix": "mn_live_abcd", "hash": hash_of(unknown), "scopes": ["chat:read"]}
    key_id = people.ann.rpc("rag_create_key", row).json()[0]["id"]
    assert process.ring.principal(unknown).key_id == key_id


def test_over_http_an_unknown_key_needs_one_look_up_and_a_malformed_key_none(settings: Settings):
    with (
        proxy_to(settings.supabase_url) as (address, requests),
        app_with(api_keys.app, settings, supabase_url=address, supabase_jwt_issuer=settings.issuer) as client,
    ):
        for key in ("mn_live_short", UNKNOWN + "A", "x" * 51):
            assert client.get(PATH, headers={"Authorization": f"Bearer {key}"}).status_code == 401
        assert requests == []
        assert client.get(PATH, headers={"Authorization": f"Bearer {UNKNOWN}"}).status_code == 401
        assert requests == ["/rest/v1/rpc/rag_open_key"]


def test_a_revoked_key_stops_working_when_its_cache_entry_expires(people: People, process: Process):
    """The time runs from the look-up, not from the last use."""
    key = create(people.ann)
    process.ring.principal(key["key"])
    people.ann.request("DELETE", f"{PATH}/{key['id']}")
    for process.clock.offset in (0, CACHED_SECONDS / 2):
        process.ring.principal(key["key"])
    process.clock.offset = CACHED_SECONDS
    for _ in range(2):
        with pytest.raises(Unauthorized):
            process.ring.principal(key["key"])


def test_a_key_expires_on_time_although_it_is_cached(people: People, process: Process, world: World):
    key = create(people.ann)
    for seconds in (CACHED_SECONDS / 2, 0):
        expire(world, key, seconds)
        process.ring.principal(key["key"])
    process.clock.offset = CACHED_SECONDS / 2
    with pytest.raises(Unauthorized):
        process.ring.principal(key["key"])


def test_threads_with_keys_of_several_owners_never_mix_them(people: People, process: Process):
    owners = {create(actor)["key"]: actor.id for actor in (people.ann, people.alf, people.ada, people.bob)}
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda key: (key, process.ring.principal(key)), [*owners] * 16))
    for key, principal in ids:
        assert principal.user_id == jwt.get_unverified_claims(principal.token)["sub"] == owners[key]


def test_a_full_cache_evicts_keys_and_looks_them_up_again(
    people: People, services: Services, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(api_key_authenticator, "CACHED_KEYS", 1)
    assert services.signer
    small = ApiKeyAuthenticator(services.database, services.signer)
    keys = [create(people.ann) for _ in range(2)]
    for key in keys * 2:
        assert small.principal(key["key"]).key_id == key["id"]
        assert len(small._sessions) == 1


@pytest.mark.usefixtures("short_pauses")
def test_a_database_outage_is_not_reported_as_an_invalid_key(settings: Settings):
    """A 500, and not a 401 after which a user would throw a good key away."""
    gone = services_with(settings, supabase_url="http://127.0.0.1:9")
    with gone as services, client_of(api_keys.app, services) as client:
        answer = client.get(PATH, headers={"Authorization": f"Bearer {UNKNOWN}"})
    assert_refused(answer, 500, "database_error")


# -- switched off -------------------------------------------------------------------------------------


def test_without_a_signing_key_users_can_only_list_and_revoke_keys(people: People, settings: Settings):
    """A deployment that verifies users' tokens and holds nothing to sign with."""
    key = create(people.ada, scopes=["admin"])
    user = {"Authorization": f"Bearer {people.ada.token()}"}
    bearer = {"Authorization": f"Bearer {key['key']}"}
    path = f"{PATH}/{key['id']}"
    with services_with(settings) as keyless, client_of(api_keys.app, keyless) as client:
        keyless.settings = settings.model_copy(update={"supabase_jwt_secret": None})
        for headers in ({}, {"Authorization": "Bearer x"}):
            assert_refused(client.get(PATH, headers=headers), 401, "unauthorized")
            assert_refused(client.post(PATH, json=body_of(), headers=headers), 401, "unauthorized")
        answer = client.post(PATH, json=body_of(), headers=user)
        assert limit_of(answer)[0] == 600
        rotation = client.post(f"{path}/rotate", headers=user)
        for refused in (
            answer,
            rotation,
            client.get(PATH, headers=bearer),
            client.delete(path, headers=bearer),
        ):
            assert_refused(refused, 503, "api_keys_off")
        assert [row["id"] for row in client.get(PATH, headers=user).json()["keys"]] == [key["id"]]
        assert client.delete(path, headers=user).status_code == 204
    assert len(list_keys(people.ada)) == 1


def test_a_key_is_looked_up_again_after_a_clock_change(people: People, process: Process):
    """A machine slept, or its clock was set back: an entry of before is old, since its token is."""
    for offset in [CACHED_SECONDS + 1, 3600.0, -60.0, -3600.0]:
        key, process.clock.offset = create(people.ann)["key"], 0.0
        del process.requests[:]
        for clock_offset, calls in ((0.0, 1), (0.0, 1), (0.0, 1), (offset, 2)):
            process.clock.offset = clock_offset
            process.ring.principal(key)
            assert len(process.requests) == calls, offset


def test_a_signing_key_that_the_project_rejects_is_a_server_error(
    people: People, services: Services, settings: Settings
):
    key = create(people.ann)["key"]
    stranger = Signer("a secret of another project, long enough", settings.issuer, "authenticated")
    with pytest.raises(DatabaseFailed) as refused:
        ApiKeyAuthenticator(services.database, stranger).principal(key)
    assert refused.value.log_reason == UNTRUSTED_KEY


def test_an_invalid_row_of_a_new_key_raises_an_error_without_its_text():
    with pytest.raises(ValidationError) as raised:
        CreatedKey.model_validate({"key": "mn_live_text"})
    assert "mn_live_text" not in str(raised.value)
