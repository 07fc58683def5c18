"""health: reports the effective parts, to all callers, and no secret."""

import httpx

from functions import health
from local.stack import Stack
from shared.api.health import check as health_of
from shared.config import Settings
from tests.actors import World
from tests.functions.app_server import app_with, json_of, services_with


def test_health_names_the_effective_embedder_and_generator(stack: Stack):
    response = httpx.get(f"{stack.url}/health")
    assert response.status_code == 200
    body = response.json()
    assert (body["status"], body["detail"]) == ("Healthy", None)
    assert body["embedder"] == {"model": "all-MiniLM-L6-v2", "source": "local"}
    assert body["generator"] == {"model": "extractive", "source": "local"}
    assert body["reranker"] == {"provider": None, "model": None, "source": None, "enabled": False}


def test_health_checks_leave_nothing_in_the_log_of_postgres(stack: Stack, settings: Settings, world: World):
    """The log is the run's. Its lines begin with the time and the process."""

    def backends() -> set[str]:
        rows = world.sql("select pid::text from pg_stat_activity where datname = current_database()")
        return {pid for (pid,) in rows}

    own, begin = backends(), stack.postgres.log.stat().st_size
    for path in ("/health", "/api/v1/health", "/readyz"):
        assert httpx.get(f"{stack.url}{path}").status_code == 200
    with services_with(settings) as services, services_with(settings, supabase_jwt_secret=None) as unsigned:
        for one in (services, unsigned):
            assert one.is_reachable()
            assert health_of(one, None).services["database"] == "healthy"
    own |= backends()
    with stack.postgres.log.open(errors="replace") as log:
        log.seek(begin)
        lines = [line for line in log if any(f"[{pid}]" in line for pid in own)]
    assert lines == []


def test_health_is_503_during_a_database_outage_and_shows_no_key(settings: Settings):
    keys = {"openai_api_key": "sk-one", "rag_llm_api_key": "sk-two", "supabase_url": "http://127.0.0.1:9"}
    with app_with(health.app, settings, **keys) as client:
        response = client.get("/health")
    body = json_of(response, 503)
    problem = "The database does not answer: start PostgREST, or check SUPABASE_URL."
    assert (body["status"], body["detail"]) == ("Unhealthy", problem)
    assert body["embedder"] == {"model": "text-embedding-3-small", "source": "api.openai.com"}
    assert "sk-" not in response.text
