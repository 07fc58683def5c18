"""API keys in SQL: made for oneself, shown without their hash, rotated once, revoked for good, and opened by
the functions alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from local import access_tokens
from shared.access.token_signer import Signer
from tests.actors import Actor, World, key_arguments, vector
from tests.conftest import People
from tests.process_faults import wait_for_waiters
from tests.sql.sql_as_user import become

LISTED_FIELDS = {
    "id", "org_id", "owner_id", "name", "prefix", "scopes", "collection", "created_at", "expires_at",
    "last_used_at", "revoked_at",
}  # fmt: skip
LONG_AGO = "2020-01-01T00:00:00Z"


def rows(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()
    return results


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["details"]


def created(actor: Actor, digest: str | None = None, **more: Any) -> dict[str, Any]:
    arguments = key_arguments(**({"hash": digest} if digest else {}), **more)
    (row,) = rows(actor.rpc("rag_create_key", arguments))
    return row


def rotation(key_id: str, **more: Any) -> dict[str, Any]:
    new = key_arguments()
    return {"key_id": key_id, "prefix": "mn_live_wxyz", "hash": new["hash"], **more}


def list_keys(actor: Actor, **arguments: Any) -> list[dict[str, Any]]:
    return rows(actor.rpc("rag_list_keys", arguments))


def finder(actor: Actor, digest: Any) -> str:
    """The token by which the functions look a key up."""
    stack = actor.stack
    signer = Signer(stack.state.jwt_secret, access_tokens.issuer(stack.url), access_tokens.AUDIENCE)
    return signer.token(10, rag={"key_hash": digest})


def open_key(actor: Actor, digest: Any) -> list[dict[str, Any]]:
    return rows(actor.rpc("rag_open_key", token=finder(actor, digest)))


def stored(world: World, actor: Actor) -> int:
    ((number,),) = world.sql("select count(*) from rag.api_keys where owner_id = %s", actor.id)
    return int(number)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def about(text: str, expected: datetime) -> bool:
    return abs(moment(text) - expected) < timedelta(seconds=30)


def fresh() -> str:
    return str(key_arguments()["hash"])


# -- create -------------------------------------------------------------------------------------------


def test_a_private_collection_takes_precedence_over_the_org_s(people: People, world: World):
    for owner in (None, people.ann.id):
        statement = "insert into rag.collections (org_id, owner_id, name) values (%s, %s, 'notes')"
        world.sql(statement, people.acme.id, owner)
    bound = "select c.owner_id::text from rag.api_keys k join rag.collections c on c.id = k.collection_id"
    for actor, owner in ((people.ann, people.ann.id), (people.alf, None)):
        key = created(actor, collection="notes")
        assert world.sql(f"{bound} where k.id = %s", key["id"]) == [(owner,)]


OUT_OF_BOUNDS: list[dict[str, Any]] = [
    {"name": ""}, {"name": "x" * 101}, {"name": "a\u202eb"}, {"name": None}, {"prefix": None},
    {"prefix": "mn_live_"}, {"prefix": "mn_live_abcde"}, {"prefix": "mn_other_abcd"},
    {"prefix": "MN_LIVE_abcd"}, {"hash": "a" * 65}, {"hash": "g" * 64}, {"hash": "a" * 64 + "\n"},
    {"scopes": []}, {"scopes": None}, {"scopes": ["documents:read", "x"]}, {"scopes": ["Documents:read"]},
    # cardinality() and <@ look through dimensions, and no list could show such a key.
    {"scopes": [["documents:read"]]}, {"expires_at": LONG_AGO}, {"expires_at": "-infinity"},
    {"expires_at": "infinity"}, {"expires_at": "20000-01-01T00:00:00Z"},
]  # fmt: skip


def test_a_value_out_of_bounds_creates_no_key(people: People, world: World):
    for fault in OUT_OF_BOUNDS:
        answer = people.ann.rpc("rag_create_key", key_arguments(**fault))
        assert answer.status_code == 400, (fault, answer.text)
    assert stored(world, people.ann) == 0


def test_a_known_hash_creates_no_second_key_and_reveals_nothing(people: People, world: World):
    digest = fresh()
    first = created(people.bob, digest, name="bob's")
    answer = people.ann.rpc("rag_create_key", key_arguments(hash=digest))
    assert answer.status_code == 409
    for hidden in (first["id"], people.bob.id, people.bolt.id, "bob's"):
        assert hidden not in answer.text
    assert stored(world, people.ann) == 0


def many(world: World, actor: Actor, number: int) -> None:
    """That many keys of this user's, at once."""
    assert actor.org
    world.sql(
        "insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes) "
        "select %s, %s, 'one of many', 'sk_abcd', encode(sha256(gen_random_uuid()::text::bytea), 'hex'), "
        "array['chat:read'] from generate_series(1, %s)",
        actor.org.id, actor.id, number,
    )  # fmt: skip


def test_a_user_has_at_most_a_hundred_active_keys(people: People, world: World):
    many(world, people.ann, 99)
    last = created(people.ann)
    assert refusal(people.ann.rpc("rag_create_key", key_arguments())) == (400, "too_many_keys")
    assert created(people.alf)["owner_id"] == people.alf.id, "each has a hundred of their own"
    assert rows(people.ann.rpc("rag_revoke_key", {"key_id": last["id"]}))
    created(people.ann)
    assert refusal(people.ann.rpc("rag_create_key", key_arguments())) == (400, "too_many_keys")


def create_in(connection: psycopg.Connection[Any], actor: Actor) -> str | None:
    """The SQLSTATE that making a key ended with, in a transaction that stays open."""
    become(connection, actor)
    try:
        statement = "select public.rag_create_key(%(name)s, %(prefix)s, %(hash)s, %(scopes)s)"
        connection.execute(statement, key_arguments())
    except psycopg.DatabaseError as refused:
        return refused.sqlstate
    return None


# Both count 99 before either is there.
def test_concurrent_creations_respect_the_limit_of_a_hundred_keys(people: People, world: World):
    many(world, people.ann, 99)
    url = world.stack.database_url()
    with psycopg.connect(url) as one, psycopg.connect(url) as two, ThreadPoolExecutor(1) as pool:
        assert create_in(one, people.ann) is None
        second = pool.submit(create_in, two, people.ann)
        wait_for_waiters(world.stack, 1)
        one.commit()
        assert second.result() == "PT400"
        two.rollback()
    assert stored(world, people.ann) == 100


def test_the_scope_admin_needs_an_admin_of_that_org(people: People, world: World):
    assert created(people.ada, scopes=["admin"])["scopes"] == ["admin"]
    world.sql("insert into rag.members values (%s, %s, 'member')", people.bolt.id, people.ada.id)
    for actor, org in ((people.ann, people.acme), (people.kim, people.acme), (people.ada, people.bolt)):
        for scopes in (["admin"], ["documents:read", "admin"]):
            answer = actor.rpc("rag_create_key", key_arguments(scopes=scopes, org_id=org.id))
            assert refusal(answer) == (403, "admin_required")
    assert stored(world, people.ann) == stored(world, people.kim) == 0
    assert stored(world, people.ada) == 1


def test_keys_cannot_be_created_for_others_in_sql(people: People, world: World):
    insertion = (
        "insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes) "
        "values (%s, %s, 'x', 'sk_abcd', %s, array['admin'])"
    )
    for actor in (people.ada, people.alf):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(actor, insertion, people.acme.id, people.ann.id, fresh())


# -- list ---------------------------------------------------------------------------------------------


def test_active_keys_come_first_and_then_the_newest(people: People, world: World):
    names = ["revoked", "old", "expired", "new"]
    keys = {name: created(people.ann, name=name, expires_at="2999-01-01T00:00:00Z")["id"] for name in names}
    made = "update rag.api_keys set created_at = now() - make_interval(days => %s) where id = %s"
    for age, name in enumerate(reversed(names)):
        world.sql(made, age, keys[name])
    people.ann.rpc("rag_revoke_key", {"key_id": keys["revoked"]})
    world.sql("update rag.api_keys set expires_at = %s where id = %s", LONG_AGO, keys["expired"])
    assert [key["name"] for key in list_keys(people.ann)] == ["new", "old", "expired", "revoked"]


# -- rotate -------------------------------------------------------------------------------------------


def test_a_rotated_key_ends_at_once_and_the_new_one_has_the_same_rights(people: People, world: World):
    people.ann.put([vector(1)], collection="manuals")
    before, after = fresh(), fresh()
    old = created(people.ann, before, name="CI", scopes=["chat:read"], collection="manuals")
    world.sql("update rag.api_keys set requests_per_minute = 7 where id = %s", old["id"])
    (new,) = rows(people.ann.rpc("rag_rotate_key", rotation(old["id"], hash=after)))
    assert set(new) == LISTED_FIELDS
    assert {**new, "id": 0, "prefix": 0, "created_at": 0} == {**old, "id": 0, "prefix": 0, "created_at": 0}
    assert new["id"] != old["id"]
    assert new["prefix"] == "mn_live_wxyz"
    (ended,) = list_keys(people.ann, key_id=old["id"])
    assert about(ended["revoked_at"], datetime.now(UTC))
    assert open_key(people.ann, before) == []
    (key,) = open_key(people.ann, after)
    assert (key["key_id"], key["requests_per_minute"]) == (new["id"], 7)


def test_an_overlap_never_extends_the_old_key(people: People):
    soon = datetime.now(UTC) + timedelta(minutes=5)
    old = created(people.ann, expires_at=soon.isoformat())
    rows(people.ann.rpc("rag_rotate_key", rotation(old["id"], overlap_seconds=604_800)))
    (ending,) = list_keys(people.ann, key_id=old["id"])
    assert moment(ending["expires_at"]) == soon


def test_a_lifetime_restarts_at_the_rotation(people: People, world: World):
    old = created(people.ann, expires_at=(datetime.now(UTC) + timedelta(days=30)).isoformat())
    earlier = "created_at = created_at - interval '10 days', expires_at = expires_at - interval '10 days'"
    world.sql(f"update rag.api_keys set {earlier} where id = %s", old["id"])
    (new,) = rows(people.ann.rpc("rag_rotate_key", rotation(old["id"])))
    assert about(new["expires_at"], datetime.now(UTC) + timedelta(days=30))


FAULTS: list[dict[str, Any]] = [
    *({"overlap_seconds": overlap} for overlap in (-1, 604_801, None, -(2**31), 2**31 - 1)), {"prefix": "x"},
    {"hash": "x"},
]  # fmt: skip


def test_a_failed_rotation_leaves_the_old_key_unchanged(people: People):
    old = created(people.ann)
    before = list_keys(people.ann)
    for fault in FAULTS:
        status, code = refusal(people.ann.rpc("rag_rotate_key", rotation(old["id"], **fault)))
        assert status == 400, fault
        assert "overlap_seconds" not in fault or code == "invalid_overlap", fault
        assert list_keys(people.ann) == before, fault


def rotated_at_once(actor: Actor, key_id: str, overlap_seconds: int, times: int) -> list[int]:
    """The statuses of that many rotations from as many threads."""
    barrier = threading.Barrier(times)

    def rotate(_: int) -> int:
        barrier.wait()
        return actor.rpc("rag_rotate_key", rotation(key_id, overlap_seconds=overlap_seconds)).status_code

    with ThreadPoolExecutor(times) as pool:
        return sorted(pool.map(rotate, range(times)))


# With an overlap the old key is not ended, so a second rotation finds it again.
@pytest.mark.parametrize(("overlap_seconds", "active"), [(0, 1), (3600, 2)])
def test_concurrent_rotations_create_one_new_key(people: People, overlap_seconds: int, active: int):
    key = created(people.ann)
    assert rotated_at_once(people.ann, key["id"], overlap_seconds, 8) == [200] + [404] * 7
    assert sum(row["revoked_at"] is None for row in list_keys(people.ann)) == active


def test_rotations_respect_the_limit_of_keys(people: People, world: World):
    """Always the newest: with an overlap its predecessors go on."""
    many(world, people.ann, 97)
    newest = created(people.ann)["id"]
    answers = []
    for _ in range(4):
        answers.append(people.ann.rpc("rag_rotate_key", rotation(newest, overlap_seconds=604_800)))
        newest = answers[-1].json()[0]["id"] if answers[-1].status_code == 200 else newest
    assert [answer.status_code for answer in answers] == [200, 200, 400, 400]
    assert answers[-1].json()["details"] == "too_many_keys"
    assert stored(world, people.ann) == 100
    # Without an overlap the old one makes room.
    assert people.ann.rpc("rag_rotate_key", rotation(newest)).status_code == 200


# -- open ---------------------------------------------------------------------------------------------


def test_an_exchange_records_its_time_and_an_ended_key_has_none(people: People, world: World):
    for change in ("revoked_at = now()", "expires_at = now() - interval '1 day'", "expires_at = now()"):
        digest = fresh()
        key = created(people.ann, digest)["id"]
        assert len(open_key(people.ann, digest)) == 1
        (used,) = list_keys(people.ann, key_id=key)
        assert about(used["last_used_at"], datetime.now(UTC))
        world.sql(f"update rag.api_keys set last_used_at = null, {change} where id = %s", key)
        assert open_key(people.ann, digest) == []
        assert world.sql("select last_used_at from rag.api_keys where id = %s", key) == [(None,)]


NO_HASHES: list[Any] = [None, "", 7, [], "0" * 64]


def test_a_malformed_hash_claim_exchanges_nothing(people: People, world: World):
    own = fresh()
    key = created(people.ann, own)
    for digest in [*NO_HASHES, [own], {"hash": own}]:
        assert open_key(people.ann, digest) == [], digest
    assert world.sql("select last_used_at from rag.api_keys where id = %s", key["id"]) == [(None,)]


@pytest.mark.parametrize("gone", ["org", "owner", "collection"])
def test_a_key_is_deleted_with_its_org_owner_or_collection(people: People, world: World, gone: str):
    people.ann.put([vector(1)], collection="manuals")
    digest = fresh()
    created(people.ann, digest, collection="manuals")
    other = created(people.bob)
    statement, parameter = {
        "org": ("delete from rag.orgs where id = %s", people.acme.id),
        "owner": ("delete from auth.users where id = %s", people.ann.id),
        "collection": ("delete from rag.collections where org_id = %s", people.acme.id),
    }[gone]
    world.sql(statement, parameter)
    assert stored(world, people.ann) == 0
    assert open_key(people.bob, digest) == []
    assert list_keys(people.bob) == [other]
