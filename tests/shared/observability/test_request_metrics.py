"""Durations and tokens of requests: complete over all instances, also after a failure; no user, no text."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from functions import metrics, rag_search
from shared.api.app import lambda_handler
from shared.clients.postgrest import Database
from shared.config import Settings
from shared.observability.request_metrics import (
    BOUNDS,
    DATABASE_CALLS,
    MODEL_CALLS,
    REQUESTS,
    STEPS,
    TOKENS,
    RequestMetrics,
    request_metrics,
)
from shared.services import Services
from shared.tracing import Call, Step, Trace
from tests.actors import World
from tests.conftest import People
from tests.deploy.conftest import event
from tests.functions.app_server import client_of, services
from tests.functions.test_administration import put_jobs

TOKEN = "a token of the operator's"
SECOND = 1_000_000_000
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
Samples = dict[tuple[str, ...], float]


@pytest.fixture(autouse=True)
def empty(world: World) -> None:
    """Nothing of other tests: neither in this process nor in the database."""
    request_metrics.__init__()  # type: ignore[misc]
    world.sql("delete from rag.request_metrics")


@pytest.fixture
def operated(settings: Settings) -> Iterator[TestClient]:
    with services(settings, rag_metrics_token=TOKEN) as core, client_of(metrics.app, core) as client:
        yield client


def read(client: TestClient, **headers: str) -> str:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}", **headers})
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def samples(client: TestClient, family: str) -> Samples:
    """By the rest of the sample's name, its function, its other labels and its bucket."""
    (found,) = [each for each in text_string_to_metric_families(read(client)) if each.name == family]
    results = {}
    for sample in found.samples:
        labels = dict(sample.labels)
        own = [labels.pop(name) for name in ("function", "queue") if name in labels]
        bucket = [labels.pop("le")] if "le" in labels else []
        others = [labels[name] for name in sorted(labels)]
        results[sample.name.removeprefix(family), *own, *others, *bucket] = sample.value
    return results


def trace_of(function: str, *steps: tuple[str, float], status: int = 200, seconds: float = 1.0) -> Trace:
    trace = Trace("r", function, "POST")
    trace.steps += [Step(name, 0, round(spent * SECOND)) for name, spent in steps]
    trace.end("/x", status)
    trace.ended = trace.started + round(seconds * SECOND)
    return trace


def test_the_bounds_are_those_of_the_database(world: World):
    for name, bounds in BOUNDS.items():
        assert world.sql("select rag.request_metric_bounds(%s)", name) == [(list(bounds),)]


def test_histograms_are_exact_over_instances_that_record_at_the_same_time(
    operated: TestClient, core: Services, people: People
):
    """Eight processes' worth, in many batches, against a count by hand."""
    draw = random.Random(7)  # noqa: S311
    values = [[draw.choice((0.004, 0.3, 7, 61)) for _ in range(30)] for _ in range(8)]

    def instance(seconds: list[float]) -> None:
        own = RequestMetrics()
        for number, spent in enumerate(seconds):
            trace = trace_of("rag-search", ("match", spent), seconds=spent)
            own.add(trace, (core.database, people.ann.principal), soon=False)
            if number % 3 == 0:
                own.flush()
        own.flush()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(instance, values))
    every = [spent for seconds in values for spent in seconds]
    counted = samples(operated, STEPS)
    for bound in BOUNDS[STEPS]:
        expected = sum(spent <= bound for spent in every)
        assert counted["_bucket", "rag-search", "match", str(float(bound))] == expected
    assert counted["_bucket", "rag-search", "match", "+Inf"] == 240
    assert counted["_count", "rag-search", "match"] == 240
    assert counted["_sum", "rag-search", "match"] == pytest.approx(sum(every))
    assert samples(operated, REQUESTS)["_count", "rag-search", "200"] == 240


def test_requests_are_recorded_by_function_step_and_status(
    operated: TestClient, settings: Settings, people: People
):
    with (
        services(settings, rag_request_metrics=True) as core,
        client_of(rag_search.app, core) as client,
    ):
        for _ in range(3):
            client.post("/api/rag/search", json={"query_text": "x"}, headers=people.ann.headers())
        client.post("/api/rag/search", json={}, headers=people.ann.headers())
        client.post("/api/rag/search", json={"query_text": "x"}, headers={"Authorization": "Bearer a.b.c"})
        request_metrics.flush()
    requests = samples(operated, REQUESTS)
    assert {key[1:]: value for key, value in requests.items() if key[0] == "_count"} == {
        ("rag-search", "200"): 3,
        ("rag-search", "400"): 1,
        ("rag-search", "401"): 1,
    }
    steps = {key[2]: value for key, value in samples(operated, STEPS).items() if key[0] == "_count"}
    assert steps == {"authenticate": 5, "limit": 4, "embed": 3, "match": 3}
    calls = samples(operated, DATABASE_CALLS)
    assert calls["_count", "rag-search", "rag_match"] == 3
    assert calls["_count", "rag-search", "rag_check_rate_limit"] == 4


def test_models_are_recorded_by_operation_outcome_and_tokens(
    operated: TestClient, core: Services, people: People
):
    trace = trace_of("rag-answer")
    tokens = {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 30}
    trace.calls += [
        Call("chat", {"gen_ai.operation.name": "chat", **tokens}, 0, None, ended=2 * SECOND),
        Call("chat", {"gen_ai.operation.name": "chat"}, 0, None, ended=SECOND, error="generation_failed"),
    ]
    own = RequestMetrics()
    own.add(trace, (core.database, people.ann.principal), soon=False)
    own.flush()
    calls, counted = samples(operated, MODEL_CALLS), samples(operated, TOKENS)
    assert calls["_sum", "rag-answer", "chat", "ok"] == 2
    assert calls["_sum", "rag-answer", "chat", "error"] == 1
    assert counted["_sum", "rag-answer", "chat", "input"] == 900
    assert counted["_bucket", "rag-answer", "chat", "output", "64.0"] == 1
    assert counted["_bucket", "rag-answer", "chat", "output", "16.0"] == 0


def test_nothing_is_recorded_unless_the_settings_say_so(core: Services, people: People, world: World):
    with client_of(rag_search.app, core) as client:
        client.post("/api/rag/search", json={"query_text": "x"}, headers=people.ann.headers())
        assert request_metrics._histograms == {}
        request_metrics.flush()
    assert world.sql("select count(*) from rag.request_metrics") == [(0,)]


def test_a_batch_that_a_lost_database_did_not_take_is_sent_later(
    operated: TestClient, core: Services, people: People
):
    own = RequestMetrics()
    lost = Database("http://127.0.0.1:9", "anon", 0.05)
    own.add(trace_of("rag-search", status=500), (lost, people.ann.principal), soon=False)
    own.flush()
    lost.close()
    own.add(trace_of("rag-search", status=500), (core.database, people.ann.principal), soon=False)
    own.flush()
    assert samples(operated, REQUESTS)["_count", "rag-search", "500"] == 2


def test_requests_without_a_caller_wait_for_the_next_one(core: Services, people: People, world: World):
    own = RequestMetrics()
    own.add(trace_of("rag-search", status=401), None, soon=True)
    own.flush()
    assert world.sql("select count(*) from rag.request_metrics") == [(0,)]
    own.add(trace_of("rag-search"), (core.database, people.ann.principal), soon=False)
    own.flush()
    assert world.sql("select label, total from rag.request_metrics where name = %s order by 1", REQUESTS) == [
        ("200", 1), ("401", 1)
    ]  # fmt: skip


def test_a_server_sends_one_batch_for_the_requests_of_a_second(core: Services, people: People, world: World):
    own = RequestMetrics()
    for _ in range(50):
        own.add(trace_of("rag-search"), (core.database, people.ann.principal), soon=True)
    assert len([each for each in threading.enumerate() if isinstance(each, threading.Timer)]) == 1
    end = time.monotonic() + 20
    while world.sql("select sum(total) from rag.request_metrics") != [(50,)]:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_on_lambda_a_request_is_recorded_before_the_response(
    settings: Settings, people: People, world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "rag-search")
    with services(settings, rag_request_metrics=True) as core, client_of(rag_search.app, core):
        monkeypatch.setattr("shared.api.app._started", lambda app: core)
        handler = lambda_handler(rag_search.app)
        headers = {"content-type": "application/json", "authorization": f"Bearer {people.ann.token()}"}
        sent = event("http_api", "POST", "/api/rag/search", headers=headers, body='{"query_text": "x"}')
        assert handler(sent, None)["statusCode"] == 200
        rows = world.sql("select function, label, total from rag.request_metrics where name = %s", REQUESTS)
    assert rows == [("rag-search", "200", 1)]


def test_openmetrics_names_a_trace_for_the_buckets(operated: TestClient, core: Services, people: People):
    own = RequestMetrics()
    slow = trace_of("rag-search", seconds=7)
    for trace in (trace_of("rag-search", seconds=0.3), slow):
        own.add(trace, (core.database, people.ann.principal), soon=False)
    own.flush()
    text = read(operated, **OPENMETRICS)
    (family,) = [each for each in openmetrics_families(text) if each.name == REQUESTS]
    exemplars = {sample.labels["le"]: sample.exemplar for sample in family.samples if sample.exemplar}
    assert set(exemplars) == {"0.5", "10.0"}
    assert exemplars["10.0"].labels == {"trace_id": slow.trace_id}
    assert exemplars["10.0"].value == 7
    assert "trace_id" not in read(operated)


def test_queues_are_gauges(operated: TestClient, people: People, world: World):
    before = samples(operated, "rag_queue_items")["", "documents", "waiting"]
    put_jobs(world, people.acme.id, people.ann.id, 2, 400)
    assert samples(operated, "rag_queue_items")["", "documents", "waiting"] == before + 2
    assert samples(operated, "rag_queue_oldest_due_seconds")["", "documents"] >= 400


# -- attacks ----------------------------------------------------------------------------------------------

ENTRY: dict[str, Any] = {
    "name": REQUESTS, "function": "rag-search", "label": "200", "sum": 1.0, "total": 1,
    "buckets": [0] * 13, "exemplars": [None] * 14,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another_metric"},
        {"function": "eine Frage?"},
        {"label": "What is the code?"},
        {"total": 0},
        {"sum": -1},
        {"sum": "NaN"},
        {"buckets": [0] * 12},
        # More values in a bucket than there are.
        {"buckets": [2] * 13},
        {"exemplars": ["my question 0.1 1"] + [None] * 13},
        {"exemplars": [None] * 13},
    ],
)
def test_invalid_histograms_and_texts_are_refused(people: People, world: World, change: dict[str, Any]):
    answer = people.ann.rpc("rag_record_requests", {"histograms": [{**ENTRY, **change}, ENTRY]})
    assert answer.status_code == 400, answer.text
    assert world.sql("select count(*) from rag.request_metrics") == [(0,)]


def test_a_direct_call_neither_writes_nor_reads(people: People, world: World):
    """Also where the settings open guarded functions to direct callers."""
    assert people.ann.rpc("rag_record_requests", {"histograms": [ENTRY]}).status_code == 204
    direct = people.ann.direct()
    world.sql("update rag.settings set open_to_direct_callers = true")
    try:
        answer = direct.rpc("rag_record_requests", {"histograms": [ENTRY]})
        assert (answer.status_code, answer.json()["details"]) == (403, "functions_secret_required")
        rows = direct.rpc("rag_metrics", {}).json()
    finally:
        world.sql("update rag.settings set open_to_direct_callers = false")
    assert [row for row in rows if row["name"] == REQUESTS] == []
    assert world.sql("select total from rag.request_metrics") == [(1,)]


def test_a_member_s_token_reads_no_histogram_even_with_the_secret(people: People):
    assert people.ann.rpc("rag_record_requests", {"histograms": [ENTRY]}).status_code == 204
    assert [row for row in people.ada.rpc("rag_metrics", {}).json() if row["name"] == REQUESTS] == []
