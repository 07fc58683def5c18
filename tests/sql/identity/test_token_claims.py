"""What a token says beyond its user: claims only narrow, and one that cannot be read allows nothing."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.actors import World, hit_arguments
from tests.conftest import People

NO_COLLECTION = UUID(int=0)
ID = "3F2504E0-4f89-41d3-9a0c-0305e82c3301"
# The tokens of users: they carry no claim of ours, or an empty one.
UNCLAIMED: list[dict[str, Any]] = [{}, {"rag": None}, {"rag": {}}, {"scopes": []}, {"collection": ID}]
# A claim that is no object: nothing can be read from it.
UNREADABLE: list[Any] = ["", 7, True, [], [{"scopes": ["admin"]}]]


def asked(world: World, people: People, expression: str, **claims: Any) -> Any:
    """What the expression is for ann with these claims."""
    ((value,),) = world.as_user(people.ann, f"select {expression}", **claims)
    return value


READING = "rag.has_scope('documents:read')"
BINDING = "rag.bound_collection()"


def test_a_user_s_token_has_every_scope(shared_people: People, world: World):
    """A null claim counts as missing."""
    for claims in (*UNCLAIMED, {"rag": {"scopes": None}}):
        for scope in ("documents:write", "admin"):
            assert asked(world, shared_people, f"rag.has_scope('{scope}')", **claims) is True, (claims, scope)


# Required scopes, the token's, and whether these suffice.
OTHERS = ["documents:read", "documents:write", "retrievals:read", "chat:read", "collections:manage"]
SCOPES: list[tuple[str, list[Any], bool]] = [
    ("'documents:read'", ["documents:read"], True),
    ("'documents:read'", ["chat:read", "documents:read"], True),
    ("'documents:read'", ["admin"], True),
    ("'documents:read'", ["documents:read", None, 7], True),
    ("'documents:read', 'documents:write'", ["documents:write"], True),
    ("'documents:read', 'documents:write'", ["chat:read"], False),
    ("'admin'", OTHERS, False),
]


def test_one_of_the_required_scopes_or_admin_allows(shared_people: People, world: World):
    for required, scopes, allows in SCOPES:
        has_scope = asked(world, shared_people, f"rag.has_scope({required})", rag={"scopes": scopes})
        assert has_scope is allows, (required, scopes)


NO_SCOPES: list[Any] = [
    [], "", "admin", 7, True, {}, {"admin": True}, [["documents:read"]], [None], ["ADMIN"], ["documents:*"],
    ["documents:readx"],
]  # fmt: skip


def test_a_scope_claim_without_the_scope_or_of_another_type_allows_nothing(
    shared_people: People, world: World
):
    for scopes in NO_SCOPES:
        assert asked(world, shared_people, READING, rag={"scopes": scopes}) is False, scopes


def test_scopes_in_other_claims_are_ignored(shared_people: People, world: World):
    claims: dict[str, Any] = {
        "rag": {"scopes": ["chat:read"], "rag": {"scopes": ["admin"]}},
        "scopes": ["admin"],
        "app_metadata": {"rag": {"scopes": ["admin"]}},
    }
    assert asked(world, shared_people, READING, **claims) is False
    assert asked(world, shared_people, "rag.has_scope('chat:read')", **claims) is True


# -> 'scopes' of a string, a number or an array is null, which reads as "not narrowed"; so is the collection.
def test_a_claim_that_is_not_an_object_has_no_scope_collection_or_org(shared_people: People, world: World):
    people = shared_people
    for claim in UNREADABLE:
        assert asked(world, people, READING, rag=claim) is False, claim
        assert asked(world, people, BINDING, rag=claim) == NO_COLLECTION, claim
        assert world.as_user(people.ann, "select * from rag.current_org_ids()", rag=claim) == [], claim
        assert world.as_user(people.ada, "select * from rag.admin_org_ids()", rag=claim) == [], claim
        refused = people.ann.rpc("rag_list_keys", token=people.ann.token(rag=claim))
        assert refused.json()["details"] == "no_org", claim


NO_IDS: list[Any] = ["", "null", 7, False, [ID], {"id": ID}, ID[:-1], f" {ID}", f"{ID}\n", f"{{{ID}}}"]


def test_a_collection_claim_binds_and_a_malformed_one_matches_no_collection(
    shared_people: People, world: World
):
    """It is case-insensitive. Without one the token is unbound."""
    cases: list[tuple[dict[str, Any], UUID | None]] = [
        *((claims, None) for claims in [*UNCLAIMED, {"rag": {"collection": None}}]),
        *(({"rag": {"collection": claim}}, UUID(ID)) for claim in (ID, ID.lower(), ID.upper())),
        *(({"rag": {"collection": claim}}, NO_COLLECTION) for claim in NO_IDS),
    ]
    for claims, collection in cases:
        assert asked(world, shared_people, BINDING, **claims) == collection, claims


def test_the_caller_is_the_key_or_the_user(shared_people: People, world: World):
    for claims in (*UNCLAIMED, {"rag": {"key": None}}, {"key": ID}):
        assert str(asked(world, shared_people, "rag.caller_id()", **claims)) == shared_people.ann.id
    for sub in ({}, {"sub": None}):
        assert asked(world, shared_people, "rag.caller_id()", **sub, rag={"key": ID}) == UUID(ID)
    assert asked(world, shared_people, "rag.caller_id()", sub=None) is None


NO_KEYS: list[Any] = ["", "x", 7, True, [], [ID], {}, {"id": ID}, "' or true --"]


def test_a_malformed_key_claim_has_no_caller(people: People, world: World):
    """An error, and not the user's own budget."""
    for claim in NO_KEYS:
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            asked(world, people, "rag.caller_id()", rag={"key": claim})
        token = people.ann.token(rag={"key": claim})
        answer = people.ann.rpc("rag_check_rate_limit", hit_arguments(), token=token)
        assert answer.status_code == 400, (claim, answer.text)
    assert world.sql("select from rag.rate_limits where caller_id = %s", people.ann.id) == []
