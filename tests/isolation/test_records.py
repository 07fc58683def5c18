"""Attacks on records of requests: a user's questions are for the user and the org's admins alone."""

from typing import Any

import pytest

from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.search_workspace import put, workspace_id
from tests.functions.test_answers_without_a_model import HOME
from tests.functions.test_records import KETTLE, QUESTION, asked, explained, record_requests


@pytest.fixture
def recorded(people: People, core: Services) -> People:
    record_requests(people.ada)
    put(core, people.ann, HOME, "Kettle manual", KETTLE)
    return people


def assert_hidden(actor: Actor, record_id: str, token: str | None = None) -> None:
    answer = actor.request("GET", f"/v1/records/{record_id}", token=token)
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"]["code"] == "record_not_found"
    replay = actor.request("POST", f"/v1/records/{record_id}/replay", token=token)
    assert (replay.status_code, replay.json()["error"]["code"]) == (404, "record_not_found")
    rows = actor.rpc("rag_get_record", {"record_id": record_id}, token=token)
    assert (rows.status_code, rows.json()["code"]) == (404, "PT404")


def test_only_the_asker_and_admins_read_a_record(recorded: People, world: World):
    bea = world.user(recorded.bolt, role="admin")
    request_id = asked(recorded.ann)
    record = explained(recorded.ann, request_id)
    assert explained(recorded.ada, request_id) == record
    for stranger in (recorded.alf, recorded.bob, recorded.kim, recorded.sam, bea):
        for name in (request_id, record["id"]):
            assert_hidden(stranger, name)


def test_a_user_who_left_the_org_reads_no_record(recorded: People, world: World):
    request_id = asked(recorded.ann)
    world.sql("delete from rag.members where user_id = %s", recorded.ann.id)
    assert_hidden(recorded.ann, request_id)


def test_a_record_shows_nothing_that_its_reader_may_not_see(recorded: People, core: Services, world: World):
    """The asker's record of a document that became private to another member."""
    request_id = asked(recorded.ann)
    for table in ("documents", "chunks"):
        world.sql(
            f"update rag.{table} set owner_id = %s where org_id = %s", recorded.alf.id, recorded.acme.id
        )
    record = explained(recorded.ann, request_id)
    assert record["is_complete"] is False
    assert "100 degrees" not in str(record)
    # The org's admins see private documents.
    assert "100 degrees" in explained(recorded.ada, request_id)["answer"]


def test_a_request_over_several_orgs_is_recorded_in_none(recorded: People, core: Services, world: World):
    world.sql("update rag.orgs set record_days = 30 where id = %s", recorded.bolt.id)
    put(core, recorded.bob, HOME, "Kettle of Bolt", KETTLE)
    asked(recorded.kim)
    assert world.sql("select count(*) from rag.request_records where owner_id = %s", recorded.kim.id) == [
        (0,)
    ]
    answer = recorded.kim.answer(QUESTION, filters={"org_id": recorded.acme.id})
    assert explained(recorded.kim, answer.headers["x-request-id"])["org_id"] == recorded.acme.id


def test_a_bound_key_sees_records_of_its_collection_alone(recorded: People, core: Services):
    put(core, recorded.ann, "other", "Another", KETTLE)
    home = workspace_id(recorded.ann, HOME).removeprefix("ws_")
    other = workspace_id(recorded.ann, "other").removeprefix("ws_")
    unbound = asked(recorded.ann)
    key = recorded.ann.key_token(scopes=["chat:read"], collection=home)
    assert_hidden(recorded.ann, unbound, key)
    body = {"message": QUESTION, "stream": False}
    bound = recorded.ann.request("POST", "/v1/chat", body, token=key).headers["x-request-id"]
    assert recorded.ann.request("GET", f"/v1/records/{bound}", token=key).status_code == 200
    assert_hidden(recorded.ann, bound, recorded.ann.key_token(scopes=["chat:read"], collection=other))


def test_a_key_without_the_scope_reads_and_deletes_nothing(recorded: People):
    request_id = asked(recorded.ann)
    key = recorded.ann.key_token(scopes=["documents:read", "documents:write", "collections:manage"])
    requests: list[tuple[str, str, Any, str]] = [
        ("GET", f"/v1/records/{request_id}", None, "rag_get_record"),
        ("GET", "/v1/records/settings", None, "rag_get_record_settings"),
        ("DELETE", "/v1/records", None, "rag_delete_records"),
        ("PATCH", "/v1/records/settings", {"retention_days": 1}, "rag_update_record_settings"),
    ]
    for method, path, body, function in requests:
        answer = recorded.ann.request(method, path, body, token=key)
        assert answer.status_code == 403, answer.text
        arguments = {"record_id": request_id} if function == "rag_get_record" else {}
        assert recorded.ann.rpc(function, arguments, token=key).status_code == 403
    assert explained(recorded.ann, request_id)


def test_only_admins_set_the_retention(recorded: People, world: World):
    bea = world.user(recorded.bolt, role="admin")
    for actor, org_id, code in (
        (recorded.ann, None, "admin_required"),
        (recorded.kim, recorded.acme.id, "admin_required"),
        (bea, recorded.acme.id, "org_not_found"),
    ):
        body = {"retention_days": None, "org_id": org_id}
        answer = actor.request("PATCH", "/v1/records/settings", body)
        assert answer.json()["error"]["code"] == code
    home = recorded.ada.request("POST", "/v1/collections", {"name": "plans"}).json()["id"]
    bound = recorded.ada.key_token(collection=home)
    answer = recorded.ada.request("PATCH", "/v1/records/settings", {"retention_days": None}, token=bound)
    assert answer.status_code == 403
    # Nor does row security let a member.
    update = "update rag.orgs set record_days = null where id = %s returning id"
    assert world.as_user(recorded.ann, update, recorded.acme.id) == []
    assert recorded.ann.request("GET", "/v1/records/settings").json()["retention_days"] == 30


def test_a_member_deletes_no_record_of_others(recorded: People):
    request_id = asked(recorded.ann)
    for actor in (recorded.alf, recorded.bob):
        answer = actor.request("DELETE", f"/v1/records?user_id={recorded.ann.id}")
        assert answer.json() == {"deleted": 0}
    assert explained(recorded.ann, request_id)
    assert recorded.ada.request("DELETE", f"/v1/records?user_id={recorded.ann.id}").json() == {"deleted": 1}


def test_a_replay_searches_with_the_rights_of_its_caller(recorded: People, core: Services, world: World):
    request_id = asked(recorded.ann)
    put(core, recorded.alf, HOME, "Kettle of alf", KETTLE.replace("100", "95"), private=True)
    path = f"/v1/records/{request_id}/replay"
    assert "95" not in recorded.ann.post(path).text
    assert "Kettle of alf" in recorded.ada.post(path).text
    assert recorded.bob.post(path).status_code == 404


def test_only_the_asker_rates_an_answer(recorded: People):
    request_id = asked(recorded.ann)
    for actor, code in ((recorded.ada, "asker_required"), (recorded.alf, "record_not_found")):
        answer = actor.request("POST", f"/v1/records/{request_id}/feedback", {"rating": "down"})
        assert answer.json()["error"]["code"] == code
    assert explained(recorded.ann, request_id)["feedback"] is None


def test_expired_records_are_invisible_and_then_removed(recorded: People, world: World):
    request_id = asked(recorded.ann)
    expire = "update rag.request_records set expires_at = now() where org_id = %s"
    world.sql(expire, recorded.acme.id)
    for actor in (recorded.ann, recorded.ada):
        assert_hidden(actor, request_id)
    asked(recorded.ann)
    # The worker sees expired records alone, and nothing in them.
    assert world.as_role("rag_worker", "select count(*) from rag.request_records") == [(1,)]
    assert world.as_role("rag_worker", "select public.rag_remove_expired_records()") == [(1,)]
    assert world.sql("select count(*) from rag.request_records where org_id = %s", recorded.acme.id) == [(1,)]
    with pytest.raises(Exception, match="permission denied"):
        world.as_role("rag_worker", "select question from rag.request_records")


def test_a_record_of_another_user_or_org_cannot_be_written(recorded: People, world: World):
    record = {
        "request_id": "r", "function": "chat", "question": "q", "queries": [{}], "passages": [],
        "confidence": "low", "score": 0, "because": [], "prompt_tokens": 0, "completion_tokens": 0,
        "milliseconds": 1, "owner_id": recorded.ann.id, "org_ids": [recorded.acme.id],
    }  # fmt: skip
    # Of an org that is not the caller's nothing is stored, nor does the caller learn whether it records.
    assert recorded.bob.rpc("rag_record_request", {"record": record}).json() is None
    assert recorded.alf.rpc("rag_record_request", {"record": record}).json() is True
    rows = world.sql("select owner_id::text from rag.request_records where org_id = %s", recorded.acme.id)
    assert rows == [(recorded.alf.id,)]
    anonymous = recorded.alf.key_token(scopes=["chat:read"], anonymous=True)
    assert recorded.alf.rpc("rag_record_request", {"record": record}, token=anonymous).json() is None
