"""What happens to collections and documents is told to who listens for it: signed, and if it happened."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from shared.documents import collections, documents
from shared.errors import Conflict
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.conftest import People
from tests.ingestion import ingest
from tests.process_faults import long_lock_waits, wait_for_waiters
from tests.shared.webhook_documents import OF_COLLECTIONS, OF_DOCUMENTS, Desk, delivered_events, pending_count
from tests.stand_in_server import StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")


def test_document_events_are_delivered(desk: Desk, worker: Worker, receiver: StandIn):
    desk.listen(f"{receiver.url}/hook?a=1")
    document = desk.bring()
    worker.work()
    documents.delete(desk.services.database, desk.people.ann.principal, document)
    assert desk.courier.deliver() == BatchResult(claimed=3, completed=3)
    assert desk.courier.deliver() == BatchResult()
    started, completed, deleted = delivered_events(receiver)
    about = {"id": document, "collection_id": desk.home}
    assert started["data"] == {"object": {**about, "status": "processing"}}
    assert completed["data"] == {"object": {**about, "status": "completed", "chunk_count": 1}}
    assert deleted["data"]["object"].items() >= about.items()
    assert completed["type"] == "document.processing_completed"
    assert set(completed) == {"id", "type", "created", "data"}
    assert isinstance(completed["created"], int)
    assert all(body["id"].startswith("evt_") for body in (started, completed, deleted))
    assert {request.path for request in receiver.requests} == {"/hook?a=1"}


def test_a_delivery_has_a_valid_standard_signature(desk: Desk, receiver: StandIn):
    secret = desk.listen(receiver.url)["secret"]
    desk.bring()
    desk.courier.deliver()
    (request,) = receiver.requests
    assert Webhook(secret).verify(request.body, request.headers) == request.json
    assert request.headers["webhook-id"] == request.json["id"]
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(request.body.replace(b"processing", b"completed"), request.headers)
    assert "authorization" not in request.headers


def test_both_secrets_sign_during_a_rotation(desk: Desk, receiver: StandIn):
    webhook = desk.listen(receiver.url)
    renewed = desk.rotate(webhook, 60)
    assert renewed["secret"] != webhook["secret"]
    desk.bring()
    desk.courier.deliver()
    latest = desk.rotate(webhook, 0)
    desk.bring("The oven is cold.")
    desk.courier.deliver()
    first, second = receiver.requests
    for secret in (webhook["secret"], renewed["secret"]):
        Webhook(secret).verify(first.body, first.headers)
    Webhook(latest["secret"]).verify(second.body, second.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(renewed["secret"]).verify(second.body, second.headers)


def test_a_failed_document_is_delivered_with_its_reason(desk: Desk, worker: Worker, receiver: StandIn):
    desk.listen(receiver.url, ["document.processing_failed"])
    desk.bring("GIF89a", filename="a.gif")
    worker.work()
    desk.courier.deliver()
    (failed,) = delivered_events(receiver)
    assert failed["data"]["object"]["status"] == "failed"
    assert failed["data"]["object"]["error"]["code"] == "unsupported_file_type"
    assert "tesseract" in failed["data"]["object"]["error"]["message"]


def test_a_document_given_up_by_the_worker_is_delivered(desk: Desk, worker: Worker, receiver: StandIn):
    desk.listen(receiver.url, ["document.processing_failed"])
    desk.bring()
    desk.world.sql(
        "update rag.jobs set state = 'running', lease = gen_random_uuid(), attempts = 16, due_at = now()"
    )
    worker.work()
    desk.courier.deliver()
    (failed,) = delivered_events(receiver)
    assert failed["data"]["object"]["error"]["code"] == "processing_failed"


def test_a_synchronous_document_is_delivered_with_its_chunk_count(
    desk: Desk, services: Services, people: People, receiver: StandIn
):
    desk.listen(receiver.url, [*OF_COLLECTIONS, *OF_DOCUMENTS])
    new = NewDocument(title="Kiln", text="The kiln is hot.", external_id="kiln")
    for _ in range(2):
        ingest(services.database, services.embedder, people.ann.principal, new)
    desk.courier.deliver()
    created, *completed = delivered_events(receiver)
    assert (created["type"], created["data"]["object"]["name"]) == ("collection.created", "default")
    assert [body["data"]["object"]["chunk_count"] for body in completed] == [1, 1]


def test_collection_events_are_delivered_without_events_of_their_documents(desk: Desk, receiver: StandIn):
    desk.listen(receiver.url, [*OF_COLLECTIONS, "document.deleted"])
    database, ann = desk.services.database, desk.people.ann
    home = desk.collection(ann, "new")
    collections.update(database, ann.principal, home, {"name": "kilns"})
    for number in range(3):
        replace(desk, home=home).bring(f"Kiln {number}")
    collections.delete(database, ann.principal, home, cascade=True)
    desk.courier.deliver()
    assert [(body["type"], body["data"]["object"]) for body in delivered_events(receiver)] == [
        ("collection.created", {"id": home, "name": "new"}),
        ("collection.updated", {"id": home, "name": "kilns"}),
        ("collection.deleted", {"id": home, "name": "kilns"}),
    ]


def test_rolled_back_changes_are_not_delivered(desk: Desk):
    """The outbox is written in the transaction of what it tells."""
    desk.listen("https://hooks.example/")
    desk.bring()
    assert pending_count(desk.world) == 1
    with pytest.raises(Conflict):
        desk.bring()
    assert pending_count(desk.world) == 1


def test_events_are_delivered_only_to_matching_webhooks(desk: Desk, home: str):
    home, other = desk.home, desk.collection(desk.people.ann, "other")
    there = desk.listen("https://hooks.example/1", collection_id=home)
    everywhere = desk.listen("https://hooks.example/2")
    desk.listen("https://hooks.example/3", ["document.deleted"])
    desk.listen("https://hooks.example/4", collection_id=other)
    off = desk.listen("https://hooks.example/5")
    desk.update(off, enabled=False)
    desk.bring()
    rows = desk.world.sql("select webhook_id::text, event_id from rag.deliveries")
    assert {webhook for webhook, _ in rows} == {there["id"], everywhere["id"]}
    assert len({event for _, event in rows}) == 1


def test_a_concurrently_deleted_webhook_blocks_no_writer(desk: Desk):
    going = desk.listen("https://hooks.example/1")
    staying = desk.listen("https://hooks.example/2")
    stack = desk.world.stack
    with (
        long_lock_waits(stack),
        psycopg.connect(stack.database_url()) as deleting,
        ThreadPoolExecutor(1) as beside,
    ):
        deleting.execute("delete from rag.webhooks where id = %s", [going["id"]])
        writing = beside.submit(desk.bring)
        wait_for_waiters(stack, 1)
        deleting.commit()
        writing.result()
    assert desk.world.sql("select webhook_id::text from rag.deliveries") == [(staying["id"],)]


def test_a_collection_s_own_webhook_gets_its_deletion(desk: Desk, receiver: StandIn):
    desk.listen(receiver.url, ["collection.deleted"], collection_id=desk.home)
    collections.delete(desk.services.database, desk.people.ann.principal, desk.home, cascade=False)
    assert desk.courier.deliver() == BatchResult(claimed=1, completed=1)
