"""metrics: for the operator alone, in Prometheus' own format, and true over all instances."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from functions import api_keys, metrics, rag_answer, rag_search
from shared.config import Settings
from tests.actors import Actor, World, hit_arguments
from tests.conftest import People
from tests.functions.app_server import app_with, client_of, services_with
from tests.functions.test_administration import put_jobs
from tests.sql.passages import deployed_with

TOKEN = "a token of the operator's"


@pytest.fixture
def operated(settings: Settings) -> Iterator[TestClient]:
    with app_with(metrics.app, settings, rag_metrics_token=TOKEN) as client:
        yield client


def read(client: TestClient) -> str:
    response = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200, response.text
    return str(response.text)


def counters(text: str) -> dict[tuple[str, str], float]:
    """By function and outcome."""
    family = next(iter(text_string_to_metric_families(text)))
    assert (family.name, family.type) == ("rag_requests", "counter")
    assert family.documentation
    by_name = {}
    for sample in family.samples:
        assert sample.name == "rag_requests_total"
        assert set(sample.labels) == {"function", "outcome"}
        by_name[(sample.labels["function"], sample.labels["outcome"])] = sample.value
    return by_name


def grown(client: TestClient, before: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    after = counters(read(client))
    return {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}


def test_without_a_configured_token_there_are_no_metrics(settings: Settings, people: People):
    with app_with(metrics.app, settings) as client:
        plain = client.get("/metrics")
        assert plain.status_code == 404
        assert plain.json()["error"]["code"] == "not_found"
        for bearer in (TOKEN, "None", people.ada.token()):
            response = client.get("/metrics", headers={"Authorization": f"Bearer {bearer}"})
            assert (response.status_code, response.text) == (404, plain.text)


BAD_AUTHORIZATIONS: list[str | None] = [
    None, "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN.upper()}", "Bearer ü",
]  # fmt: skip


def test_a_wrong_token_is_401(subtests: pytest.Subtests, operated: TestClient):
    for authorization in BAD_AUTHORIZATIONS:
        with subtests.test(authorization=authorization):
            headers = {} if authorization is None else {b"Authorization": authorization.encode()}
            response = operated.get("/metrics", headers=headers)
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "unauthorized"
            assert "rag_requests" not in response.text
            assert TOKEN not in response.text


def test_the_response_is_in_prometheus_text_format(operated: TestClient, people: People):
    people.ann.rpc("rag_check_rate_limit", hit_arguments())
    response = operated.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert counters(response.text)[("rag-search", "admitted")] >= 1
    assert response.text.startswith("# HELP rag_requests_total ")
    assert "# TYPE rag_requests_total counter" in response.text


def test_counters_are_complete_on_every_instance(operated: TestClient, people: People, settings: Settings):
    """Two processes' worth of pipelines, and the stack's own, serve; a third that served nothing tells."""
    before = counters(read(operated))
    with ExitStack() as instances:
        first = instances.enter_context(services_with(settings, rag_rate_limit_rag="3/minute"))
        second = instances.enter_context(services_with(settings, rag_rate_limit_rag="3/minute"))
        search = instances.enter_context(client_of(rag_search.app, first))
        answers = instances.enter_context(client_of(rag_answer.app, second))
        keys = instances.enter_context(client_of(api_keys.app, second))
        user = {"Authorization": f"Bearer {people.ann.token()}"}
        body = {"query_text": "x"}
        statuses = [search.post("/api/rag/search", json=body, headers=user).status_code for _ in range(2)]
        statuses += [answers.post("/api/rag/answer", json=body, headers=user).status_code for _ in range(3)]
        statuses += [search.post("/api/rag/search", json=body, headers=user).status_code]
        statuses += [keys.get("/api/keys", headers=user).status_code]
    assert statuses == [200, 200, 200, 429, 429, 429, 200]
    assert people.bob.search("x").status_code == 200
    assert grown(operated, before) == {
        ("rag-search", "admitted"): 3,
        ("rag-search", "limited"): 1,
        ("rag-answer", "admitted"): 1,
        # The process repeats the first refusal to the second one, which is not counted.
        ("rag-answer", "limited"): 1,
        ("api-keys", "admitted"): 1,
    }


def test_unauthenticated_requests_are_not_counted(operated: TestClient, people: People):
    before = counters(read(operated))
    assert people.ann.request("GET", "/api/keys", token="mn_live_" + "A" * 43).status_code == 401
    assert people.ann.post("/api/rag/search", {"query_text": "x"}, token="a.b.c").status_code == 401
    assert grown(operated, before) == {}


def test_metrics_contain_no_user_org_or_key(operated: TestClient, people: People, world: World):
    everybody: list[Actor] = [people.ann, people.alf, people.ada, people.bob, people.kim, people.sam]
    for actor in everybody:
        actor.rpc("rag_check_rate_limit", hit_arguments())
    key = people.ann.request("POST", "/api/keys", {"name": "secretly", "scopes": ["chat:read"]}).json()
    text = read(operated)
    hidden = [actor.id for actor in everybody] + [actor.email for actor in everybody]
    hidden += [people.acme.id, people.bolt.id, key["id"], key["key"], key["prefix"], TOKEN, "secretly"]
    ids = world.sql("select distinct user_id::text from rag.request_counts")
    assert [value for value in (*hidden, *(user for (user,) in ids)) if value in text] == []


def test_deleted_users_stay_in_the_totals(operated: TestClient, people: People, world: World):
    """A counter never goes back."""
    people.ann.rpc("rag_check_rate_limit", hit_arguments(amount=7))
    before = counters(read(operated))
    world.sql("delete from auth.users where id = %s", people.ann.id)
    assert grown(operated, before) == {}


@pytest.mark.usefixtures("short_pauses")
def test_without_a_signing_key_or_a_database_metrics_are_refused_without_details(settings: Settings):
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"supabase_url": "http://127.0.0.1:9"}, 500, "database_error"),
        ({}, 503, "api_keys_off"),
    ]
    for changes, status, code in cases:
        deployment = services_with(settings, rag_metrics_token=TOKEN, **changes)
        with deployment as services, client_of(metrics.app, services) as client:
            if code == "api_keys_off":
                services.settings = services.settings.model_copy(update={"supabase_jwt_secret": None})
            response = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
        assert "127.0.0.1" not in response.text


def test_queues_are_gauges(operated: TestClient, people: People, world: World):
    before = gauges(operated, "rag_queue_items")[("documents", "waiting")]
    put_jobs(world, people.acme.id, people.ann.id, 2, 400)
    assert gauges(operated, "rag_queue_items")[("documents", "waiting")] == before + 2
    assert gauges(operated, "rag_queue_oldest_due_seconds")[("documents",)] >= 400


def gauges(client: TestClient, name: str) -> dict[tuple[str, ...], float]:
    """By the values of its labels."""
    (family,) = [each for each in text_string_to_metric_families(read(client)) if each.name == name]
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_a_model_without_a_calibration_is_a_gauge_of_zero(operated: TestClient, world: World):
    calibration = {
        "slope": 8, "intercept": -3, "high": 0.6, "medium": 0.3, "ceiling_high": 0, "ceiling_medium": 0,
    }  # fmt: skip
    for model, calibrations, value in (
        ("all-MiniLM-L6-v2", {}, "1.0"),
        ("another", {}, "0.0"),
        ("another", {"another": calibration}, "1.0"),
    ):
        with deployed_with(world, embedding_model=model, calibrations=calibrations):
            assert f'rag_confidence_calibrated{{model="{model}"}} {value}' in read(operated)
