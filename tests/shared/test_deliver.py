"""What happens is told: to a real server, signed, once each, and again when it does not get through."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from shared import collections, deliver, documents, webhooks
from shared.deliver import PAUSES, Courier, Sent
from shared.dialects.webhooks import event_of
from shared.documents import Brought
from shared.errors import Conflict
from shared.ingest import NewDocument, ingest
from shared.jobs import Jobs
from shared.networks import Networks
from shared.pipeline import Pipeline
from shared.work import Worker
from tests.actors import Actor, World
from tests.conftest import People
from tests.stand_in import Reply, StandIn

Row = dict[str, Any]
OF_COLLECTIONS = ["collection.created", "collection.updated", "collection.deleted"]
OF_DOCUMENTS = [
    "document.processing_started",
    "document.processing_completed",
    "document.processing_failed",
    "document.deleted",
]
# The receiver's, which is nobody else's.
OWN = Networks(["127.0.0.1/32"])


@pytest.fixture(autouse=True)
def nothing_waits(world: World, no_jobs: None) -> Iterator[None]:
    """Nothing that another test has left to be sent, and nothing left."""
    world.sql("delete from rag.webhooks")
    yield
    world.sql("delete from rag.webhooks")


@pytest.fixture
def moody() -> Iterator[StandIn]:
    """A receiver that answers what a test says."""
    with StandIn() as made:
        yield made


@pytest.fixture
def receiver(moody: StandIn) -> StandIn:
    """One that is always content."""
    moody.replies(Reply(json={}))
    return moody


@pytest.fixture
def courier(core: Pipeline) -> Courier:
    return Courier(core.database, core.require_signer(), OWN, event_of)


@pytest.fixture
def worker(core: Pipeline) -> Worker:
    return Worker(Jobs(core.database, core.require_signer()), core.embedder)


@pytest.fixture
def home(core: Pipeline, people: People) -> str:
    """Ann's collection."""
    return str(collections.create(core.database, people.ann.principal, {"name": "docs"})["id"])


def listen(core: Pipeline, people: People, url: str, events: list[str], **more: Any) -> webhooks.NewSecret:
    """Ada's webhook."""
    return webhooks.create(core.database, people.ada.principal, {"url": url, "events": events, **more})


def bring(core: Pipeline, actor: Actor, home: str, text: str = "The kiln is hot.", **more: Any) -> str:
    brought = Brought(text.encode(), "Kiln", content_type="text/plain", **more)
    return str(documents.bring(core.database, actor.principal, home, brought)["id"])


def told(receiver: StandIn) -> list[Row]:
    """The bodies that arrived, in the order of their events."""
    bodies = [request.json for request in receiver.requests]
    order = [*OF_COLLECTIONS, *OF_DOCUMENTS]
    return sorted(bodies, key=lambda body: order.index(body["type"]))


def waiting(world: World) -> int:
    return int(world.sql("select count(*) from rag.deliveries where state in ('waiting', 'running')")[0][0])


def states(world: World) -> list[tuple[Any, ...]]:
    return world.sql(
        "select state, attempts, response_status, error from rag.deliveries order by created_at, id"
    )


def at_once(world: World) -> None:
    """Whatever is left alone for a while, is left alone no longer."""
    world.sql("update rag.deliveries set due_at = now() where state in ('waiting', 'running')")
    world.sql("update rag.endpoints set rests_until = null")


# -- what is told -------------------------------------------------------------------------------------


def test_what_becomes_of_a_document_is_told(
    core: Pipeline, people: People, worker: Worker, courier: Courier, home: str, receiver: StandIn
):
    listen(core, people, f"{receiver.url}/hook?a=1", OF_DOCUMENTS)
    document = bring(core, people.ann, home)
    worker.work()
    documents.delete(core.database, people.ann.principal, document)
    assert courier.deliver() == Sent(claimed=3, delivered=3)
    assert courier.deliver() == Sent()
    started, completed, deleted = told(receiver)
    about = {"id": document, "collection_id": home}
    assert started["data"] == {"object": {**about, "status": "processing"}}
    assert completed["data"] == {"object": {**about, "status": "completed", "chunk_count": 1}}
    assert deleted["data"]["object"].items() >= about.items()
    assert completed["type"] == "document.processing_completed"
    assert set(completed) == {"id", "type", "created", "data"}
    assert isinstance(completed["created"], int)
    assert all(body["id"].startswith("evt_") for body in (started, completed, deleted))
    assert {request.path for request in receiver.requests} == {"/hook?a=1"}


def test_it_is_signed_as_receivers_check_it(
    core: Pipeline, people: People, courier: Courier, home: str, receiver: StandIn
):
    secret = listen(core, people, receiver.url, OF_DOCUMENTS).secret
    bring(core, people.ann, home)
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


def test_both_secrets_sign_while_there_are_two(
    core: Pipeline, people: People, courier: Courier, home: str, receiver: StandIn
):
    made = listen(core, people, receiver.url, OF_DOCUMENTS)
    renewed = webhooks.rotate(core.database, people.ada.principal, made.row["id"], 60)
    assert renewed.secret != made.secret
    bring(core, people.ann, home)
    courier.deliver()
    latest = webhooks.rotate(core.database, people.ada.principal, made.row["id"], 0)
    bring(core, people.ann, home, "The oven is cold.")
    courier.deliver()
    first, second = receiver.requests
    for secret in (made.secret, renewed.secret):
        Webhook(secret).verify(first.body, first.headers)
    Webhook(latest.secret).verify(second.body, second.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(renewed.secret).verify(second.body, second.headers)


def test_a_document_that_fails_is_told_with_its_reason(
    core: Pipeline, people: People, worker: Worker, courier: Courier, home: str, receiver: StandIn
):
    listen(core, people, receiver.url, ["document.processing_failed"])
    bring(core, people.ann, home, "GIF89a", filename="a.gif")
    worker.work()
    courier.deliver()
    (failed,) = told(receiver)
    assert failed["data"]["object"]["status"] == "failed"
    assert failed["data"]["object"]["error"]["code"] == "unsupported_file_type"
    assert "tesseract" in failed["data"]["object"]["error"]["message"]


def test_a_document_that_the_worker_gives_up_is_told(
    core: Pipeline, people: People, world: World, worker: Worker, courier: Courier, home: str,
    receiver: StandIn,
):  # fmt: skip
    listen(core, people, receiver.url, ["document.processing_failed"])
    bring(core, people.ann, home)
    world.sql(
        "update rag.jobs set state = 'running', lease = gen_random_uuid(), attempts = 16, due_at = now()"
    )
    worker.work()
    courier.deliver()
    (failed,) = told(receiver)
    assert failed["data"]["object"]["error"]["code"] == "processing_failed"


def test_a_document_that_is_put_at_once_is_told_with_its_chunks(
    core: Pipeline, people: People, courier: Courier, receiver: StandIn
):
    listen(core, people, receiver.url, [*OF_COLLECTIONS, *OF_DOCUMENTS])
    new = NewDocument(org_id=people.acme.id, title="Kiln", text="The kiln is hot.", external_id="kiln")
    for _ in range(2):
        ingest(core.database, core.embedder, people.ann.principal, new)
    courier.deliver()
    created, *completed = told(receiver)
    assert (created["type"], created["data"]["object"]["name"]) == ("collection.created", "default")
    assert [body["data"]["object"]["chunk_count"] for body in completed] == [1, 1]


def test_what_becomes_of_a_collection_is_told_and_its_documents_go_without_a_word(
    core: Pipeline, people: People, courier: Courier, receiver: StandIn
):
    listen(core, people, receiver.url, [*OF_COLLECTIONS, "document.deleted"])
    ann = people.ann.principal
    home = collections.create(core.database, ann, {"name": "docs"})["id"]
    collections.update(core.database, ann, home, {"name": "kilns"})
    for number in range(3):
        bring(core, people.ann, home, f"Kiln {number}")
    collections.delete(core.database, ann, home, cascade=True)
    courier.deliver()
    assert [(body["type"], body["data"]["object"]) for body in told(receiver)] == [
        ("collection.created", {"id": home, "name": "docs"}),
        ("collection.updated", {"id": home, "name": "kilns"}),
        ("collection.deleted", {"id": home, "name": "kilns"}),
    ]


def test_what_did_not_happen_is_not_told(core: Pipeline, people: People, world: World, home: str):
    """The outbox is written in the transaction of what it tells."""
    listen(core, people, "https://hooks.example/", OF_DOCUMENTS)
    bring(core, people.ann, home)
    assert waiting(world) == 1
    with pytest.raises(Conflict):
        bring(core, people.ann, home)
    assert waiting(world) == 1


def test_it_is_told_to_who_listens_for_it_there(core: Pipeline, people: People, world: World, home: str):
    other = collections.create(core.database, people.ann.principal, {"name": "other"})["id"]
    there = listen(core, people, "https://hooks.example/1", OF_DOCUMENTS, collection_id=home)
    everywhere = listen(core, people, "https://hooks.example/2", OF_DOCUMENTS)
    listen(core, people, "https://hooks.example/3", ["document.deleted"])
    listen(core, people, "https://hooks.example/4", OF_DOCUMENTS, collection_id=other)
    off = listen(core, people, "https://hooks.example/5", OF_DOCUMENTS)
    webhooks.update(core.database, people.ada.principal, off.row["id"], {"enabled": False})
    bring(core, people.ann, home)
    rows = world.sql("select webhook_id::text, event_id from rag.deliveries")
    assert {webhook for webhook, _ in rows} == {there.row["id"], everywhere.row["id"]}
    assert len({event for _, event in rows}) == 1


# -- how it gets through ------------------------------------------------------------------------------


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "SECONDS", 0.3)


@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (Reply(status=500), 500, "refused"),
        (Reply(status=404), 404, "refused"),
        (Reply(status=302, headers={"Location": "/elsewhere"}), 302, "refused"),
        (Reply(drop=True), None, "unreachable"),
        (Reply(delay=2), None, "timed_out"),
        (Reply(json={}, drip=0.2, drip_head=True), None, "timed_out"),
    ],
    ids=["500", "404", "302", "dropped", "silent", "dripping"],
)
def test_what_does_not_get_through_is_sent_again(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, moody: StandIn,
    monkeypatch: pytest.MonkeyPatch, reply: Reply, status: int | None, error: str,
):  # fmt: skip
    slow(monkeypatch)
    listen(core, people, moody.url, OF_DOCUMENTS)
    bring(core, people.ann, home)
    moody.replies(reply, Reply(json={}))
    assert courier.deliver() == Sent(claimed=1)
    assert states(world) == [("waiting", 1, status, error)]
    # Not at once.
    assert courier.deliver() == Sent()
    at_once(world)
    assert courier.deliver() == Sent(claimed=1, delivered=1)
    assert states(world) == [("done", 2, 200, None)]
    first, second = (json.loads(request.body) for request in moody.requests)
    assert first == second
    assert world.sql("select failing_since, rests_until from rag.endpoints") == [(None, None)]


def test_the_answer_s_body_is_waited_for_by_nobody(
    core: Pipeline, people: People, courier: Courier, home: str, moody: StandIn
):
    listen(core, people, moody.url, OF_DOCUMENTS)
    bring(core, people.ann, home)
    moody.replies(Reply(body=b"x" * 10_000, drip=0.1))
    assert courier.deliver() == Sent(claimed=1, delivered=1)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{}/", "http://2130706433:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://localhost:{}/"]
)  # fmt: skip
def test_nothing_is_sent_into_a_network_of_ours(
    core: Pipeline, people: People, world: World, home: str, receiver: StandIn, url: str
):
    """However the address came to be there: it is checked again before each attempt."""
    listen(core, people, url.format(receiver.url.rpartition(":")[2]), OF_DOCUMENTS)
    bring(core, people.ann, home)
    courier = Courier(core.database, core.require_signer(), Networks(), event_of)
    assert courier.deliver() == Sent(claimed=1)
    assert states(world) == [("waiting", 1, None, "address_refused")]
    assert receiver.requests == []


def test_who_is_gone_is_asked_no_more(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, moody: StandIn
):
    made = listen(core, people, moody.url, OF_DOCUMENTS)
    for number in range(2):
        bring(core, people.ann, home, f"Kiln {number}")
    world.sql("update rag.deliveries set due_at = now() + interval '1 hour' where id = any (array("
              "select id from rag.deliveries limit 1))")  # fmt: skip
    moody.replies(Reply(status=410))
    courier.deliver()
    assert sorted(states(world)) == [("failed", 0, None, "webhook_disabled"), ("failed", 1, 410, "refused")]
    ada = people.ada.principal
    assert webhooks.get(core.database, ada, made.row["id"])["enabled"] is False
    bring(core, people.ann, home, "Another")
    assert waiting(world) == 0
    again = webhooks.update(core.database, ada, made.row["id"], {"enabled": True})
    assert (again["enabled"], again["failing_since"]) == (True, None)
    bring(core, people.ann, home, "And another")
    assert waiting(world) == 1


def test_who_has_not_answered_for_five_days_is_turned_off(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, moody: StandIn
):
    made = listen(core, people, moody.url, OF_DOCUMENTS)
    bring(core, people.ann, home)
    moody.replies(Reply(status=503))
    for failing, enabled in (("4 days", True), ("6 days", False)):
        world.sql("update rag.endpoints set failing_since = now() - %s::interval", failing)
        at_once(world)
        courier.deliver()
        row = webhooks.get(core.database, people.ada.principal, made.row["id"])
        assert row["enabled"] is enabled
        assert row["failing_since"] is not None
    assert states(world) == [("failed", 2, 503, "webhook_disabled")]


def test_an_address_that_fails_is_left_alone_for_longer_and_longer(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, moody: StandIn
):
    listen(core, people, moody.url, OF_DOCUMENTS)
    for number in range(5):
        bring(core, people.ann, home, f"Kiln {number}")
    moody.replies(Reply(status=503))
    assert courier.deliver().claimed == 5
    rests = "select extract(epoch from rests_until - now()) from rag.endpoints"
    for failing, least, most in (("1 minute", 55, 66), ("1 day", 3590, 3605)):
        world.sql("update rag.endpoints set failing_since = now() - %s::interval", failing)
        at_once(world)
        # One, to try it with.
        assert courier.deliver().claimed == 1
        assert least < world.sql(rests)[0][0] < most


def test_what_is_refused_again_and_again_is_given_up(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, moody: StandIn
):
    listen(core, people, moody.url, OF_DOCUMENTS)
    bring(core, people.ann, home)
    moody.replies(Reply(status=500))
    for _ in PAUSES:
        at_once(world)
        courier.deliver()
        assert waiting(world) == 1
    at_once(world)
    courier.deliver()
    assert states(world) == [("failed", len(PAUSES) + 1, 500, "refused")]
    at_once(world)
    assert courier.deliver() == Sent()


def test_several_at_once_send_nothing_twice(
    core: Pipeline, people: People, courier: Courier, home: str, receiver: StandIn
):
    listen(core, people, receiver.url, OF_DOCUMENTS)
    for number in range(30):
        bring(core, people.ann, home, f"Kiln {number}")

    def until_nothing_is_left(_: int) -> int:
        claimed = 0
        while sent := courier.deliver().claimed:
            claimed += sent
        return claimed

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(until_nothing_is_left, range(4))) == 30
    assert len(receiver.requests) == 30
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 30


def test_what_a_courier_died_of_is_sent_by_another(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, receiver: StandIn
):
    listen(core, people, receiver.url, OF_DOCUMENTS)
    bring(core, people.ann, home)
    (claimed,) = courier._call("rag_claim_deliveries", {})
    assert courier.deliver() == Sent()
    at_once(world)
    assert courier.deliver() == Sent(claimed=1, delivered=1)
    # And the first, if it was only slow, ends nothing.
    late = {name: claimed[name] for name in ("org_id", "delivery_id", "lease")}
    assert courier._call("rag_end_delivery", {**late, "error": "timed_out"}) is False
    assert states(world) == [("done", 2, 200, None)]


def test_an_address_that_takes_long_keeps_no_other_waiting(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, receiver: StandIn
):
    """Of each as many as of any other."""
    busy = listen(core, people, f"{receiver.url}/busy", OF_DOCUMENTS)
    for number in range(20):
        bring(core, people.ann, home, f"Kiln {number}")
    quiet = listen(core, people, f"{receiver.url}/quiet", OF_DOCUMENTS)
    bring(core, people.ann, home, "Another")
    courier.deliver()
    paths = [request.path for request in receiver.requests]
    assert (paths.count("/quiet"), paths.count("/busy")) == (1, deliver.CLAIMED - 1)
    counts = "select count(*) from rag.deliveries where webhook_id = %s and state = 'done'"
    assert world.sql(counts, busy.row["id"]) == [(deliver.CLAIMED - 1,)]
    assert world.sql(counts, quiet.row["id"]) == [(1,)]


def test_what_ended_a_month_ago_is_forgotten(
    core: Pipeline, people: People, world: World, courier: Courier, home: str, receiver: StandIn
):
    listen(core, people, receiver.url, OF_DOCUMENTS)
    for number in range(2):
        bring(core, people.ann, home, f"Kiln {number}")
    courier.deliver()
    world.sql("update rag.deliveries set finished_at = now() - interval '31 days' where id = any (array("
              "select id from rag.deliveries limit 1))")  # fmt: skip
    courier.deliver()
    assert len(states(world)) == 1


@pytest.mark.parametrize("arguments", [{"wanted": 0}, {"wanted": 101}, {"lease_seconds": 4}], ids=str)
def test_nobody_claims_too_much(courier: Courier, arguments: Row):
    with pytest.raises(Exception, match="nobody may have"):
        courier._call("rag_claim_deliveries", arguments)
