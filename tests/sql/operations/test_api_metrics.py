"""What requests did, counted and timed: each user's own rows, and /metrics' sums of them."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from functions import metrics
from shared.config import Settings
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import client_of, services_with

TOKEN = "a token of the operator's"


def measure(actor: Actor, name: str, value: float, label: str = "") -> None:
    one = {"name": name, "value": value, "label": label}
    assert actor.rpc("rag_record_metrics", {"measures": [one]}).status_code == 204


def samples(client: TestClient, family: str) -> dict[tuple[str, ...], float]:
    """By the sample's name and its labels' values."""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    by_name = {item.name: item for item in text_string_to_metric_families(answer.text)}
    if family not in by_name:
        return {}
    return {
        (sample.name, *(f"{label}={value}" for label, value in sorted(sample.labels.items()))): sample.value
        for sample in by_name[family].samples
    }


def grown(before: dict[Any, float], after: dict[Any, float]) -> dict[Any, float]:
    differences = {name: value - before.get(name, 0) for name, value in after.items()}
    return {name: value for name, value in differences.items() if value}


def test_counters_and_histograms_are_summed_over_all_users(people: People, settings: Settings):
    with (
        services_with(settings, rag_metrics_token=TOKEN) as services,
        client_of(metrics.app, services) as client,
    ):
        before = samples(client, "rag_query_requests"), samples(client, "rag_query_latency_seconds")
        for actor, seconds in ((people.ann, 0.02), (people.bob, 0.3), (people.ann, 100)):
            measure(actor, "rag_query_requests_total", 1, "success")
            measure(actor, "rag_query_latency_seconds", seconds, "success")
        measure(people.bob, "rag_query_requests_total", 1, "failure")
        counts = grown(before[0], samples(client, "rag_query_requests"))
        times = grown(before[1], samples(client, "rag_query_latency_seconds"))
    assert counts == {
        ("rag_query_requests_total", "status=success"): 3,
        ("rag_query_requests_total", "status=failure"): 1,
    }
    bucket = "rag_query_latency_seconds_bucket"
    assert (bucket, "le=0.01", "status=success") not in times
    assert times[bucket, "le=0.025", "status=success"] == 1
    assert times[bucket, "le=0.5", "status=success"] == 2
    assert times[bucket, "le=60.0", "status=success"] == 2
    assert times[bucket, "le=+Inf", "status=success"] == 3
    assert times["rag_query_latency_seconds_count", "status=success"] == 3
    assert times["rag_query_latency_seconds_sum", "status=success"] == pytest.approx(100.32)


def test_an_index_request_is_counted_and_timed_by_outcome(people: People, world: World):
    people.ann.post("/index", {"index_name": "x", "documents": [{"text": "The kettle."}]})
    people.ann.post("/retrieve", {"index_name": "nowhere", "query": "x"})
    counted = "select name, label, total from rag.api_metrics where user_id = %s order by name"
    assert world.sql(counted, people.ann.id) == [
        ("rag_index_latency_seconds", "success", 1),
        ("rag_index_requests_total", "success", 1),
        ("rag_retrieve_latency_seconds", "failure", 1),
        ("rag_retrieve_requests_total", "failure", 1),
    ]


def test_one_invalid_value_refuses_all(people: People, world: World):
    measured = {"name": "rag_query_requests_total", "label": "success", "value": 1}
    for value in (1_000_001, 1.7e308, -1):
        for more in ([], [measured]):
            answer = people.ann.rpc("rag_record_metrics", {"measures": [{**measured, "value": value}, *more]})
            assert answer.status_code == 400, (value, more, answer.text)
    assert world.sql("select count(*) from rag.api_metrics where user_id = %s", people.ann.id) == [(0,)]


def test_twenty_counters_of_one_call_are_all_counted(people: People, world: World):
    one = {"name": "rag_query_latency_seconds", "value": 0.02, "label": "success"}
    assert people.ann.rpc("rag_record_metrics", {"measures": [one] * 25}).status_code == 204
    counted = "select total, sum, buckets from rag.api_metrics where user_id = %s"
    ((total, sum_of_all, buckets),) = world.sql(counted, people.ann.id)
    assert (total, sum_of_all) == (20, pytest.approx(0.4))
    assert buckets == [0, 0] + [20] * 14
