"""Attacks on stored responses: another user's past and future ones."""

import json
from typing import Any
from uuid import uuid4

from tests.actors import Actor, World
from tests.conftest import People

HASH, BODY, OTHER = "a" * 64, "b" * 64, "c" * 64
SECRET = {"answer": "ACME-4417"}


def claim(
    actor: Actor, org_id: str | None, token: str | None = None, body: str = BODY, **more: Any
) -> tuple[int, Any]:
    arguments = {"org_id": org_id, "key_hash": HASH, "body_hash": body, "lease_seconds": 60, **more}
    answer = actor.rpc("rag_claim_response", arguments, token=token)
    return answer.status_code, answer.json()[0] if answer.status_code == 200 else answer.json()["details"]


def keep(actor: Actor, org_id: str, claim_id: str, token: str | None = None, **more: Any) -> Any:
    arguments = {"org_id": org_id, "key_hash": HASH, "claim": claim_id}
    body = {"status": 200, "body": json.dumps(SECRET), "request_id": "r", **more}
    return actor.rpc("rag_store_response", arguments | body, token=token).json()


def store_answer(actor: Actor, org_id: str, token: str | None = None) -> None:
    """The secret, stored for that caller."""
    _, row = claim(actor, org_id, token)
    assert keep(actor, org_id, row["claim"], token) is True
    assert claim(actor, org_id, token)[1]["body"] == SECRET


def others(people: People) -> list[Actor]:
    """A member of ann's org, its admin, and a member of both orgs."""
    return [people.alf, people.ada, people.kim]


def test_the_same_key_and_body_replay_nothing_of_another_user(people: People, world: World):
    """Each has replies of their own, and cannot tell whether other users have any: not in SQL either."""
    store_answer(people.ann, people.acme.id)
    for attacker in others(people):
        assert world.as_user(attacker, "select * from rag.stored_responses") == []
        status, row = claim(attacker, people.acme.id)
        assert (status, row["outcome"], row["body"]) == (200, "go", None), attacker.email
        changes = "where owner_id <> auth.uid() returning 1"
        assert world.as_user(attacker, f"update rag.stored_responses set body = '{{}}' {changes}") == []
        assert world.as_user(attacker, f"delete from rag.stored_responses {changes}") == []
    assert len(world.as_user(people.ann, "select * from rag.stored_responses")) == 1
    assert claim(people.ann, people.acme.id)[1]["body"] == SECRET


def test_a_stolen_claim_replays_nothing(people: People):
    """Its holder can neither set her response nor take her claim away. Nor is a stored response changed."""
    _, row = claim(people.ann, people.acme.id)
    for attacker in others(people):
        assert keep(attacker, people.acme.id, row["claim"], body="{}") is False
        arguments = {"org_id": people.acme.id, "key_hash": HASH, "claim": row["claim"]}
        assert attacker.rpc("rag_release_response", arguments).json() is False
    assert claim(people.ann, people.acme.id)[1]["outcome"] == "busy"
    assert keep(people.ann, people.acme.id, str(uuid4())) is False
    assert keep(people.ann, people.acme.id, row["claim"]) is True
    assert keep(people.ann, people.acme.id, row["claim"], body="{}") is False
    assert claim(people.ann, people.acme.id)[1]["body"] == SECRET


def test_another_credential_of_the_same_user_replays_nothing(people: People):
    one, other = (people.ann.key_token(key=str(uuid4()), scopes=["chat:read"]) for _ in range(2))
    store_answer(people.ann, people.acme.id, one)
    for token in (other, None):
        assert claim(people.ann, people.acme.id, token)[1]["outcome"] == "go"
    assert claim(people.ann, people.acme.id, one)[1]["body"] == SECRET
    assert claim(people.ann, people.acme.id, other, OTHER)[1]["outcome"] == "differs"


def test_a_key_bound_to_another_collection_replays_nothing(people: People):
    """By a forged claim of the same key: what it is bound to never changes."""
    key = str(uuid4())
    bound, elsewhere = (people.ann.key_token(key=key, collection=str(uuid4())) for _ in range(2))
    store_answer(people.ann, people.acme.id, bound)
    status, row = claim(people.ann, people.acme.id, elsewhere)
    assert (status, row["outcome"], row["body"]) == (200, "busy", None)


def test_a_malformed_claim_is_refused(people: People):
    arguments = {"org_id": people.acme.id, "key_hash": HASH, "body_hash": BODY, "lease_seconds": 60}
    faults: list[dict[str, Any]] = [{"lease_seconds": seconds} for seconds in (0, 3601, None)]
    for fault in (*faults, {"key_hash": "a key"}, {"body_hash": None}):
        answer = people.ann.rpc("rag_claim_response", arguments | fault)
        assert answer.status_code == 400, fault
        assert "lease_seconds" not in fault or answer.json()["details"] == "invalid_lease", fault


# --- What POSTs of the platform API have made ---

COLLECTIONS = "/api/v1/collections"
ONCE = {"Idempotency-Key": "the same for all"}


def home_of(actor: Actor, name: str = "plans", **more: Any) -> str:
    answer = actor.request("POST", COLLECTIONS, {"name": name, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_forged_org_replays_no_creation(people: People):
    """Nor does an org that is said decide where a reply is kept, if a collection does."""
    body = {"name": "plans", "org_id": people.acme.id}
    assert people.ann.request("POST", COLLECTIONS, body, **ONCE).status_code == 201
    for thief, refusal in ((people.bob, (404, "org_not_found")), (people.sam, (403, "no_org"))):
        answer = thief.request("POST", COLLECTIONS, body, **ONCE)
        assert (answer.status_code, answer.json()["error"]["code"]) == refusal
    home, scope = home_of(people.bob, "plans"), "documents:write"
    forged = {"collection_id": home, "scope": scope}
    assert claim(people.ann, people.acme.id, **forged) == (404, "collection_not_found")
    status, row = claim(people.kim, people.acme.id, **forged)
    assert (status, row["outcome"], row["org_id"]) == (200, "go", people.bolt.id)
