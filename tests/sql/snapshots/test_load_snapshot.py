"""Persisting and loading in SQL: names that are not found yet, limits, leftovers, events."""

from typing import Any

import pytest

from tests.actors import Actor, World, put_arguments, vector, webhook_arguments
from tests.conftest import People

Row = dict[str, Any]


def begun(who: Actor, name: str = "i", *, overwrite: bool = False, documents: int = 0) -> Any:
    body = {"name": name, "overwrite": overwrite, "documents": documents, "collection": {}}
    return who.rpc("rag_begin_load", body)


def begin(who: Actor, name: str = "i", **more: Any) -> str:
    answer = begun(who, name, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.json())


def document(name: str | None, seeds: range = range(1), **more: Any) -> Row:
    """As rag_load_documents takes one."""
    arguments = put_arguments(None, [vector(seed) for seed in seeds])
    return {**arguments["document"], "external_id": name, "chunks": arguments["chunks"], **more}


def fill(who: Actor, collection: str, *documents: Row, first: int = 0) -> Any:
    body = {"collection_id": collection, "documents": documents, "first": first}
    return who.rpc("rag_load_documents", body)


def code(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["details"])


def test_an_index_is_hidden_while_it_is_loaded(people: People, world: World):
    """Its documents belong to the org, whatever they claim."""
    collection = begin(people.ann)
    assert fill(people.ann, collection, document("a", private=True)).status_code == 200
    assert world.sql("select owner_id from rag.documents where collection_id = %s", collection) == [(None,)]
    assert code(fill(people.ann, collection, document("a"), first=1), 400) == "duplicate_document"
    assert people.alf.rpc("rag_list_names").json() == []
    assert people.alf.rpc("rag_find_collection", {"collection": "i"}).status_code == 404
    assert people.alf.rpc("rag_list_collections").json()["total"] == 0
    assert people.alf.rpc("rag_finish_load", {"collection_id": collection}).status_code == 204
    assert people.alf.rpc("rag_list_names").json() == ["i"]
    # And it is none any more: neither filled again nor ended.
    assert code(fill(people.ann, collection, document("b")), 404) == "collection_not_found"
    assert code(people.ann.rpc("rag_cancel_load", {"collection_id": collection}), 404)


def test_a_name_taken_during_a_load_keeps_its_owner(people: People):
    collection = begin(people.ann)
    people.alf.put([vector(1)], collection="i")
    answer = people.ann.rpc("rag_finish_load", {"collection_id": collection})
    assert code(answer, 409) == "duplicate_collection"
    assert people.ann.rpc("rag_cancel_load", {"collection_id": collection}).json() is False
    assert len(people.ann.match(vector(1))) == 1


def test_a_loaded_document_keeps_its_creation_time_but_not_a_future_one(people: People, world: World):
    collection = begin(people.ann)
    moments = ["2020-02-02T02:02:02.123456+00:00", "9999-01-01T00:00:00+00:00", "infinity", "-infinity"]
    expected = [document(str(n), created_at=at, updated_at=at) for n, at in enumerate(moments)]
    assert fill(people.ann, collection, *expected).status_code == 200
    rows = world.sql(
        "select created_at::text, created_at <= now() and created_at >= 'epoch' from rag.documents "
        "where collection_id = %s order by external_id",
        collection,
    )
    assert rows[0] == ("2020-02-02 02:02:02.123456+00", True)
    assert {inside for _, inside in rows} == {True}


def test_a_tier_limits_a_load(people: People, world: World):
    world.tier(people.acme, collections=2, documents=3, file_bytes=10)
    assert code(begun(people.ann, documents=4), 429) == "document_limit_reached"
    collection = begin(people.ann, documents=3)
    assert code(fill(people.ann, collection, document("a", content="x" * 11)), 413) == "file_too_large"
    many = [document(str(n), range(0)) for n in range(4)]
    assert code(fill(people.ann, collection, *many), 429) == "document_limit_reached"
    begin(people.ann, "other")
    assert code(begun(people.ann, "third"), 429) == "collection_limit_reached"


def test_overwritten_documents_count_once_against_the_quota(people: People, world: World):
    world.tier(people.acme, collections=1)
    people.ann.put([vector(1)], collection="i")
    assert code(begun(people.ann, "other"), 429) == "collection_limit_reached"
    collection = begin(people.ann, overwrite=True)
    assert code(begun(people.ann, "i", overwrite=True), 429) == "collection_limit_reached"
    finished = people.ann.rpc("rag_finish_load", {"collection_id": collection, "overwrite": True})
    assert finished.status_code == 204
    assert people.ann.match(vector(1)) == []


def test_an_hour_old_abandoned_load_is_reported_to_its_org_only(people: People, world: World):
    left, fresh = begin(people.ann), begin(people.ann)
    old = "update rag.collections set updated_at = now() - interval '61 minutes' where id = %s"
    world.sql(old, left)
    world.sql(old, fresh)
    # Running loads are not leftovers.
    fill(people.ann, fresh, document("a"))
    assert people.alf.rpc("rag_check_load", {"name": "x"}).json()["left_behind"] == [left]
    assert people.bob.rpc("rag_check_load", {"name": "x"}).json()["left_behind"] == []
    assert people.alf.rpc("rag_cancel_load", {"collection_id": left}).json() is False
    while people.alf.rpc("rag_cancel_load", {"collection_id": fresh}).json():
        pass
    assert people.alf.rpc("rag_check_load", {"name": "x"}).json()["left_behind"] == []
    undeleted = "select from rag.collections where org_id = %s and deleted_at is null"
    assert world.sql(undeleted, people.acme.id) == []


def test_an_invalid_name_is_refused(people: People, subtests: pytest.Subtests):
    for name in ["", "x" * 256, "a\u202eb"]:
        with subtests.test(name=name):
            assert code(people.ann.rpc("rag_check_load", {"name": name}), 400) == "invalid_name"


def test_a_document_that_changed_during_persist_is_not_continued(people: People):
    people.ann.put([vector(1)], collection="i", external_id="a")
    home = people.ann.rpc("rag_begin_snapshot", {"name": "i"}).json()
    place = {"collection_id": home["collection_id"]}
    (listed,) = people.ann.rpc("rag_snapshot_documents", place).json()
    (read,) = people.ann.rpc("rag_read_snapshot_documents", {**place, "document_ids": [listed["id"]]}).json()
    request = {**place, "document_id": read["id"], "updated_at": read["updated_at"], "first": 0}
    assert len(people.ann.rpc("rag_read_snapshot_chunks", request).json()) == 1
    people.ann.put([vector(2)], collection="i", external_id="a")
    assert code(people.ann.rpc("rag_read_snapshot_chunks", request), 409) == "document_changed"


def test_pages_have_every_document_once(people: People, world: World):
    """Of one moment, too: the id decides then."""
    world.sql("insert into rag.collections (org_id, name) values (%s, 'many')", people.acme.id)
    world.sql(
        "insert into rag.documents (org_id, collection_id, title, content, content_hash) "
        "select org_id, id, 't', 'c', repeat('0', 64) from rag.collections, generate_series(1, 4500) "
        "where org_id = %s", people.acme.id,
    )  # fmt: skip
    home = people.ann.rpc("rag_begin_snapshot", {"name": "many"}).json()
    ids, request = list[str](), {"collection_id": home["collection_id"]}
    while page := people.ann.rpc("rag_snapshot_documents", request).json():
        ids += [row["id"] for row in page]
        request |= {"after_created_at": page[-1]["created_at"], "after_id": page[-1]["id"]}
    assert len(ids) == len(set(ids)) == 4500


def test_admins_get_an_event_when_an_index_is_loaded(people: People, world: World):
    events = ["collection.created", "collection.deleted", "document.processing_completed"]
    hook = people.ada.rpc("rag_create_webhook", {**webhook_arguments(), "events": events})
    assert hook.status_code == 200, hook.text
    collection = begin(people.ann)
    fill(people.ann, collection, document("a"))
    broken = begin(people.ann, "broken")
    people.ann.rpc("rag_cancel_load", {"collection_id": broken})
    text = "select event, object ->> 'name' from rag.deliveries where org_id = %s"
    assert world.sql(text, people.acme.id) == []
    people.ann.rpc("rag_finish_load", {"collection_id": collection})
    assert world.sql(text, people.acme.id) == [("collection.created", "i")]
