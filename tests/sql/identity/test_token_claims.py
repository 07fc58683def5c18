"""What a token says beyond its user: claims only narrow, and one that cannot be read allows nothing."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.actors import World, hit_arguments
from tests.conftest import People

NO_COLLECTION = UUID(int=0)
ID = "3F2504E0-4f89-41d3-9a0c-0305e82c3301"
# The tokens of users: they carry no claim of ours, or an empty one.
UNCLAIMED: list[dict[str, Any]] = [{}, {"rag": None}, {"rag": {}}, {"scopes": []}, {"collection": ID}]
# A claim that is no object: nothing can be read from it.
UNREADABLE: list[Any] = ["", "admin", 7, 0, True, False, [], ["admin"], [{"scopes": ["admin"]}]]


def asked(world: World, people: People, expression: str, **claims: Any) -> Any:
    """What the expression is for ann with these claims."""
    ((value,),) = world.as_user(people.ann, f"select {expression}", **claims)
    return value


def test_a_user_s_token_has_every_scope(people: People, world: World, subtests: pytest.Subtests):
    for claims in UNCLAIMED:
        with subtests.test(claims=claims):
            assert asked(world, people, "rag.has_scope('documents:write')", **claims) is True
            assert asked(world, people, "rag.has_scope('admin')", **claims) is True


def test_a_null_scope_claim_counts_as_missing(people: People, world: World):
    assert asked(world, people, "rag.has_scope('documents:write')", rag={"scopes": None}) is True


SCOPES: list[list[Any]] = [
    ["documents:read"], ["chat:read", "documents:read"], ["admin"], ["documents:read", None, 7],
]  # fmt: skip


def test_a_matching_scope_or_admin_allows(people: People, world: World, subtests: pytest.Subtests):
    for scopes in SCOPES:
        with subtests.test(scopes=scopes):
            assert asked(world, people, "rag.has_scope('documents:read')", rag={"scopes": scopes}) is True


def test_one_of_several_required_scopes_is_enough(people: People, world: World):
    expected = "rag.has_scope('documents:read', 'documents:write')"
    assert asked(world, people, expected, rag={"scopes": ["documents:write"]}) is True
    assert asked(world, people, expected, rag={"scopes": ["chat:read"]}) is False


def test_no_scope_implies_admin(people: People, world: World):
    others = ["documents:read", "documents:write", "retrievals:read", "chat:read", "collections:manage"]
    assert asked(world, people, "rag.has_scope('admin')", rag={"scopes": others}) is False


NO_SCOPES: list[Any] = [
    [], "", "documents:read", "admin", "{admin}", 7, 0, True, False, {},
    {"documents:read": True}, {"admin": True}, {"0": "admin"}, [["documents:read"]], [["admin"]],
    [{"admin": True}], [None], [True], ["ADMIN"], ["Documents:Read"], ["documents:read "],
    ["documents:*"], ["*"], ["documents"], ["documents:readx"], [""],
]  # fmt: skip


def test_a_scope_claim_without_the_scope_or_of_another_type_allows_nothing(
    people: People, world: World, subtests: pytest.Subtests
):
    for scopes in NO_SCOPES:
        with subtests.test(scopes=scopes):
            assert asked(world, people, "rag.has_scope('documents:read')", rag={"scopes": scopes}) is False


def test_scopes_in_other_claims_are_ignored(people: People, world: World):
    """Beside the claim, or deeper in it, they neither widen nor narrow."""
    claims: dict[str, Any] = {
        "rag": {"scopes": ["chat:read"], "rag": {"scopes": ["admin"]}},
        "scopes": ["admin"],
        "app_metadata": {"rag": {"scopes": ["admin"]}},
    }
    assert asked(world, people, "rag.has_scope('documents:read')", **claims) is False
    assert asked(world, people, "rag.has_scope('chat:read')", **claims) is True


# -> 'scopes' of a string, a number or an array is null, which reads as "not narrowed".
def test_a_claim_that_is_not_an_object_has_no_scope(people: People, world: World, subtests: pytest.Subtests):
    for claim in UNREADABLE:
        with subtests.test(claim=claim):
            assert asked(world, people, "rag.has_scope('documents:read')", rag=claim) is False


# The same with the collection; only rag.current_org_ids() closes what this leaves open.
def test_a_claim_that_is_not_an_object_matches_no_collection(
    people: People, world: World, subtests: pytest.Subtests
):
    for claim in UNREADABLE:
        with subtests.test(claim=claim):
            assert asked(world, people, "rag.bound_collection()", rag=claim) == NO_COLLECTION


def test_a_claim_that_is_not_an_object_matches_no_org(
    people: People, world: World, subtests: pytest.Subtests
):
    for claim in UNREADABLE:
        with subtests.test(claim=claim):
            assert world.as_user(people.ann, "select * from rag.current_org_ids()", rag=claim) == []
            assert world.as_user(people.ada, "select * from rag.admin_org_ids()", rag=claim) == []
            assert people.ann.rpc("rag_list_keys", token=people.ann.token(rag=claim)).json() == []


def test_a_token_without_a_collection_claim_is_unbound(
    people: People, world: World, subtests: pytest.Subtests
):
    for claims in [*UNCLAIMED, {"rag": {"collection": None}}]:
        with subtests.test(claims=claims):
            assert asked(world, people, "rag.bound_collection()", **claims) is None


def test_a_collection_claim_is_case_insensitive(people: People, world: World, subtests: pytest.Subtests):
    for claim in [ID, ID.lower(), ID.upper()]:
        with subtests.test(claim=claim):
            assert asked(world, people, "rag.bound_collection()", rag={"collection": claim}) == UUID(ID)


NO_IDS: list[Any] = [
    "", "null", "*", "default", "' or true --", 7, True, False, [], [ID], {}, {"id": ID}, [None],
    ID[:-1], ID + "0", f" {ID}", f"{ID} ", f"{ID}\n", f"{{{ID}}}", ID.replace("-", ""), f"{ID},{ID}",
]  # fmt: skip


def test_a_malformed_collection_claim_matches_no_collection(
    people: People, world: World, subtests: pytest.Subtests
):
    for claim in NO_IDS:
        with subtests.test(claim=claim):
            assert asked(world, people, "rag.bound_collection()", rag={"collection": claim}) == NO_COLLECTION


def test_without_a_key_the_caller_is_the_user(people: People, world: World):
    for claims in (*UNCLAIMED, {"rag": {"key": None}}, {"key": ID}):
        assert str(asked(world, people, "rag.caller_id()", **claims)) == people.ann.id


def test_with_a_key_claim_the_caller_is_the_key(people: People, world: World):
    assert asked(world, people, "rag.caller_id()", rag={"key": ID}) == UUID(ID)


NO_KEYS: list[Any] = ["", "x", 7, True, [], [ID], {}, {"id": ID}, "' or true --"]


def test_a_malformed_key_claim_has_no_caller(people: People, world: World, subtests: pytest.Subtests):
    """An error, and not the user's own budget."""
    spent = "select * from rag.rate_limits where caller_id = %s"
    for claim in NO_KEYS:
        with subtests.test(claim=claim):
            before = world.sql(spent, people.ann.id)
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                asked(world, people, "rag.caller_id()", rag={"key": claim})
            answer = people.ann.rpc(
                "rag_check_rate_limit", hit_arguments(), token=people.ann.token(rag={"key": claim})
            )
            assert answer.status_code == 400, answer.text
            assert world.sql(spent, people.ann.id) == before


def test_an_unauthenticated_request_has_no_caller(people: People, world: World):
    assert asked(world, people, "rag.caller_id()", sub=None) is None
    assert asked(world, people, "rag.caller_id()", sub=None, rag={"key": str(uuid4())}) is not None
