"""rag.audit_events: recorded events, omitted ones, and their retention."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local import ROOT
from tests.actors import Actor, World
from tests.conftest import People

FIELDS = {
    "org_id", "id", "owner_id", "user_id", "event", "namespace", "collection_id", "document_count",
    "chunk_count", "top_score", "created_at",
}  # fmt: skip


def note(actor: Actor, status: int = 204, **more: Any) -> dict[str, Any]:
    answer = actor.rpc("rag_record_event", {"event": "knowledge.retrieve", "namespace": "support", **more})
    assert answer.status_code == status, answer.text
    return {} if status == 204 else dict(answer.json())


def listed(admin: Actor, **more: Any) -> list[dict[str, Any]]:
    answer = admin.rpc("rag_list_events", more)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["events"])


def test_only_the_org_s_admin_reads_a_member_s_event(people: People):
    home = people.ann.rpc("rag_create_collection", {"name": "support"}).json()[0]["id"]
    note(people.ann, documents=2, chunks=3, top_score=0.75)
    for actor, token in ((people.ann, None), (people.ada, people.ada.key_token(scopes=["documents:read"]))):
        refused = actor.rpc("rag_list_events", {}, token=token)
        assert (refused.status_code, refused.json()["details"]) == (403, "admin_required")
    (row,) = listed(people.ada)
    assert set(row) == FIELDS
    assert {name: row[name] for name in FIELDS - {"id", "created_at"}} == {
        "org_id": people.acme.id, "owner_id": None, "user_id": people.ann.id, "event": "knowledge.retrieve",
        "namespace": "support", "collection_id": home, "document_count": 2, "chunk_count": 3,
        "top_score": 0.75,
    }  # fmt: skip


def test_an_event_of_a_private_namespace_belongs_to_its_owner(people: People):
    people.ann.rpc("rag_create_collection", {"name": "support", "private": True})
    note(people.ann)
    # The same name means the org's to all others.
    note(people.alf)
    assert [row["owner_id"] for row in listed(people.ada)] == [None, people.ann.id]


def test_an_admin_s_event_in_a_user_s_namespace_belongs_to_that_user(people: People):
    name = f"notes:u:{people.ann.id}"
    note(people.ada, namespace=name)
    (row,) = listed(people.ada)
    assert (row["owner_id"], row["user_id"]) == (people.ann.id, people.ada.id)


NO_EVENTS: list[dict[str, Any]] = [
    {"event": "knowledge.read"}, {"event": None}, {"namespace": ""}, {"namespace": "x" * 256},
    {"documents": -1}, {"chunks": None}, {"top_score": 1.1}, {"top_score": "NaN"},
    {"measures": [{"name": "made_up", "value": 1}]},
    {"measures": [{"name": "gateway_knowledge_chunks_retrieved_total", "value": -1}]}, {"measures": {}},
]  # fmt: skip


def test_a_malformed_event_is_refused_completely(people: People, subtests: pytest.Subtests):
    for wrong in NO_EVENTS:
        with subtests.test(wrong=wrong):
            before = listed(people.ada)
            note(people.ann, 400, **wrong)
            assert listed(people.ada) == before


def test_a_line_end_does_not_change_a_name_s_owner(people: People):
    for tail in ("\n", " ", "\t"):
        refused = note(people.alf, 403, namespace=f"notes:u:{people.ann.id}{tail}")
        assert refused["details"] == "another_users_name"


def test_an_event_and_its_metrics_are_one_transaction(people: People, world: World):
    counted = [
        {"name": "gateway_knowledge_chunks_retrieved_total", "value": 3},
        {"name": "gateway_knowledge_retrieval_score", "value": 0.35},
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: note(people.ann, measures=counted), range(20)))
    metrics = "select name, sum, total, buckets from rag.api_metrics where user_id = %s order by name"
    assert world.sql(metrics, people.ann.id) == [
        ("gateway_knowledge_chunks_retrieved_total", 60.0, 20, []),
        ("gateway_knowledge_retrieval_score", pytest.approx(7.0), 20, [0, 0, 0, *[20] * 7]),
    ]
    assert len(listed(people.ada)) == 20


def test_an_invalid_page_is_refused(people: People):
    for wrong in ({"limit": 0}, {"limit": 101}, {"limit": None}, {"offset": -1}, {"offset": None}):
        answer = people.ada.rpc("rag_list_events", wrong)
        assert answer.status_code == 400, answer.text


def test_events_outlive_their_namespace_and_not_their_org(people: People, world: World):
    home = people.ann.rpc("rag_create_collection", {"name": "support"}).json()[0]["id"]
    note(people.ann)
    people.ann.rpc("rag_delete_collection", {"collection_id": home})
    assert [row["collection_id"] for row in listed(people.ada)] == [home]
    world.sql("delete from rag.orgs where id = %s", people.acme.id)
    assert world.sql("select count(*) from rag.audit_events where org_id = %s", people.acme.id) == [(0,)]


def test_the_documented_statements_of_retention_remove_old_rows_only(people: People, world: World):
    text = (ROOT / "docs" / "operations.md").read_text().split("## Retention\n")[1].split("\n### ")[0]
    statements = re.findall(r"`(delete from [^`]+)`", text)
    assert any("rag.audit_events" in statement for statement in statements)
    note(people.ann)
    note(people.ann)
    recent, old = (row["id"] for row in listed(people.ada))
    world.sql("update rag.audit_events set created_at = now() - interval '91 days' where id = %s", old)
    for statement in statements:
        world.sql(statement)
    assert [row["id"] for row in listed(people.ada)] == [recent]
