"""Files that are too large for a request: uploaded to Storage, brought, worked on, handed back, removed."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from local import ROOT
from shared.clients.supabase_storage import MAX_BYTES
from shared.documents.documents import MAX_BYTES as IN_A_REQUEST
from shared.ingestion.job_queue import BatchResult
from tests.actors import Actor, World, client
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.app_server import platform_error as error
from tests.functions.test_documents import FIELDS, collection, upload
from tests.upload_client import PATH, Uploads, digest, page

Row = dict[str, Any]


@pytest.fixture
def home(people: People) -> str:
    return collection(people.ann, "docs")


def test_a_large_file_is_uploaded_processed_found_and_downloaded(
    uploading: Uploads, people: People, home: str
):
    data = page("The kiln is hot.", IN_A_REQUEST + 1)
    message = json_of(
        uploading.begin(people.ann, f"col_{home}", len(data), "kiln é.html", metadata={"author": "Ann"}), 201
    )
    assert set(message) == {"upload_url", "upload", "expires_at"}
    lasts = datetime.fromisoformat(message["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=119) < lasts <= timedelta(hours=2)
    # With nothing but the link.
    assert httpx.put(message["upload_url"], content=data).status_code == 200

    row = json_of(uploading.finish(people.ann, message["upload"]), 202)
    assert set(row) == FIELDS
    assert (row["status"], row["filename"], row["size_bytes"]) == ("processing", "kiln é.html", len(data))
    assert row["metadata"] == {"author": "Ann"}
    assert uploading.work() == BatchResult(claimed=1, completed=1)
    document = uploading.state_of(people.alf, row)
    assert (document["status"], document["content_hash"]) == ("completed", digest(data))
    assert people.alf.search("How hot is the kiln?").json()["results"][0]["source_id"] == row["id"]
    assert people.bob.search("How hot is the kiln?").json()["results"] == []

    link = uploading.get(people.alf, f"{row['id']}/url").json()["url"]
    led = uploading.app.get(link, follow_redirects=False)
    assert led.status_code == 307, led.text
    assert led.headers["Cache-Control"] == "private, no-store"
    original = httpx.get(led.headers["Location"])
    assert original.content == data
    assert original.headers["Content-Disposition"] == "attachment; filename*=UTF-8''kiln%20%C3%A9.html;"


def test_a_repeated_completion_is_one_document(uploading: Uploads, people: People, home: str):
    ticket = uploading.put(people.ann, home, page("The kiln is hot."))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: uploading.finish(people.ann, ticket), range(8)))
    assert {response.status_code for response in answers} == {202}
    (document,) = {response.json()["id"] for response in answers}
    assert uploading.world.sql(
        "select count(*) from rag.jobs where kind = 'ingestion' and document_id = %s", document
    ) == [(1,)]
    uploading.work()
    second = uploading.finish(people.ann, ticket).json()
    assert (second["id"], second["status"]) == (document, "completed")
    # And not another one once it is deleted.
    people.ann.request("DELETE", f"/api/v1/documents/{document}")
    assert error(uploading.finish(people.ann, ticket), 404)["code"] == "upload_not_found"
    uploading.remove()
    assert error(uploading.finish(people.ann, ticket), 404)["code"] == "upload_not_found"


def test_an_upload_is_accepted_only_after_the_file_arrived(uploading: Uploads, people: People, home: str):
    begun = uploading.begin(people.ann, home).json()
    assert error(uploading.finish(people.ann, begun["upload"]), 404)["code"] == "upload_not_found"
    client().put(begun["upload_url"], content=page("The kiln is hot."))
    assert uploading.finish(people.ann, begun["upload"]).status_code == 202


def test_an_upload_ticket_expires(
    uploading: Uploads, people: People, world: World, home: str, monkeypatch: pytest.MonkeyPatch
):
    first, second = (uploading.put(people.ann, home, page(f"Kiln {number}.")) for number in range(2))
    later = time.time() + 7201
    monkeypatch.setattr("shared.documents.direct_uploads.time", SimpleNamespace(time=lambda: later))
    assert error(uploading.finish(people.ann, first), 400)["code"] == "upload_expired"
    monkeypatch.undo()
    # The database has its own clock.
    world.sql("update rag.object_removals set expected_until = now() - interval '1 second'")
    assert error(uploading.finish(people.ann, second), 404)["code"] == "upload_not_found"


def test_a_tier_s_file_size_limit_ignores_the_declared_size(uploading: Uploads, people: People, home: str):
    uploading.world.tier(people.acme, file_bytes=40)
    refused = error(uploading.begin(people.ann, home, 41), 413)
    assert (refused["code"], refused["details"]) == ("file_too_large", {"collection_id": home})
    begun = uploading.begin(people.ann, home, 40).json()
    client().put(begun["upload_url"], content=page("The kiln is hot.", 40))
    assert error(uploading.finish(people.ann, begun["upload"]), 413)["code"] == "file_too_large"
    assert uploading.world.sql("select count(*) from rag.documents where collection_id = %s", home) == [(0,)]


def test_an_upload_is_limited_to_the_parser_s_maximum(uploading: Uploads, people: People, home: str):
    large = error(uploading.begin(people.ann, home, MAX_BYTES + 1), 413)
    assert large["code"] == "file_too_large"
    assert large["message"] == "A file may have at most 100 MB. Divide it, and upload the parts."
    assert uploading.begin(people.ann, home, MAX_BYTES).status_code == 201


def test_a_file_too_large_for_a_request_is_directed_to_the_upload(people: People, home: str):
    answer = upload(people.ann, home, b"x" * (IN_A_REQUEST + 1))
    assert "POST /documents/upload" in error(answer, 413)["message"]


def test_an_unsupported_file_type_is_refused_before_the_upload(uploading: Uploads, people: People, home: str):
    old = "an old Office file"
    files = (("a.doc", old), ("a.msg", old), ("a.tar.gz", "an archive"), ("a.EXE", "no document"))
    for name, text in files:
        refused = error(uploading.begin(people.ann, home, name=name), 400)
        assert refused["code"] == "unsupported_file_type"
        assert text in refused["message"]


BAD_FIELDS: list[tuple[Row, str]] = [
    ({"collection_id": None}, "collection_id"), ({"filename": ""}, "filename"), ({"title": " "}, "title"),
    ({"size_bytes": 0}, "size_bytes"), ({"metadata": {"a": "b" * 10_001}}, "metadata"),
    ({"external_id": ""}, "external_id"), ({"content_type": "x" * 256}, "content_type"),
]  # fmt: skip


def test_invalid_upload_fields_are_refused_by_name(
    subtests: pytest.Subtests, uploading: Uploads, people: People, home: str
):
    for changed, field in BAD_FIELDS:
        with subtests.test(changed=changed):
            body = {"collection_id": home, "filename": "a.pdf", "size_bytes": 1, **changed}
            assert error(uploading.post(people.ann, "upload", body), 400)["details"] == {"field": field}
    assert uploading.server.asked == []


def test_without_a_bucket_uploads_are_refused(people: People, home: str):
    body = {"collection_id": home, "filename": "a.pdf", "size_bytes": 1}
    for path, text in (("upload", body), ("uploaded", {"upload": "x"})):
        refused = error(people.ann.request("POST", f"/api{PATH}/{path}", text), 404)
        assert refused["code"] == "storage_off"


def test_a_storage_outage_is_reported_as_such(
    uploading: Uploads, people: People, home: str, caplog: pytest.LogCaptureFixture
):
    ticket = uploading.put(people.ann, home, page("The kiln is hot."))
    row = uploading.bring(people.ann, home, page("The kiln is cold."))
    link = uploading.get(people.ann, f"{row['id']}/url").json()["url"]
    uploading.server.fault = 503
    for answer in (
        uploading.begin(people.ann, home),
        uploading.finish(people.ann, ticket),
        uploading.app.get(link, follow_redirects=False),
    ):
        failed = error(answer, 500)
        assert (failed["type"], failed["code"]) == ("server_error", "storage_failed")
        assert failed["message"] == "The file storage could not answer. Please try again."
    logged = " ".join(str(vars(record)) for record in caplog.records)
    assert logged.count("'because': 'storage 503'") == 3
    for secret in (ticket.rpartition(".")[0], "token=", "eyJ"):
        assert secret not in logged


def test_an_admin_uploads_into_a_member_s_private_collection(uploading: Uploads, people: People):
    own = people.ann.request("POST", "/api/v1/collections", {"name": "own", "private": True}).json()["id"]
    row = uploading.bring(people.ada, own, page("The kiln is hot."))
    assert (row["user_id"], row["owner_id"]) == (people.ada.id, people.ann.id)
    assert uploading.work() == BatchResult(claimed=1, completed=1)
    for actor in (people.ann, people.ada):
        link = uploading.get(actor, f"{row['id']}/url").json()["url"]
        led = uploading.app.get(link, follow_redirects=False).headers["Location"]
        assert httpx.get(led).content == page("The kiln is hot.")
    assert uploading.get(people.alf, f"{row['id']}/url").status_code == 404


# -- the worker ---------------------------------------------------------------------------------------


def test_a_duplicate_upload_ends_before_embedding(uploading: Uploads, people: People, home: str):
    data = page("The kiln is hot.")
    first = uploading.bring(people.ann, home, data)
    uploading.work()
    second = uploading.bring(people.alf, home, data, name="other.html")
    private = uploading.bring(people.alf, home, data, private=True)
    uploading.work()
    failed = uploading.state_of(people.ann, second)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "duplicate_document")
    assert uploading.state_of(people.ann, first)["status"] == "completed"
    assert uploading.state_of(people.alf, private)["status"] == "completed"
    # Nor the other way, as a request.
    assert error(upload(people.ann, home, data), 409)["details"]["document_id"] == first["id"]


def test_a_failed_upload_is_replaced_by_its_retry(uploading: Uploads, people: People, home: str):
    rows = []
    for _ in range(2):
        rows.append(uploading.bring(people.ann, home, b"<!--" + b"x" * 100 + b"-->"))
        uploading.work()
        assert uploading.state_of(people.ann, rows[-1])["error"]["code"] == "empty_file"
    assert uploading.get(people.ann, rows[0]["id"]).status_code == 404
    assert uploading.remove() == 1
    assert uploading.paths == {uploading.path_of(rows[1])}


def test_a_deleted_object_is_a_failure_with_a_reason(uploading: Uploads, people: People, home: str):
    row = uploading.bring(people.ann, home, page("The kiln is hot."))
    uploading.world.sql("delete from storage.objects")
    assert uploading.work() == BatchResult(claimed=1, failed=1)
    assert uploading.state_of(people.ann, row)["error"]["code"] == "original_gone"
    link = uploading.get(people.ann, f"{row['id']}/url").json()["url"]
    answer: Any = uploading.app.get(link, follow_redirects=False)
    assert error(answer, 404)["code"] == "original_not_found"


def test_a_storage_outage_postpones_documents(uploading: Uploads, people: People, home: str):
    due = "update rag.jobs set due_at = now() where document_id = %s"
    for fault in [503, 404]:
        row = uploading.bring(people.ann, home, page(f"The kiln has {fault} degrees."))
        uploading.server.fault = fault
        assert uploading.work() == BatchResult(claimed=1, postponed=1), fault
        waiting = uploading.state_of(people.ann, row)
        assert (waiting["status"], waiting["error"]["code"]) == ("processing", "storage_failed")
        uploading.server.fault = None
        uploading.world.sql(due, row["id"])
        assert uploading.work() == BatchResult(claimed=1, completed=1)


def test_the_worker_reads_no_more_than_the_tier_allows(uploading: Uploads, people: People, home: str):
    row = uploading.bring(people.ann, home, page("The kiln is hot.", 100))
    uploading.world.tier(people.acme, file_bytes=50)
    assert uploading.work() == BatchResult(claimed=1, failed=1)
    assert uploading.state_of(people.ann, row)["error"]["code"] == "file_too_large"


def test_a_new_version_replaces_the_document_and_its_object(uploading: Uploads, people: People, home: str):
    first = uploading.bring(people.ann, home, page("The kiln is hot."), external_id="shelf/kiln")
    uploading.work()
    older = uploading.path_of(first)
    second = uploading.bring(people.alf, home, page("The oven is cold."), external_id="shelf/kiln")
    assert second["id"] == first["id"]
    assert people.ann.search("kiln").json()["results"][0]["snippet"] == "The kiln is hot."
    uploading.work()
    assert people.ann.search("oven").json()["results"][0]["snippet"] == "The oven is cold."
    assert uploading.remove() == 1
    assert uploading.paths == {uploading.path_of(second)}
    assert older not in uploading.paths
    # A text takes its place too.
    body = {"collection_id": home, "content": "It rains.", "external_id": "shelf/kiln"}
    assert people.ann.request("POST", "/api/v1/documents/text", body).status_code == 202
    assert uploading.remove() == 1
    assert uploading.paths == set()


# -- what goes ----------------------------------------------------------------------------------------


def delete_document(actor: Actor, world: World, row: Row) -> None:
    assert actor.request("DELETE", f"/api/v1/documents/{row['id']}").status_code == 204


def delete_collection(actor: Actor, world: World, row: Row) -> None:
    address = f"/api/v1/collections/{row['collection_id']}?cascade=true"
    # A key that may not write documents deletes them with their collection.
    token = actor.key_token(scopes=["collections:manage"])
    assert actor.request("DELETE", address, token=token).status_code == 204


def delete_org(actor: Actor, world: World, row: Row) -> None:
    world.sql("delete from rag.orgs where id = %s", row["org_id"])


@pytest.mark.parametrize("delete", [delete_document, delete_collection, delete_org])
def test_an_object_is_deleted_with_its_document(uploading: Uploads, people: People, home: str, delete: Any):
    row = uploading.bring(people.ann, home, page("The kiln is hot."))
    other = uploading.bring(people.bob, collection(people.bob, "docs"), page("The kiln is hot."))
    uploading.work()
    delete(people.ann, uploading.world, row)
    assert len(uploading.paths) == 2
    assert uploading.remove() == 1
    assert uploading.paths == {uploading.path_of(other)}
    # Until it cannot be stored again.
    assert uploading.world.sql("select due_at = storable_until from rag.object_removals") == [(True,)]
    uploading.world.sql("update rag.object_removals set due_at = now(), storable_until = now()")
    assert uploading.remove() == 1
    assert uploading.world.sql("select count(*) from rag.object_removals") == [(0,)]


def test_an_object_stored_again_by_its_link_is_deleted_again(uploading: Uploads, people: People, home: str):
    data = page("The kiln is hot.")
    begun = uploading.begin(people.ann, home, len(data)).json()
    assert client().put(begun["upload_url"], content=data).status_code == 200
    row: Row = uploading.finish(people.ann, begun["upload"]).json()
    delete_document(people.ann, uploading.world, row)
    assert uploading.remove() == 1
    assert client().put(begun["upload_url"], content=data).status_code == 200
    assert len(uploading.paths) == 1
    uploading.world.sql("update rag.object_removals set due_at = now(), storable_until = now()")
    assert uploading.remove() == 1
    assert uploading.paths == set()


def test_a_failed_deletion_does_not_block_other_objects(uploading: Uploads, people: People, home: str):
    stuck, *others = [uploading.bring(people.ann, home, page(f"Kiln {number}")) for number in range(4)]
    path = uploading.path_of(stuck)
    for row in (stuck, *others):
        delete_document(people.ann, uploading.world, row)
    uploading.server.stuck = path
    assert uploading.remove() == 3
    assert uploading.paths == {path}


def test_object_deletions_are_fair_between_orgs(uploading: Uploads, people: People, home: str):
    for number in range(3):
        row = uploading.bring(people.ann, home, page(f"Kiln {number}"))
        delete_document(people.ann, uploading.world, row)
    theirs = uploading.bring(people.bob, collection(people.bob, "docs"), page("The oven is cold."))
    delete_document(people.bob, uploading.world, theirs)
    claimed = uploading.world.as_role("rag_worker", "select org_id::text from rag_claim_removals(2)")
    assert {org for (org,) in claimed} == {people.acme.id, people.bolt.id}


def test_an_object_is_deleted_although_its_owner_left(uploading: Uploads, people: People, home: str):
    row = uploading.bring(people.ann, home, page("The kiln is hot."), private=True)
    delete_document(people.ada, uploading.world, row)
    uploading.world.sql("delete from auth.users where id = %s", people.ann.id)
    assert uploading.remove() == 1
    assert uploading.paths == set()


def test_a_failed_deletion_is_retried_with_growing_delays(uploading: Uploads, people: People, home: str):
    row = uploading.bring(people.ann, home, page("The kiln is hot."))
    delete_document(people.ann, uploading.world, row)
    uploading.server.fault = 503
    minutes = "round(extract(epoch from due_at - clock_timestamp()) / 60)"
    for attempt in range(1, 4):
        assert uploading.remove() == 0
        pause = uploading.world.sql(f"select attempts, {minutes} from rag.object_removals")
        assert pause == [(attempt, 2 ** (attempt - 1))]
        assert uploading.remove() == 0, "not before its time"
        uploading.world.sql("update rag.object_removals set due_at = now() where expected_until is null")
    uploading.server.fault = None
    assert uploading.remove() == 1
    assert uploading.paths == set()


def test_abandoned_uploads_are_deleted(uploading: Uploads, people: People, home: str):
    uploading.put(people.ann, home, page("Forgotten."))
    document = uploading.bring(people.ann, home, page("The kiln is hot."))
    assert uploading.remove() == 0
    assert uploading.world.sql("select due_at - created_at from rag.object_removals") == [
        (timedelta(hours=3),)
    ]
    uploading.world.sql("update rag.object_removals set due_at = now()")
    assert uploading.remove() == 1
    assert uploading.paths == {uploading.path_of(document)}


def test_the_documented_query_finds_orphaned_objects(uploading: Uploads, people: People, home: str):
    query = re.compile(r"^(select name from storage.objects[^;]+);", re.MULTILINE)
    (statement,) = query.findall((ROOT / "docs" / "operations.md").read_text())
    uploading.bring(people.ann, home, page("The kiln is hot."))
    uploading.put(people.ann, home, page("Still to be brought."))
    uploading.put(people.ann, home, page("Lost."), name="lost.html")
    assert uploading.world.sql(statement) == []
    uploading.world.sql("delete from rag.object_removals where path ~ 'lost.html$'")
    ((name,),) = uploading.world.sql(statement)
    assert name.endswith("/lost.html")


def test_the_scheduled_call_deletes_objects_as_well(uploading: Uploads, people: People, home: str):
    from functions import ingest

    delete_document(people.ann, uploading.world, uploading.bring(people.ann, home, page("The kiln is hot.")))
    assert json.loads(ingest.work(uploading.services).model_dump_json())["idle"] is True
    assert uploading.paths == set()
