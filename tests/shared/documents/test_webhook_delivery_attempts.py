"""How deliveries get through: to a real server, once each, and again when they do not."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import Any

import psycopg
import pytest

from shared.clients.ssrf_guard import AddressPolicy
from shared.documents import documents, webhook_delivery_attempts
from shared.documents.webhook_delivery_attempts import CLAIMED, PAUSES, WebhookSender
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult, work_until
from shared.services import Services
from tests.process_faults import long_lock_waits, wait_for_waiters
from tests.shared.conftest import sender
from tests.shared.webhook_documents import Desk, Row, failing_for, make_due, pending_count, states
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")


def test_a_failed_delivery_is_repeated(
    subtests: pytest.Subtests, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhook_delivery_attempts, "PAUSES", (60,))
    cases: dict[str, tuple[Reply, int | None, str]] = {
        "500": (Reply(status=500), 500, "refused"),
        "404": (Reply(status=404), 404, "refused"),
        "302": (Reply(status=302, headers={"Location": "/elsewhere"}), 302, "refused"),
        "dropped": (Reply(drop=True), None, "unreachable"),
        "silent": (Reply(delay=60), None, "timed_out"),
        "dripping": (Reply(json={}, drip=0.2, drip_head=True), None, "timed_out"),
    }
    for name, (reply, status, error) in cases.items():
        with subtests.test(name), StandIn() as service, ExitStack() as end:
            webhook = desk.listen(service.url)
            end.callback(desk.world.sql, "delete from rag.webhooks where id = %s", webhook["id"])
            desk.bring(f"Kiln {name}")
            service.replies(reply)
            with monkeypatch.context() as short:
                short.setattr(webhook_delivery_attempts, "SECONDS", 0.3 if error == "timed_out" else 60)
                assert desk.courier.deliver() == BatchResult(claimed=1)
            assert states(desk.world) == [("waiting", 1, status, error)]
            # Not at once.
            assert desk.courier.deliver() == BatchResult()
            make_due(desk.world)
            service._replies.clear()
            service.replies(Reply(json={}))
            assert desk.courier.deliver() == BatchResult(claimed=1, completed=1)
            assert states(desk.world) == [("done", 2, 200, None)]
            # On a machine that is busy for 0.3 seconds, the time is over before the first request.
            assert len(service.requests) == 2 or error == "timed_out"
            (_,) = {request.body for request in service.requests}
            endpoint = "select failing_since, paused_until from rag.endpoints"
            assert desk.world.sql(endpoint) == [(None, None)]


def test_the_response_body_is_not_waited_for(desk: Desk, service: StandIn):
    desk.listen(service.url)
    desk.bring()
    service.replies(Reply(body=b"x" * 10_000, drip=0.1))
    assert desk.courier.deliver() == BatchResult(claimed=1, completed=1)


@pytest.mark.parametrize("host", ["2130706433", "hooks.example"])
def test_nothing_is_sent_into_internal_networks(
    desk: Desk, services: Services, receiver: StandIn, monkeypatch: pytest.MonkeyPatch, host: str
):
    """However the address came to be there, and if a name server changes its mind: each attempt checks it."""
    real = socket.getaddrinfo

    def getaddrinfo(name: str, *more: Any, **named: Any) -> Any:
        return real("127.0.0.1" if name == "hooks.example" else name, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    desk.listen(f"http://{host}:{receiver.url.rpartition(':')[2]}/")
    desk.bring()
    assert sender(services, AddressPolicy()).deliver() == BatchResult(claimed=1)
    assert states(desk.world) == [("waiting", 1, None, "address_refused")]
    assert receiver.requests == []


def test_a_gone_endpoint_is_disabled(desk: Desk, service: StandIn):
    webhook = desk.listen(service.url)
    for number in range(2):
        desk.bring(f"Kiln {number}")
    later = "due_at = now() + interval '1 hour' where id = (select id from rag.deliveries limit 1)"
    desk.world.sql(f"update rag.deliveries set {later}")
    service.replies(Reply(status=410))
    desk.courier.deliver()
    # What waited ends with the next round.
    assert desk.courier.deliver() == BatchResult()
    assert sorted(states(desk.world)) == [
        ("failed", 0, None, "webhook_disabled"),
        ("failed", 1, 410, "refused"),
    ]
    assert desk.webhook(webhook)["enabled"] is False
    desk.bring("Another")
    assert pending_count(desk.world) == 0
    second = desk.update(webhook, enabled=True)
    assert (second["enabled"], second["failing_since"]) == (True, None)
    desk.bring("And another")
    assert pending_count(desk.world) == 1


def test_an_endpoint_without_success_for_five_days_is_disabled(desk: Desk, service: StandIn):
    webhook = desk.listen(service.url)
    desk.bring()
    service.replies(Reply(status=503))
    for failing, enabled in (("4 days", True), ("6 days", False)):
        failing_for(desk.world, failing)
        make_due(desk.world)
        desk.courier.deliver()
        row = desk.webhook(webhook)
        assert row["enabled"] is enabled
        assert row["failing_since"] is not None
    desk.courier.deliver()
    assert states(desk.world) == [("failed", 2, 503, "webhook_disabled")]


def test_a_failing_endpoint_is_retried_with_growing_delays(desk: Desk, service: StandIn):
    desk.listen(service.url)
    for number in range(5):
        desk.bring(f"Kiln {number}")
    service.replies(Reply(status=503))
    assert desk.courier.deliver().claimed == 5
    rests = "select extract(epoch from paused_until - now()) from rag.endpoints"
    for failing, least, most in (("1 minute", 55, 66), ("1 day", 3590, 3605)):
        failing_for(desk.world, failing)
        make_due(desk.world)
        # One, to try it with.
        assert desk.courier.deliver().claimed == 1
        assert least < desk.world.sql(rests)[0][0] < most


def test_a_repeatedly_refused_delivery_is_given_up(desk: Desk, service: StandIn):
    desk.listen(service.url)
    desk.bring()
    service.replies(Reply(status=500))
    for pause in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400):
        make_due(desk.world)
        desk.courier.deliver()
        assert pending_count(desk.world) == 1
        ((left,),) = desk.world.sql("select extract(epoch from due_at - now()) from rag.deliveries")
        assert pause - 60 < left <= pause
    make_due(desk.world)
    desk.courier.deliver()
    assert states(desk.world) == [("failed", len(PAUSES) + 1, 500, "refused")]
    make_due(desk.world)
    assert desk.courier.deliver() == BatchResult()


def test_concurrent_workers_send_nothing_twice(desk: Desk, receiver: StandIn):
    desk.listen(receiver.url)
    for number in range(30):
        desk.bring(f"Kiln {number}")

    def until_nothing_is_left(_: int) -> int:
        claimed = 0
        while sent := desk.courier.deliver().claimed:
            claimed += sent
        return claimed

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(until_nothing_is_left, range(4))) == 30
    assert len(receiver.requests) == 30
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 30


def test_a_delivery_of_a_dead_worker_is_sent_by_another(desk: Desk, receiver: StandIn):
    desk.listen(receiver.url)
    desk.bring()
    (claimed,) = desk.courier._call("rag_claim_deliveries", {})
    assert desk.courier.deliver() == BatchResult()
    make_due(desk.world)
    assert desk.courier.deliver() == BatchResult(claimed=1, completed=1)
    # And the first, if it was only slow, ends nothing.
    late = {name: claimed[name] for name in ("org_id", "delivery_id", "lease")}
    assert desk.courier._call("rag_end_delivery", {**late, "error": "timed_out"}) is False
    assert states(desk.world) == [("done", 2, 200, None)]


def test_deliveries_are_fair_between_orgs_and_endpoints(desk: Desk, receiver: StandIn):
    """However much others have that waits for longer."""
    for number in range(CLAIMED + 4):
        desk.listen(f"{receiver.url}/busy/{number}")
    for number in range(3):
        desk.bring(f"Kiln {number}")
    desk.bring_to_bolt(f"{receiver.url}/quiet")
    assert desk.courier.deliver() == BatchResult(claimed=CLAIMED, completed=CLAIMED)
    paths = [request.path for request in receiver.requests]
    assert paths.count("/quiet") == 1
    assert len(set(paths)) == CLAIMED


def test_a_slow_endpoint_does_not_delay_documents(desk: Desk, worker: Worker, service: StandIn):
    """They are worked on beside each other, and what they make of it is told before the end."""
    release = Event()
    service.replies(Reply(json={}, after=release))
    desk.listen(service.url)
    document = desk.bring()
    finished = Event()
    with ThreadPoolExecutor(1) as beside:
        end = time.monotonic() + 60
        delivering = beside.submit(
            work_until, desk.courier.deliver, end, lambda seconds: not finished.wait(seconds)
        )
        worker.work()
        response = documents.get(desk.services.database, desk.people.ann.principal, document)
        assert (response["status"], delivering.done()) == ("completed", False)
        finished.set()
        release.set()
        assert delivering.result()[0] == BatchResult(claimed=2, completed=2)


def test_an_unexpected_error_ends_the_delivery_and_blocks_no_other(desk: Desk, receiver: StandIn):
    """Names that no name server is asked about, a redirect to one, and an object that is none of ours."""
    for url in ("https://a..b/", f"https://{'a' * 64}.example/", "https://xn--/"):
        desk.listen(url)
    receiver._replies.clear()
    receiver.replies(Reply(status=302, headers={"Location": "http://xn--/"}), Reply(json={}))
    desk.listen(f"{receiver.url}/redirects")
    desk.bring()
    assert desk.courier.deliver() == BatchResult(claimed=4)
    ended = {(state, attempts, error) for state, attempts, _, error in states(desk.world)}
    assert ended == {("waiting", 1, "address_refused"), ("waiting", 1, "failed")}


def test_an_abandoned_delivery_ends_after_its_lease(desk: Desk):
    """Whatever the sender died of."""
    desk.listen("https://hooks.example/")
    desk.bring()
    desk.world.sql("update rag.deliveries set state = 'running', lease = gen_random_uuid(), attempts = 16")
    assert desk.courier.deliver() == BatchResult()
    assert [row[0] for row in states(desk.world)] == ["failed"]


def test_a_failure_after_a_long_pause_starts_a_new_series(desk: Desk, service: StandIn):
    webhook = desk.listen(service.url)
    service.replies(Reply(status=500))
    desk.bring()
    long_ago = "failing_since = now() - interval '9 days', paused_until = now() - interval '6 days'"
    desk.world.sql(f"update rag.endpoints set {long_ago}")
    desk.courier.deliver()
    row = desk.webhook(webhook)
    assert row["enabled"] is True
    assert states(desk.world) == [("waiting", 1, 500, "refused")]


def test_a_webhook_change_and_the_worker_do_not_deadlock(desk: Desk):
    """They lock the webhook, its address and its deliveries in one order."""
    webhook = desk.listen("https://hooks.example/")
    desk.bring()
    (claimed,) = desk.courier._call("rag_claim_deliveries", {})
    ended = {name: claimed[name] for name in ("org_id", "delivery_id", "lease")}
    stack = desk.world.stack
    with (
        long_lock_waits(stack),
        psycopg.connect(stack.database_url()) as changing,
        ThreadPoolExecutor(1) as beside,
    ):
        changing.execute("update rag.webhooks set enabled = true where id = %s", [webhook["id"]])
        gone = {**ended, "response_status": 410, "error": "refused"}
        ending = beside.submit(desk.courier._call, "rag_end_delivery", gone)
        wait_for_waiters(stack, 1)
        changing.execute("update rag.endpoints set url = url where webhook_id = %s", [webhook["id"]])
        changing.commit()
        assert ending.result() is True
    assert desk.webhook(webhook)["enabled"] is False


def test_an_old_secret_is_deleted_when_it_stops_signing(desk: Desk):
    webhook = desk.listen("https://hooks.example/")
    statement = "select old_secret is not null from rag.endpoints"
    for overlap, known in ((0, False), (60, True)):
        desk.rotate(webhook, overlap)
        assert desk.world.sql(statement) == [(known,)]
    desk.world.sql("update rag.endpoints set old_secret_until = now()")
    desk.courier.deliver()
    assert desk.world.sql(statement) == [(False,)]


def test_unresolvable_hosts_delay_only_their_own_org(
    desk: Desk, receiver: StandIn, monkeypatch: pytest.MonkeyPatch
):
    answered = Event()
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *more: Any, **named: Any) -> Any:
        if host.endswith(".example"):
            answered.wait(60)
        return real(host.replace("hooks.example", "127.0.0.1"), *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for number in range(12):
        desk.listen(f"http://hooks.example/{number}")
    desk.bring()
    desk.bring_to_bolt(receiver.url)
    with ThreadPoolExecutor(1) as beside:
        delivering = beside.submit(desk.courier.deliver)
        receiver.wait_for_requests(1)
        assert not answered.is_set()
        answered.set()
        # Nothing listens on port 80.
        assert delivering.result() == BatchResult(claimed=13, completed=1)
    assert len(receiver.requests) == 1


def test_deliveries_are_deleted_after_a_month(desk: Desk, receiver: StandIn):
    desk.listen(receiver.url)
    for number in range(2):
        desk.bring(f"Kiln {number}")
    desk.courier.deliver()
    desk.world.sql("update rag.deliveries set finished_at = now() - interval '31 days' where id = any (array("
              "select id from rag.deliveries limit 1))")  # fmt: skip
    desk.courier.deliver()
    assert len(states(desk.world)) == 1


@pytest.mark.parametrize("arguments", [{"max_items": 0}, {"max_items": 101}, {"lease_seconds": 4}], ids=str)
def test_a_claim_is_limited(courier: WebhookSender, arguments: Row):
    with pytest.raises(Exception, match="max_items must be between"):
        courier._call("rag_claim_deliveries", arguments)
