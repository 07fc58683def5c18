"""What happens to collections and documents is told to who listens for it: signed, and if it happened."""

import base64
import hashlib
import hmac
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from shared.documents import collections, documents, webhooks
from shared.documents.webhook_delivery import WebhookSender
from shared.errors import Conflict
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.process_faults import long_lock_waits, wait_for_waiters
from tests.shared.webhook_documents import (
    OF_COLLECTIONS,
    OF_DOCUMENTS,
    bring,
    delivered_events,
    listen,
    pending_count,
)
from tests.stand_in_server import StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")


def test_document_events_are_delivered(
    services: Services, people: People, worker: Worker, courier: WebhookSender, home: str, receiver: StandIn
):
    listen(services, people, f"{receiver.url}/hook?a=1", OF_DOCUMENTS)
    document = bring(services, people.ann, home)
    worker.work()
    documents.delete(services.database, people.ann.principal, document)
    assert courier.deliver() == BatchResult(claimed=3, completed=3)
    assert courier.deliver() == BatchResult()
    started, completed, deleted = delivered_events(receiver)
    about = {"id": document, "collection_id": home}
    assert started["data"] == {"object": {**about, "status": "processing"}}
    assert completed["data"] == {"object": {**about, "status": "completed", "chunk_count": 1}}
    assert deleted["data"]["object"].items() >= about.items()
    assert completed["type"] == "document.processing_completed"
    assert set(completed) == {"id", "type", "created", "data"}
    assert isinstance(completed["created"], int)
    assert all(body["id"].startswith("evt_") for body in (started, completed, deleted))
    assert {request.path for request in receiver.requests} == {"/hook?a=1"}


def test_a_delivery_has_a_valid_standard_signature(
    services: Services, people: People, courier: WebhookSender, home: str, receiver: StandIn
):
    secret = listen(services, people, receiver.url, OF_DOCUMENTS)["secret"]
    bring(services, people.ann, home)
    courier.deliver()
    (request,) = receiver.requests
    assert Webhook(secret).verify(request.body, request.headers) == request.json
    assert request.headers["webhook-id"] == request.json["id"]
    # And by hand, as the specification says it.
    name, moment = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    seal = hmac.digest(key, f"{name}.{moment}.".encode() + request.body, hashlib.sha256)
    assert request.headers["webhook-signature"] == f"v1,{base64.b64encode(seal).decode()}"
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(request.body.replace(b"processing", b"completed"), request.headers)
    assert "authorization" not in request.headers


def test_both_secrets_sign_during_a_rotation(
    services: Services, people: People, courier: WebhookSender, home: str, receiver: StandIn
):
    webhook = listen(services, people, receiver.url, OF_DOCUMENTS)
    renewed = webhooks.rotate(services.database, people.ada.principal, webhook["id"], 60)
    assert renewed["secret"] != webhook["secret"]
    bring(services, people.ann, home)
    courier.deliver()
    latest = webhooks.rotate(services.database, people.ada.principal, webhook["id"], 0)
    bring(services, people.ann, home, "The oven is cold.")
    courier.deliver()
    first, second = receiver.requests
    for secret in (webhook["secret"], renewed["secret"]):
        Webhook(secret).verify(first.body, first.headers)
    Webhook(latest["secret"]).verify(second.body, second.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(renewed["secret"]).verify(second.body, second.headers)


def test_a_failed_document_is_delivered_with_its_reason(
    services: Services, people: People, worker: Worker, courier: WebhookSender, home: str, receiver: StandIn
):
    listen(services, people, receiver.url, ["document.processing_failed"])
    bring(services, people.ann, home, "GIF89a", filename="a.gif")
    worker.work()
    courier.deliver()
    (failed,) = delivered_events(receiver)
    assert failed["data"]["object"]["status"] == "failed"
    assert failed["data"]["object"]["error"]["code"] == "unsupported_file_type"
    assert "tesseract" in failed["data"]["object"]["error"]["message"]


def test_a_document_given_up_by_the_worker_is_delivered(
    services: Services, people: People, world: World, worker: Worker, courier: WebhookSender, home: str,
    receiver: StandIn,
):  # fmt: skip
    listen(services, people, receiver.url, ["document.processing_failed"])
    bring(services, people.ann, home)
    world.sql(
        "update rag.jobs set state = 'running', lease = gen_random_uuid(), attempts = 16, due_at = now()"
    )
    worker.work()
    courier.deliver()
    (failed,) = delivered_events(receiver)
    assert failed["data"]["object"]["error"]["code"] == "processing_failed"


def test_a_synchronous_document_is_delivered_with_its_chunk_count(
    services: Services, people: People, courier: WebhookSender, receiver: StandIn
):
    listen(services, people, receiver.url, [*OF_COLLECTIONS, *OF_DOCUMENTS])
    new = NewDocument(org_id=people.acme.id, title="Kiln", text="The kiln is hot.", external_id="kiln")
    for _ in range(2):
        ingest(services.database, services.embedder, people.ann.principal, new)
    courier.deliver()
    created, *completed = delivered_events(receiver)
    assert (created["type"], created["data"]["object"]["name"]) == ("collection.created", "default")
    assert [body["data"]["object"]["chunk_count"] for body in completed] == [1, 1]


def test_collection_events_are_delivered_without_events_of_their_documents(
    services: Services, people: People, courier: WebhookSender, receiver: StandIn
):
    listen(services, people, receiver.url, [*OF_COLLECTIONS, "document.deleted"])
    ann = people.ann.principal
    home = collections.create(services.database, ann, {"name": "docs"})["id"]
    collections.update(services.database, ann, home, {"name": "kilns"})
    for number in range(3):
        bring(services, people.ann, home, f"Kiln {number}")
    collections.delete(services.database, ann, home, cascade=True)
    courier.deliver()
    assert [(body["type"], body["data"]["object"]) for body in delivered_events(receiver)] == [
        ("collection.created", {"id": home, "name": "docs"}),
        ("collection.updated", {"id": home, "name": "kilns"}),
        ("collection.deleted", {"id": home, "name": "kilns"}),
    ]


def test_rolled_back_changes_are_not_delivered(services: Services, people: People, world: World, home: str):
    """The outbox is written in the transaction of what it tells."""
    listen(services, people, "https://hooks.example/", OF_DOCUMENTS)
    bring(services, people.ann, home)
    assert pending_count(world) == 1
    with pytest.raises(Conflict):
        bring(services, people.ann, home)
    assert pending_count(world) == 1


def test_events_are_delivered_only_to_matching_webhooks(
    services: Services, people: People, world: World, home: str
):
    other = collections.create(services.database, people.ann.principal, {"name": "other"})["id"]
    there = listen(services, people, "https://hooks.example/1", OF_DOCUMENTS, collection_id=home)
    everywhere = listen(services, people, "https://hooks.example/2", OF_DOCUMENTS)
    listen(services, people, "https://hooks.example/3", ["document.deleted"])
    listen(services, people, "https://hooks.example/4", OF_DOCUMENTS, collection_id=other)
    off = listen(services, people, "https://hooks.example/5", OF_DOCUMENTS)
    webhooks.update(services.database, people.ada.principal, off["id"], {"enabled": False})
    bring(services, people.ann, home)
    rows = world.sql("select webhook_id::text, event_id from rag.deliveries")
    assert {webhook for webhook, _ in rows} == {there["id"], everywhere["id"]}
    assert len({event for _, event in rows}) == 1


def test_a_concurrently_deleted_webhook_blocks_no_writer(
    services: Services, people: People, world: World, home: str
):
    going = listen(services, people, "https://hooks.example/1", OF_DOCUMENTS)
    staying = listen(services, people, "https://hooks.example/2", OF_DOCUMENTS)
    stack = world.stack
    with (
        long_lock_waits(stack),
        psycopg.connect(stack.database_url()) as deleting,
        ThreadPoolExecutor(1) as beside,
    ):
        deleting.execute("delete from rag.webhooks where id = %s", [going["id"]])
        writing = beside.submit(bring, services, people.ann, home)
        wait_for_waiters(stack, 1)
        deleting.commit()
        writing.result()
    assert world.sql("select webhook_id::text from rag.deliveries") == [(staying["id"],)]


def test_a_collection_s_own_webhook_gets_its_deletion(
    services: Services, people: People, courier: WebhookSender, home: str, receiver: StandIn
):
    listen(services, people, receiver.url, ["collection.deleted"], collection_id=home)
    collections.delete(services.database, people.ann.principal, home, cascade=False)
    assert courier.deliver() == BatchResult(claimed=1, completed=1)
