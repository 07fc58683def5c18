"""The platform's health and stats over HTTP, on the real stack."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from jose import jwt
from pydantic import SecretStr

from functions import administration
from functions import health as open_health
from local import ROOT, access_tokens, declared_schema
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.npm_tools import postgrest_binary
from local.stack import Stack
from local.tools import migrations
from shared.api import health as looking
from shared.api.health import MISSED_SECONDS, SCHEMA_VERSION, VERSION
from shared.api.health_probes import AGAIN_SECONDS
from shared.config import Settings
from shared.services import Services
from tests import graph_documents
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import client_of, platform_error, proxy_to, services_with
from tests.functions.search_workspace import OUTAGE, put
from tests.stand_in_server import Reply, StandIn

HEALTH, STATS = "/api/v1/health", "/api/v1/stats"
Row = dict[str, Any]
SERVICES = {
    "database", "postgrest", "migrations", "pgvector", "embedding_service", "gateway", "queue",
}  # fmt: skip
ALL_WELL = dict.fromkeys(SERVICES, "healthy") | {"gateway": "not_configured"}


def health(settings: Settings, actor: Actor | None = None, status: int = 200, **changes: Any) -> Row:
    """What a new process tells."""
    with services_with(settings, **changes) as services, client_of(administration.app, services) as client:
        response: Any = client.get(HEALTH, headers=actor.headers() if actor else {})
    assert response.status_code == status, response.text
    body: Row = response.json()
    assert set(body) == {"status", "version", "services", "timestamp", "details"}
    assert set(body["services"]) == SERVICES
    return body


def stats(actor: Actor, path: str = STATS, token: str | None = None) -> Row:
    response = actor.request("GET", path, token=token)
    assert response.status_code == 200, response.text
    body: Row = response.json()
    return body


def key(actor: Actor, **more: Any) -> str:
    response = actor.post("/api/keys", {"name": "k", **more})
    assert response.status_code == 201, response.text
    return str(response.json()["key"])


def test_public_health_reports_component_states_only(settings: Settings, no_jobs: None):
    body = health(settings)
    assert (body["status"], body["version"], body["services"]) == ("healthy", VERSION, ALL_WELL)
    assert body["details"] is None
    assert datetime.fromisoformat(body["timestamp"]) <= datetime.now(UTC)


@pytest.mark.parametrize("path", ["/v1/health", HEALTH])
def test_the_platform_health_serves_an_admin_s_details(people: People, path: str, no_jobs: None):
    response = people.ada.request("GET", path)
    assert response.status_code == 200
    details = response.json()["details"]
    assert details["embedding"] == {
        "model": "all-MiniLM-L6-v2", "dimensions": 384, "source": "local",
    }  # fmt: skip
    assert details["database"]["migration"] == details["database"]["expected"] == SCHEMA_VERSION
    assert details["database"]["pgvector"].startswith("0.")
    assert details["database"]["postgres"].startswith(("16", "18"))
    assert details["gateway"] == {"model": "extractive", "source": "local"}
    nothing = {"waiting": 0, "running": 0, "oldest_seconds": None}
    assert details["queue"] == dict.fromkeys(
        ("documents", "extractions", "deliveries", "removals", "sources"), nothing
    )


def test_only_admins_see_details_and_only_of_their_own_queue(people: People, world: World, no_jobs: None):
    for org, count in ((people.acme, 2), (people.bolt, 3)):
        put_jobs(world, org.id, people.ann.id, count)
    admin = people.ada.request("GET", HEALTH, token=key(people.ada, scopes=["admin"]))
    assert admin.json()["details"]["queue"]["documents"]["waiting"] == 2
    own = people.ada.request("GET", HEALTH).json()["details"]["queue"]
    assert own["documents"]["waiting"] == 2
    for narrow in (
        people.ann.request("GET", HEALTH),
        people.ann.request("GET", HEALTH, token=key(people.ann, scopes=["documents:read"])),
        people.ada.request("GET", HEALTH, token=key(people.ada, scopes=["documents:read"])),
    ):
        assert (narrow.status_code, narrow.json()["details"]) == (200, None)


def put_jobs(world: World, org: str, user: str, count: int, seconds: float = 60) -> None:
    """So many documents that wait, and have been due for so long."""
    for _ in range(count):
        world.sql(
            "with home as (insert into rag.collections (org_id, name) values (%s, gen_random_uuid()::text) "
            "returning org_id, id), brought as (insert into rag.documents (org_id, collection_id, title, "
            "content, content_hash, status) select org_id, id, 'x', 'x', repeat('0', 64), 'processing' "
            "from home returning org_id, collection_id, id) "
            "insert into rag.jobs (org_id, collection_id, document_id, user_id, document, due_at) "
            "select org_id, collection_id, id, %s, '{}', now() - make_interval(secs => %s) from brought",
            org, user, seconds,
        )  # fmt: skip


def test_a_queue_without_a_worker_is_unhealthy_after_three_intervals(
    settings: Settings, people: People, world: World, no_jobs: None
):
    put_jobs(world, people.acme.id, people.ann.id, 1, MISSED_SECONDS - 30)
    assert health(settings)["services"]["queue"] == "healthy"
    put_jobs(world, people.acme.id, people.ann.id, 1, MISSED_SECONDS + 1)
    body = health(settings, people.ada)
    assert (body["status"], body["services"]["queue"]) == ("degraded", "unhealthy")
    assert body["details"]["queue"]["documents"]["oldest_seconds"] > MISSED_SECONDS
    # A job whose worker died is due again when its lease has ended.
    world.sql(
        "update rag.jobs set state = 'running', lease = gen_random_uuid() where org_id = %s", people.acme.id
    )
    body = health(settings, people.ada)
    assert body["services"]["queue"] == "unhealthy"
    assert body["details"]["queue"]["documents"]["running"] == 2


def test_public_health_reports_the_queue(settings: Settings, people: People, world: World, no_jobs: None):
    def queue(**changes: Any) -> tuple[int, str, str]:
        with services_with(settings, **changes) as services, client_of(open_health.app, services) as client:
            response = client.get("/health")
        return response.status_code, response.json()["status"], response.json()["queue"]

    assert queue() == (200, "Healthy", "healthy")
    put_jobs(world, people.acme.id, people.ann.id, 1, MISSED_SECONDS + 1)
    # Questions are answered all the same.
    assert queue() == (200, "Healthy", "unhealthy")
    assert queue(supabase_jwt_secret=None) == (200, "Healthy", "unknown")
    assert queue(supabase_url="http://127.0.0.1:9") == (503, "Unhealthy", "unknown")


def test_an_overdue_extraction_is_reported_as_late(
    settings: Settings, services: Services, people: People, world: World, no_jobs: None
):
    put(services, people.ann, "docs", "Outage", OUTAGE)
    world.sql(
        "update rag.jobs set state = 'waiting', due_at = now() - make_interval(secs => %s)",
        MISSED_SECONDS + 60,
    )
    body = health(settings, people.ada)
    assert (body["status"], body["services"]["queue"]) == ("degraded", "unhealthy")
    assert body["details"]["queue"]["extractions"]["oldest_seconds"] > MISSED_SECONDS
    assert body["details"]["queue"]["documents"]["oldest_seconds"] is None


@pytest.mark.parametrize(
    ("wanted", "state"), [("99990101000000", "unhealthy"), ("20260101000000", "degraded")]
)
def test_a_database_with_another_schema_version_is_reported(
    settings: Settings, no_jobs: None, monkeypatch: pytest.MonkeyPatch, wanted: str, state: str
):
    """As if the functions were written for that migration."""
    monkeypatch.setattr(looking, "SCHEMA_VERSION", wanted)
    body = health(settings)
    assert (body["services"]["migrations"], body["status"]) == (state, "degraded")


def test_a_failed_probe_is_unhealthy(settings: Settings, world: World, no_jobs: None):
    """As of a database that is a migration behind, and lacks the function."""
    world.sql("revoke execute on function public.rag_health() from rag_worker")
    try:
        body = health(settings)
    finally:
        world.sql("grant execute on function public.rag_health() to rag_worker")
    assert (body["services"]["migrations"], body["status"]) == ("unhealthy", "degraded")


def test_a_database_that_is_down_is_503(settings: Settings, people: People):
    gone = {"supabase_url": "http://127.0.0.1:9", "supabase_jwt_issuer": settings.issuer}
    for actor in (None, people.ada):
        body = health(settings, actor, 503, **gone)
        assert body["status"] == "unhealthy"
        assert body["services"]["database"] == body["services"]["postgrest"] == "unhealthy"
        assert body["services"]["migrations"] == body["services"]["queue"] == "unknown"
        assert body["services"]["embedding_service"] == "healthy"
        assert body["details"] is None


def test_postgrest_without_a_database_differs_from_a_missing_postgrest(settings: Settings, gateway: StandIn):
    gateway.replies(Reply(json={"code": "PGRST001", "message": "no database"}, status=503))
    services = health(settings, None, 503, supabase_url=gateway.url)["services"]
    assert (services["database"], services["postgrest"]) == ("unhealthy", "healthy")


def test_a_project_key_that_the_gateway_rejects_reveals_nothing_behind_it(
    settings: Settings, people: People, caplog: pytest.LogCaptureFixture
):
    for actor in (None, people.ada):
        body = health(settings, actor, 503, supabase_anon_key=SecretStr("wrong"))
        assert (body["status"], body["details"]) == ("unhealthy", None)
        behind = ("database", "postgrest", "migrations", "pgvector", "queue")
        assert {body["services"][name] for name in behind} == {"unknown"}
    assert "turned_away" in caplog.text


@pytest.mark.parametrize("wrong", ["expired", "of another secret"])
def test_a_project_key_that_postgrest_rejects_is_reported_to_an_admin(
    settings: Settings, people: People, stack: Stack, no_jobs: None, wrong: str
):
    """PostgREST itself looks at users' tokens alone: their calls come through."""
    old = jwt.encode({"role": "anon", "exp": 1}, str(stack.signing_key), "HS256")
    key = old if wrong == "expired" else access_tokens.anon_key("another secret of more than 32 characters")
    behind = f"http://127.0.0.1:{stack.state.postgrest_port}"
    with proxy_to(behind, "/rest/v1") as (address, _):
        changes: Row = {"supabase_url": address, "supabase_jwt_issuer": settings.issuer}
        changes["supabase_anon_key"] = SecretStr(key)
        body = health(settings, people.ada, **changes)
        assert body["services"] == ALL_WELL | {"postgrest": "degraded"}
        assert body["details"]["database"]["reach"] == "anon_key_refused"
        assert key not in str(body)
        anybody = health(settings, None, **changes)
        assert (anybody["status"], anybody["details"]) == ("degraded", None)
        # Without a key to sign with the database is not probed; with a rejected one it is closed.
        unsigned = health(settings, None, **changes, supabase_jwt_secret=None)
        assert (unsigned["status"], unsigned["services"]["database"]) == ("degraded", "unknown")
        unbelieved = {"supabase_jwt_secret": "another secret of more than 32 characters"}
        shut = health(settings, None, 503, **changes, **unbelieved)
        assert (shut["status"], shut["services"]["database"]) == ("unhealthy", "unknown")


def test_a_database_without_the_schema_is_up_and_not_migrated(
    settings: Settings, people: People, stack: Stack, caplog: pytest.LogCaptureFixture
):
    with bare(stack, f"bare_{stack.state.database}") as address:
        for actor in (None, people.ada):
            changes = {"supabase_url": address, "supabase_jwt_issuer": settings.issuer}
            body = health(settings, actor, 503, **changes)
            assert (body["status"], body["details"]) == ("unhealthy", None)
            assert body["services"] == ALL_WELL | {
                "migrations": "unhealthy", "pgvector": "unknown", "queue": "unknown",
            }  # fmt: skip
    assert "schema_missing" in caplog.text


@contextmanager
def bare(stack: Stack, database: str) -> Iterator[str]:
    """The address of a project whose database has no migration."""
    migrations.make_database(stack.postgres, database)
    port = free_port()
    environment = {
        **stack._postgrest_environment(),
        "PGRST_DB_URI": stack.database_url("authenticator", database),
        "PGRST_SERVER_PORT": str(port),
    }
    log = stack.folder / "logs" / "bare.log"
    child = start([postgrest_binary()], environment, log)
    try:
        wait_until_ready(partial(is_responding, f"http://127.0.0.1:{port}/"), child, log)
        with proxy_to(f"http://127.0.0.1:{port}", "/rest/v1") as (address, _):
            yield address
    finally:
        child.stop()
        migrations.drop_database(stack.postgres, database)


GATEWAY_STATES: list[tuple[Reply, str]] = [
    (Reply(json={"data": []}), "healthy"),
    (Reply(json={}, status=404), "unknown"),
    (Reply(json={}, status=402), "unhealthy"),
    (Reply(json={}, status=429), "degraded"),
    (Reply(json={"error": "the secret project"}, status=401), "unhealthy"),
    (Reply(json={}, status=403), "unhealthy"),
    (Reply(json={}, status=500), "unhealthy"),
    (Reply(drop=True), "unhealthy"),
]


def test_the_gateway_probe_sends_the_key_and_hides_the_gateway_s_message(
    subtests: pytest.Subtests, settings: Settings, people: People, no_jobs: None
):
    for reply, state in GATEWAY_STATES:
        with subtests.test(status=reply.status, drop=reply.drop, state=state), StandIn() as gateway:
            gateway.replies(reply)
            address = f"{gateway.url}/v1"
            body = health(settings, people.ada, rag_llm_api_key="sk-gateway", rag_llm_url=address)
            assert body["services"]["gateway"] == state
            assert body["status"] == ("healthy" if state in ("healthy", "unknown") else "degraded")
            assert (gateway.requests[0].method, gateway.requests[0].path) == ("GET", "/v1/models")
            assert gateway.requests[0].headers["authorization"] == "Bearer sk-gateway"
            assert body["details"]["gateway"] == {"model": "google/gemini-2.5-flash", "source": "127.0.0.1"}
            assert "secret project" not in str(body)
            assert "sk-gateway" not in str(body)


@pytest.mark.parametrize(
    ("vector", "state", "dimensions"),
    [([1.0] * 1536, "healthy", 1536), ([1.0] * 8, "unhealthy", 8), ([0.0] * 1536, "unhealthy", None)],
)
def test_the_embedder_probe_embeds_a_word(
    settings: Settings,
    people: People,
    gateway: StandIn,
    no_jobs: None,
    vector: list[float],
    state: str,
    dimensions: int | None,
):
    gateway.replies(Reply(json={"data": [{"index": 0, "embedding": vector}]}))
    body = health(settings, people.ada, openai_api_key="sk-embedder", rag_embedding_url=gateway.url)
    assert body["services"]["embedding_service"] == state
    assert body["details"]["embedding"] == {
        "model": "text-embedding-3-small", "dimensions": dimensions,
        "source": "127.0.0.1",
    }  # fmt: skip


def test_unauthenticated_requests_cannot_cause_model_costs(
    settings: Settings, gateway: StandIn, no_jobs: None
):
    gateway.replies(Reply(json={}))
    spent = {"rag_llm_api_key": "sk", "rag_llm_url": gateway.url}
    with services_with(settings, **spent) as services, client_of(administration.app, services) as client:
        for _ in range(5):
            client.get(HEALTH)
        assert len(gateway.requests) == 1
        looking.check(services, None, lambda: float("inf"))
        assert len(gateway.requests) == 2


def test_unauthenticated_requests_cannot_cause_database_probes(
    settings: Settings, people: People, no_jobs: None, monkeypatch: pytest.MonkeyPatch
):
    """An admin's own look is the admin's, and is limited as all that they ask."""
    with proxy_to(settings.supabase_url) as (address, requests):
        changes = {"supabase_url": address, "supabase_jwt_issuer": settings.issuer}
        with (
            services_with(settings, **changes) as services,
            client_of(administration.app, services) as client,
        ):
            with monkeypatch.context() as slow_machine:
                slow_machine.setattr("shared.api.health_probes.AGAIN_SECONDS", 60)
                for _ in range(5):
                    assert client.get(HEALTH).json()["status"] == "healthy"
            # The first call of rag_health reaches Postgres, the second counts what waits.
            assert requests == ["/rest/v1/rpc/is_org_member", *["/rest/v1/rpc/rag_health"] * 2]
            # What has failed meanwhile is seen soon.
            del requests[:]
            for now in (1e9, 1e9 + AGAIN_SECONDS / 2, 1e9 + AGAIN_SECONDS):
                looking.check(services, None, partial(float, now))
            assert requests.count("/rest/v1/rpc/is_org_member") == 2


def test_without_a_signing_key_database_details_are_unknown(settings: Settings):
    body = health(settings, supabase_jwt_secret=None)
    assert body["services"] == ALL_WELL | dict.fromkeys(("migrations", "pgvector", "queue"), "unknown")
    assert body["status"] == "healthy"


def test_stats_cover_the_admin_s_org(services: Services, people: People, world: World):
    graph_documents.put_all(services, people.ann)
    stored = put(services, people.ann, "docs", "Private", OUTAGE, private=True).removeprefix("doc_")
    put(services, people.bob, "docs", "Theirs", OUTAGE)
    before = stats(people.ada)
    assert set(before) == {
        "total_users", "total_collections", "total_documents", "total_chunks", "total_entities",
        "total_relationships", "storage_used_bytes", "api_calls_today", "is_complete",
    }  # fmt: skip
    acme = people.acme.id
    (expected,) = world.sql(
        "select (select count(*) from rag.collections where org_id = %(org)s), "
        "(select count(*) from rag.documents where org_id = %(org)s), "
        "(select count(*) from rag.chunks where org_id = %(org)s), "
        "(select count(*) from (select entity from rag.mentions where org_id = %(org)s union "
        " select entity from rag.title_entities where org_id = %(org)s) as one), "
        "(select count(distinct (subject, type, object)) from rag.relations where org_id = %(org)s), "
        "(select sum(octet_length(content)) from rag.documents where org_id = %(org)s)".replace(
            "%(org)s", f"'{acme}'"
        )
    )
    names = ("collections", "documents", "chunks", "entities", "relationships")
    assert tuple(before[f"total_{name}"] for name in names) == expected[:5]
    assert before["total_relationships"] > 0
    assert (before["storage_used_bytes"], before["is_complete"]) == (expected[5], True)
    # An original counts with its text.
    world.sql(
        "insert into rag.originals (org_id, document_id, collection_id, bytes) "
        "select org_id, id, collection_id, repeat('x', 1000)::bytea from rag.documents where id = %s",
        stored,
    )
    assert stats(people.ada, "/v1/stats")["storage_used_bytes"] == before["storage_used_bytes"] + 1000


def test_calls_are_counted_by_day_and_org(people: People, world: World):
    first = stats(people.ada)
    assert (first["total_users"], first["api_calls_today"]) == (1, 1)
    for actor in (people.ann, people.ann, people.kim, people.bob):
        actor.request("GET", "/v1/collections")
    # (Kim belongs to another org too, which no caller sees here.)
    second = stats(people.ada)
    assert (second["total_users"], second["api_calls_today"]) == (2, 4)
    people.kim.request(
        "GET", "/v1/collections", token=key(people.kim, org_id=people.acme.id, scopes=["documents:read"])
    )
    second = stats(people.ada)
    assert (second["total_users"], second["api_calls_today"]) == (3, 6)
    world.sql("update rag.org_calls set day = day - 1 where org_id = %s", people.acme.id)
    people.ann.request("GET", "/v1/collections")
    third = stats(people.ada)
    assert (third["total_users"], third["api_calls_today"]) == (3, 2)


def test_rate_limited_requests_are_not_counted_as_calls(settings: Settings, people: People):
    with (
        services_with(settings, rag_rate_limit_api="2/minute") as services,
        client_of(administration.app, services) as client,
    ):
        is_responding: list[Any] = [client.get(STATS, headers=people.ada.headers()) for _ in range(4)]
    assert [response.status_code for response in is_responding] == [200, 200, 429, 429]
    assert platform_error(is_responding[2], 429)["code"] == "rate_limit_exceeded"
    assert stats(people.ada)["api_calls_today"] == 3


# verify/permissions.json states all of them, with the scopes that a key needs.
ADMIN_ROUTES = (
    STATS, "/v1/events", "/v1/usage", "/api/v1/usage", "/v1/members", "/v1/jobs", "/v1/records",
    "/v1/records/summary",
)  # fmt: skip


def test_a_refusal_says_whether_an_admin_or_a_scope_is_required(people: People, subtests: pytest.Subtests):
    reader = key(people.ada, scopes=["documents:read", "collections:manage"])
    for path in ADMIN_ROUTES:
        for actor, token, code in (
            (people.ann, None, "admin_required"),
            (people.ada, reader, "missing_scope"),
        ):
            with subtests.test(path=path, code=code):
                error = platform_error(actor.request("GET", path, token=token), 403)
                assert (error["type"], error["code"]) == ("permission_error", code)
    assert stats(people.ada, token=key(people.ada, scopes=["admin"]))["total_users"] >= 1


def test_an_admin_lists_the_events_of_the_org(people: People, subtests: pytest.Subtests):
    for number, kind in enumerate(("ingest", "retrieve", "retrieve")):
        noted = {"event": f"knowledge.{kind}", "namespace": "faq" if number else "old", "chunks": number}
        assert people.ann.rpc("rag_record_event", noted).status_code == 204
    people.bob.rpc("rag_record_event", {"event": "knowledge.query", "namespace": "faq"})
    for query, chunks, total in (
        ("", [2, 1, 0], 3), ("?limit=1&offset=1", [1], 3), ("?namespace=faq", [2, 1], 2),
        ("?event=knowledge.ingest", [0], 1), ("?namespace=none", [], 0),
    ):  # fmt: skip
        for prefix in ("/api/v1", "/v1"):
            with subtests.test(prefix=prefix, query=query):
                response = people.ada.request("GET", f"{prefix}/events{query}")
                assert response.status_code == 200, response.text
                body = response.json()
                assert [row["chunk_count"] for row in body["data"]] == chunks
                assert body["pagination"]["total"] == total
    assert {row["user_id"] for row in people.ada.request("GET", "/v1/events").json()["data"]} == {
        people.ann.id
    }
    for query in ("limit=101", "offset=-1", "namespace=", "event=login"):
        field = query.partition("=")[0]
        refused = platform_error(people.ada.request("GET", f"/v1/events?{query}"), 400)
        assert refused["details"] == {"field": field}


def test_usage_and_members_are_listed_for_admins(people: People):
    people.ann.request("GET", "/v1/collections")
    for prefix in ("/api/v1", "/v1"):
        usage = people.ada.request("GET", f"{prefix}/usage?days=2").json()["data"]
        assert [set(row) for row in usage] == [
            {"day", "calls", "users", "model_tokens", "embedding_tokens"}
        ] * 2
        assert (usage[0]["calls"], usage[1]["users"]) == (0, 2)
        members = people.ada.request("GET", f"{prefix}/members?limit=1&offset=1").json()
        assert (len(members["data"]), members["pagination"]["total"]) == (1, 4)
    for path, field in (("usage?days=91", "days"), ("usage?days=0", "days"), ("members?limit=101", "limit")):
        error = platform_error(people.ada.request("GET", f"/v1/{path}"), 400)
        assert error["details"] == {"field": field}


def test_orgs_lists_the_caller_s_orgs_with_name_and_role(people: People, world: World):
    acme = {"id": people.acme.id, "name": "Acme", "role": "member"}
    bolt = {"id": people.bolt.id, "name": "Bolt", "role": "member"}
    for path in ("/api/v1/orgs", "/v1/orgs"):
        for actor, expected in (
            (people.ann, [acme]),
            (people.ada, [{**acme, "role": "admin"}]),
            (people.kim, [acme, bolt]),
            (people.sam, []),
        ):
            assert actor.request("GET", path).json() == {"data": expected}
    # A key sees its one org, whatever its scope.
    for scope in ("documents:read", "chat:read", "collections:manage"):
        token = key(people.kim, org_id=people.bolt.id, scopes=[scope])
        assert people.kim.request("GET", "/v1/orgs", token=token).json() == {"data": [bolt]}


def test_code_and_database_have_the_newest_migration(world: World):
    newest = max(path.name for path in declared_schema.MIGRATIONS.glob("*.sql"))
    assert newest.startswith(f"{SCHEMA_VERSION}_")
    assert world.sql("select rag.version()") == [(SCHEMA_VERSION,)]


def test_the_version_is_the_project_s_version():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
