"""Attacks on kept replies: what somebody else was answered, and what they will be."""

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.actors import Actor, World
from tests.conftest import People

HASH, BODY, OTHER = "a" * 64, "b" * 64, "c" * 64
SECRET = {"answer": "ACME-4417"}


def claim(actor: Actor, org_id: str, token: str | None = None, body: str = BODY) -> tuple[int, Any]:
    arguments = {"org_id": org_id, "key_hash": HASH, "body_hash": body, "lease_seconds": 60}
    answer = actor.rpc("rag_claim_reply", arguments, token=token)
    return answer.status_code, answer.json()[0] if answer.status_code == 200 else answer.json()["details"]


def keep(actor: Actor, org_id: str, held: str, token: str | None = None, **more: Any) -> Any:
    arguments = {"org_id": org_id, "key_hash": HASH, "claim": held}
    body = {"status": 200, "body": json.dumps(SECRET), "request_id": "r", **more}
    return actor.rpc("rag_keep_reply", arguments | body, token=token).json()


def answered(actor: Actor, org_id: str, token: str | None = None) -> None:
    """The secret, kept for whoever that is."""
    _, found = claim(actor, org_id, token)
    assert keep(actor, org_id, found["claim"], token) is True
    assert claim(actor, org_id, token)[1]["body"] == SECRET


def others(people: People) -> dict[str, Actor]:
    return {"a member of her org": people.alf, "its admin": people.ada, "a member of both": people.kim}


everybody_else = pytest.mark.parametrize("who", ["a member of her org", "its admin", "a member of both"])


@everybody_else
def test_by_the_same_key_and_body(people: People, who: str):
    """Each has replies of their own, and cannot tell whether anybody else has any."""
    answered(people.ann, people.acme.id)
    status, found = claim(others(people)[who], people.acme.id)
    assert (status, found["outcome"], found["body"]) == (200, "go", None)
    assert claim(people.ann, people.acme.id)[1]["body"] == SECRET


@pytest.mark.parametrize("who", ["another org", "a stranger"])
def test_by_another_org_s_id(people: People, who: str):
    attacker = {"another org": people.bob, "a stranger": people.sam}[who]
    answered(people.ann, people.acme.id)
    assert claim(attacker, people.acme.id) == (404, "org_not_found")
    assert claim(attacker, str(uuid4())) == (404, "org_not_found")


@everybody_else
def test_by_a_stolen_claim(people: People, who: str):
    """Whoever has it cannot say what she will be answered, nor take her claim away."""
    attacker = others(people)[who]
    _, found = claim(people.ann, people.acme.id)
    assert keep(attacker, people.acme.id, found["claim"], body="{}") is False
    arguments = {"org_id": people.acme.id, "key_hash": HASH, "claim": found["claim"]}
    assert attacker.rpc("rag_release_reply", arguments).json() is False
    assert claim(people.ann, people.acme.id)[1]["outcome"] == "busy"
    assert keep(people.ann, people.acme.id, found["claim"]) is True


def test_by_a_guessed_claim_of_one_s_own(people: People):
    claim(people.ann, people.acme.id)
    assert keep(people.ann, people.acme.id, str(uuid4())) is False


def test_a_kept_reply_is_not_changed(people: People):
    _, found = claim(people.ann, people.acme.id)
    keep(people.ann, people.acme.id, found["claim"])
    assert keep(people.ann, people.acme.id, found["claim"], body="{}") is False
    assert claim(people.ann, people.acme.id)[1]["body"] == SECRET


def test_by_another_api_key_of_the_same_user_or_the_user_s_own_token(people: People):
    one, other = (people.ann.key_token(key=str(uuid4()), scopes=["chat:read"]) for _ in range(2))
    answered(people.ann, people.acme.id, one)
    for token in (other, None):
        assert claim(people.ann, people.acme.id, token)[1]["outcome"] == "go"
    assert claim(people.ann, people.acme.id, one)[1]["body"] == SECRET
    assert claim(people.ann, people.acme.id, other, OTHER)[1]["outcome"] == "differs"


def test_with_a_key_bound_to_another_collection(people: People):
    """By a forged claim of the same key: what it is bound to never changes."""
    key = str(uuid4())
    bound, elsewhere = (people.ann.key_token(key=key, collection=str(uuid4())) for _ in range(2))
    answered(people.ann, people.acme.id, bound)
    status, found = claim(people.ann, people.acme.id, elsewhere)
    assert (status, found["outcome"], found["body"]) == (200, "busy", None)


def test_with_a_key_of_another_org(people: People):
    """kim belongs to both; her key to one."""
    answered(people.kim, people.bolt.id)
    assert claim(people.kim, people.bolt.id, people.kim.key_token()) == (404, "org_not_found")


@pytest.mark.parametrize(
    "scopes",
    [[], ["documents:read"], ["retrievals:read"], ["documents:write", "collections:manage"]],
    ids=str,
)
def test_with_a_key_without_a_scope_that_asks(people: People, world: World, scopes: list[str]):
    key = str(uuid4())
    token = people.ann.key_token(key=key, scopes=scopes)
    assert claim(people.ann, people.acme.id, token) == (403, "missing_scope")
    reading = people.ann.key_token(key=key, scopes=["chat:read"])
    answered(people.ann, people.acme.id, reading)
    rag = {"org": people.acme.id, "key": key, "scopes": scopes}
    assert world.as_user(people.ann, "select * from rag.replies", rag=rag) == []


@everybody_else
def test_straight_through_the_table(people: People, world: World, who: str):
    answered(people.ann, people.acme.id)
    attacker = others(people)[who]
    assert world.as_user(attacker, "select * from rag.replies") == []
    changes = "update rag.replies set body = '{}' returning 1"
    assert world.as_user(attacker, changes) == []
    assert world.as_user(attacker, "delete from rag.replies returning 1") == []
    assert len(world.as_user(people.ann, "select * from rag.replies")) == 1


@pytest.mark.parametrize(
    ("change", "detail"),
    [({"lease_seconds": 0}, "invalid_lease"), ({"lease_seconds": 3601}, "invalid_lease"),
     ({"lease_seconds": None}, "invalid_lease"), ({"key_hash": "a key"}, None), ({"body_hash": None}, None)],
)  # fmt: skip
def test_by_a_claim_that_is_none(people: People, change: dict[str, Any], detail: str | None):
    arguments = {"org_id": people.acme.id, "key_hash": HASH, "body_hash": BODY, "lease_seconds": 60}
    answer = people.ann.rpc("rag_claim_reply", arguments | change)
    assert answer.status_code == 400
    assert detail is None or answer.json()["details"] == detail
