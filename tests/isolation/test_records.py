"""Attacks on records of requests: a user's questions are for the user and the org's admins alone."""

import psycopg
import pytest

from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.search_workspace import put
from tests.functions.test_answers_without_a_model import HOME
from tests.functions.test_records import KETTLE, QUESTION, ask, label, record_of, record_requests


@pytest.fixture
def members(people: People, services: Services) -> People:
    record_requests(people.ada)
    put(services, people.ann, HOME, "Kettle manual", KETTLE)
    return people


def assert_hidden(actor: Actor, record_id: str, token: str | None = None) -> None:
    answer = actor.request("GET", f"/v1/records/{record_id}", token=token)
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"]["code"] == "record_not_found"
    replay = actor.request("POST", f"/v1/records/{record_id}/replay", token=token)
    assert (replay.status_code, replay.json()["error"]["code"]) == (404, "record_not_found")
    rows = actor.rpc("rag_get_record", {"record_id": record_id}, token=token)
    assert (rows.status_code, rows.json()["code"]) == (404, "PT404")


def test_no_record_is_written_in_the_name_of_another_user(members: People, world: World):
    ask(members.ann)
    columns = "request_id, function, question, queries, passages, confidence, score, because, prompt_tokens, "
    columns += "completion_tokens, milliseconds, expires_at"
    copied = f"insert into rag.request_records (org_id, owner_id, {columns}) select org_id, %s, {columns} "
    copied += "from rag.request_records"
    # An admin sees the records of all members, and writes none for them.
    for author in (members.ann, members.ada):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            world.as_user(author, copied, members.alf.id)
    world.as_user(members.ann, copied, members.ann.id)
    # Nor in the name of an API key.
    keyed = copied.replace("owner_id", "owner_id, key_id").replace("%s", "%s, gen_random_uuid()")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        world.as_user(members.ann, keyed, members.ann.id)
    owners = "select distinct owner_id::text from rag.request_records where org_id = %s"
    assert world.sql(owners, members.acme.id) == [(members.ann.id,)]


def test_a_record_shows_nothing_that_its_reader_may_not_see(
    members: People, services: Services, world: World
):
    """The asker's record of a document that became private to another member."""
    request_id = ask(members.ann)
    ((document,),) = world.sql("select id::text from rag.documents where org_id = %s", members.acme.id)
    assert label(members.ada, request_id, "right", document).status_code == 204
    assert record_of(members.ann, request_id)["label"]["document_ids"] == [document]
    for table in ("documents", "chunks"):
        world.sql(f"update rag.{table} set owner_id = %s where org_id = %s", members.alf.id, members.acme.id)
    record = record_of(members.ann, request_id)
    assert record["is_complete"] is False
    assert record["label"]["document_ids"] == []
    assert "100 degrees" not in str(record)
    # The org's admins see private documents.
    assert "100 degrees" in record_of(members.ada, request_id)["answer"]


def test_a_request_over_several_orgs_is_recorded_in_none(members: People, services: Services, world: World):
    world.sql("update rag.orgs set record_days = 30 where id = %s", members.bolt.id)
    put(services, members.bob, HOME, "Kettle of Bolt", KETTLE)
    ask(members.kim)
    assert world.sql("select count(*) from rag.request_records where owner_id = %s", members.kim.id) == [(0,)]
    answer = members.kim.answer(QUESTION, filters={"org_id": members.acme.id})
    assert record_of(members.kim, answer.headers["x-request-id"])["org_id"] == members.acme.id


def test_a_replay_searches_with_the_rights_of_its_caller(members: People, services: Services, world: World):
    request_id = ask(members.ann)
    put(services, members.alf, HOME, "Kettle of alf", KETTLE.replace("100", "95"), private=True)
    path = f"/v1/records/{request_id}/replay"
    assert "95 degrees" not in members.ann.post(path).text
    assert "Kettle of alf" in members.ada.post(path).text
    assert members.bob.post(path).status_code == 404


def test_only_the_asker_rates_an_answer(members: People):
    request_id = ask(members.ann)
    for actor, code in ((members.ada, "asker_required"), (members.alf, "record_not_found")):
        answer = actor.request("POST", f"/v1/records/{request_id}/feedback", {"rating": "down"})
        assert answer.json()["error"]["code"] == code
    assert record_of(members.ann, request_id)["feedback"] is None


def test_expired_records_are_invisible_and_then_removed(members: People, world: World):
    request_id = ask(members.ann)
    expire = "update rag.request_records set expires_at = now() where org_id = %s"
    world.sql(expire, members.acme.id)
    for actor in (members.ann, members.ada):
        assert_hidden(actor, request_id)
    ask(members.ann)
    # The worker sees expired records alone, and nothing in them.
    assert world.as_role("rag_worker", "select count(*) from rag.request_records") == [(1,)]
    assert world.as_role("rag_worker", "select public.rag_remove_expired_records()") == [(1,)]
    assert world.sql("select count(*) from rag.request_records where org_id = %s", members.acme.id) == [(1,)]
    with pytest.raises(Exception, match="permission denied"):
        world.as_role("rag_worker", "select question from rag.request_records")


def test_a_record_of_another_user_or_org_cannot_be_written(members: People, world: World):
    record = {
        "request_id": "r", "function": "chat", "question": "q", "queries": [{"text": "q"}], "passages": [],
        "confidence": "low", "score": 0, "because": [], "prompt_tokens": 0, "completion_tokens": 0,
        "milliseconds": 1, "owner_id": members.ann.id, "org_ids": [members.acme.id],
    }  # fmt: skip
    # Of an org that is not the caller's nothing is stored, nor does the caller learn whether it records.
    assert members.bob.rpc("rag_record_request", {"record": record}).json() is None
    assert members.alf.rpc("rag_record_request", {"record": record}).json() is True
    rows = world.sql("select owner_id::text from rag.request_records where org_id = %s", members.acme.id)
    assert rows == [(members.alf.id,)]
    anonymous = members.alf.key_token(scopes=["chat:read"], anonymous=True)
    assert members.alf.rpc("rag_record_request", {"record": record}, token=anonymous).json() is None
