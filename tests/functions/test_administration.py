"""The platform's health and stats over HTTP, on the real stack."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import pytest
from jose import jwt
from pydantic import SecretStr

from functions import administration, collections
from functions import health as open_health
from local import access_tokens
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.npm_tools import postgrest_binary
from local.stack import Stack
from local.tools import migrations
from shared.api import health as looking
from shared.api.health import MISSED_SECONDS, SCHEMA_VERSION, VERSION
from shared.api.health_probes import AGAIN_SECONDS
from shared.clients.postgrest import DatabaseStatus
from shared.config import Settings
from shared.services import Services
from tests import graph_documents
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import app_with, client_of, json_of, platform_error, proxy_to, services_with
from tests.functions.platform_chat_client import reply_of
from tests.functions.search_workspace import OUTAGE, put
from tests.sql import passages
from tests.stand_in_server import Reply, Request, StandIn

HEALTH, STATS = "/api/v1/health", "/api/v1/stats"
Row = dict[str, Any]
SERVICES = {
    "database", "postgrest", "migrations", "pgvector", "embedding_service", "gateway", "queue",
}  # fmt: skip
ALL_WELL = dict.fromkeys(SERVICES, "healthy") | {"gateway": "not_configured"}


def health(settings: Settings, actor: Actor | None = None, status: int = 200, **changes: Any) -> Row:
    """What a new process tells."""
    with app_with(administration.app, settings, **changes) as client:
        response: Any = client.get(HEALTH, headers=actor.headers() if actor else {})
    assert response.status_code == status, response.text
    body: Row = response.json()
    assert set(body) == {"status", "version", "services", "timestamp", "problem", "orgs", "details"}
    assert set(body["services"]) == SERVICES
    return body


def get(actor: Actor, path: str = STATS, token: str | None = None) -> Row:
    return json_of(actor.request("GET", path, token=token))


def key(actor: Actor, **more: Any) -> str:
    return str(json_of(actor.post("/api/keys", {"name": "k", **more}), 201)["key"])


def test_public_health_reports_component_states_only(settings: Settings, no_jobs: None):
    body = health(settings)
    assert (body["status"], body["version"], body["services"]) == ("healthy", VERSION, ALL_WELL)
    assert body["details"] is None
    assert datetime.fromisoformat(body["timestamp"]) <= datetime.now(UTC)


def test_the_platform_health_serves_an_admin_s_details(people: People, no_jobs: None):
    details = get(people.ada, HEALTH)["details"]
    assert details == get(people.ada, "/v1/health")["details"]
    assert details["embedding"] == {
        "model": "all-MiniLM-L6-v2", "dimensions": 384, "source": "local",
        "roles": {"question": "", "document": ""}, "models_of_orgs": ["all-MiniLM-L6-v2"],
        "calibration": "built_in", "error": None,
    }  # fmt: skip
    assert details["database"]["migration"] == details["database"]["expected"] == SCHEMA_VERSION
    assert details["database"]["pgvector"].startswith("0.")
    assert details["database"]["postgres"].startswith(("16", "18"))
    assert details["gateway"] == {"model": "extractive", "source": "local", "error": None}
    nothing = {"waiting": 0, "running": 0, "oldest_seconds": None}
    queues = ("documents", "extractions", "deliveries", "removals", "sources")
    assert details["queue"] == dict.fromkeys(queues, nothing)
    sizes = ("documents", "chunks", "longest_documents", "longest_chunks")
    assert details["keyword_tails"] == dict.fromkeys(sizes, 0)


def test_an_admin_sees_the_tails_of_the_keyword_index_of_the_own_orgs(people: People, world: World):
    passages.put(world, people.ann, "one", "two")
    passages.put(world, people.ann, "one", collection="notes")
    passages.put(world, people.alf, "one", private=True)
    passages.put_many(world, world.user(people.bolt), ["one"] * 7)
    assert get(people.ada, HEALTH)["details"]["keyword_tails"] == {
        "documents": 3, "chunks": 4, "longest_documents": 1, "longest_chunks": 2,
    }  # fmt: skip
    passages.put_many(world, people.ann, ["one"] * 40)
    assert get(people.ada, HEALTH)["details"]["keyword_tails"]["documents"] == 2


def test_only_admins_see_details_and_only_of_their_own_queue(people: People, world: World, no_jobs: None):
    put_jobs(world, people.acme.id, people.ann.id, 2)
    put_jobs(world, people.bolt.id, people.ann.id, 3)
    for token in (None, key(people.ada, scopes=["admin"])):
        details = get(people.ada, HEALTH, token)["details"]
        assert details["queue"]["documents"]["waiting"] == 2
    narrow, of_admin = (key(actor, scopes=["documents:read"]) for actor in (people.ann, people.ada))
    for actor, token in ((people.ann, None), (people.ann, narrow), (people.ada, of_admin)):
        assert get(actor, HEALTH, token)["details"] is None


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
    leased = "update rag.jobs set state = 'running', lease = gen_random_uuid() where org_id = %s"
    world.sql(leased, people.acme.id)
    body = health(settings, people.ada)
    assert body["services"]["queue"] == "unhealthy"
    assert body["details"]["queue"]["documents"]["running"] == 2


def test_public_health_reports_the_queue(settings: Settings, people: People, world: World, no_jobs: None):
    def queue(**changes: Any) -> tuple[int, str, str]:
        with app_with(open_health.app, settings, **changes) as client:
            response = client.get("/health")
        return response.status_code, response.json()["status"], response.json()["queue"]

    assert queue() == (200, "Healthy", "healthy")
    put_jobs(world, people.acme.id, people.ann.id, 1, MISSED_SECONDS + 1)
    # Questions are answered all the same.
    assert queue() == (200, "Healthy", "unhealthy")
    assert queue(supabase_jwt_secret=None) == (200, "Healthy", "unknown")
    unsigned = health(settings, supabase_jwt_secret=None)
    states = dict.fromkeys(("migrations", "pgvector", "queue"), "unknown")
    assert (unsigned["status"], unsigned["services"]) == ("healthy", ALL_WELL | states)
    assert queue(supabase_url="http://127.0.0.1:9") == (503, "Unhealthy", "unknown")


def test_a_database_with_another_schema_version_is_reported(
    settings: Settings, shared_people: People, no_jobs: None, monkeypatch: pytest.MonkeyPatch
):
    """As if the functions were written for that migration."""
    for version, state in (("99990101000000", "unhealthy"), ("20260101000000", "degraded")):
        monkeypatch.setattr(looking, "SCHEMA_VERSION", version)
        body = health(settings, shared_people.ada)
        assert (body["services"]["migrations"], body["status"]) == (state, "degraded")
        assert version in body["problem"]
        assert health(settings)["problem"] is None


def test_a_database_that_is_down_is_503(settings: Settings, shared_people: People):
    gone = {"supabase_url": "http://127.0.0.1:9", "supabase_jwt_issuer": settings.issuer}
    for actor in (None, shared_people.ada):
        body = health(settings, actor, 503, **gone)
        assert (body["status"], body["details"]) == ("unhealthy", None)
        assert body["services"]["database"] == body["services"]["postgrest"] == "unhealthy"
        assert body["services"]["migrations"] == body["services"]["queue"] == "unknown"
        assert body["services"]["embedding_service"] == "healthy"


def test_a_project_key_that_the_gateway_rejects_reveals_nothing_behind_it(
    settings: Settings, shared_people: People, caplog: pytest.LogCaptureFixture
):
    for actor in (None, shared_people.ada):
        body = health(settings, actor, 503, supabase_anon_key=SecretStr("wrong"))
        assert (body["status"], body["details"]) == ("unhealthy", None)
        behind = ("database", "postgrest", "migrations", "pgvector", "queue")
        assert {body["services"][name] for name in behind} == {"unknown"}
        # Either variable may have the key.
        assert re.search("SUPABASE_PUBLISHABLE_KEY.*SUPABASE_ANON_KEY", body["problem"])
    assert "turned_away" in caplog.text


def test_a_project_key_that_postgrest_rejects_is_reported_to_an_admin(
    settings: Settings, people: People, stack: Stack, no_jobs: None
):
    """PostgREST itself looks at users' tokens alone: their calls come through."""
    another = "another secret of more than 32 characters"
    expired = jwt.encode({"role": "anon", "exp": 1}, str(stack.signing_key), "HS256")
    with proxy_to(f"http://127.0.0.1:{stack.state.postgrest_port}", "/rest/v1") as (address, _):
        for key in (expired, access_tokens.anon_key(another)):
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
            shut = health(settings, None, 503, **changes, supabase_jwt_secret=another)
            assert (shut["status"], shut["services"]["database"]) == ("unhealthy", "unknown")


def test_a_database_without_the_schema_is_up_and_not_migrated(
    settings: Settings, shared_people: People, stack: Stack, caplog: pytest.LogCaptureFixture
):
    missing = {"migrations": "unhealthy", "pgvector": "unknown", "queue": "unknown"}
    with bare(stack, f"bare_{stack.state.database}") as address:
        for actor in (None, shared_people.ada):
            changes = {"supabase_url": address, "supabase_jwt_issuer": settings.issuer}
            body = health(settings, actor, 503, **changes)
            assert (body["status"], body["details"]) == ("unhealthy", None)
            assert body["services"] == ALL_WELL | missing
            assert "notify pgrst, 'reload schema'" in body["problem"]
    assert "schema_missing" in caplog.text


def test_a_schema_cache_without_the_newest_function_is_reported(
    settings: Settings, shared_people: People, world: World, no_jobs: None, caplog: pytest.LogCaptureFixture
):
    """As after a migration without a notification. Calls of the other functions succeed."""
    # Kinds that PostgREST never knows are no function.
    world.sql("create function public.rag_no_function(int) returns int language sql as 'select 1'")
    world.sql("create function public.rag_no_function() returns trigger language plpgsql as 'begin end'")
    world.sql("create procedure public.rag_no_function(text) language sql as 'select 1'")
    try:
        assert health(settings)["services"] == ALL_WELL
        world.sql("create function public.rag_planted(word text, out count int) language sql as 'select 1'")
        for actor in (None, shared_people.ada):
            body = health(settings, actor)
            assert body["services"] == ALL_WELL | {"postgrest": "degraded"}
            assert body["status"] == "degraded"
            assert "newest functions" in body["problem"]
            assert "notify pgrst, 'reload schema'" in body["problem"]
        with app_with(open_health.app, settings) as client:
            public = json_of(client.get("/health"))
            assert (public["status"], public["detail"]) == ("Healthy", body["problem"])
    finally:
        world.sql("drop function if exists public.rag_planted(text)")
        world.sql("drop procedure public.rag_no_function(text)")
        world.sql("drop function public.rag_no_function(int), public.rag_no_function()")
    assert body["details"]["database"]["reach"] == "old_schema_cache"
    assert "old_schema_cache" in caplog.text
    assert health(settings)["services"] == ALL_WELL


def test_a_schema_that_postgrest_does_not_serve_is_reported(settings: Settings, stack: Stack):
    states = {"database": "unknown", "postgrest": "unhealthy"}
    states |= dict.fromkeys(("migrations", "pgvector", "queue"), "unknown")
    with another_postgrest(stack, PGRST_DB_SCHEMAS="extensions") as address:
        body = health(settings, None, 503, supabase_url=address)
        assert (body["status"], body["services"]) == ("unhealthy", ALL_WELL | states)
        assert body["problem"] == looking.PROBLEMS[DatabaseStatus.NOT_EXPOSED]
        with app_with(open_health.app, settings, supabase_url=address) as client:
            assert json_of(client.get("/health"), 503)["detail"] == body["problem"]


def test_read_only_transactions_by_default_are_reported(
    settings: Settings, shared_people: People, stack: Stack, no_jobs: None
):
    """PostgREST begins transactions for writing, so users' calls succeed."""
    read_only = f"{stack.database_url('authenticator')}&options=-c%20default_transaction_read_only%3Don"
    with another_postgrest(stack, PGRST_DB_URI=read_only) as address:
        changes: Row = {"supabase_url": address, "supabase_jwt_issuer": settings.issuer}
        body = health(settings, **changes)
        assert body["services"]["database"] == body["status"] == "degraded"
        assert body["problem"] is None
        assert "default_transaction_read_only" in health(settings, shared_people.ada, **changes)["problem"]
        with app_with(collections.app, settings, **changes) as client:
            created = client.post("/v1/collections", json={"name": "a"}, headers=shared_people.ann.headers())
        assert created.status_code == 201


def test_only_admins_see_the_migration_and_the_state_of_the_secret(
    settings: Settings, shared_people: People, monkeypatch: pytest.MonkeyPatch, no_jobs: None
):
    secret = {"rag_functions_secret": SecretStr("x" * 32)}
    for sentence, status, changes in (("RAG_FUNCTIONS_SECRET", 503, secret), ("99999999", 200, {})):
        assert sentence in health(settings, shared_people.ada, status, **changes)["problem"]
        for actor in (None, shared_people.ann):
            assert health(settings, actor, status, **changes)["problem"] is None
        with app_with(open_health.app, settings, **changes) as client:
            assert json_of(client.get("/health"))["detail"] is None
        monkeypatch.setattr(looking, "SCHEMA_VERSION", "99999999000000")


@contextmanager
def bare(stack: Stack, database: str) -> Iterator[str]:
    """The address of a project whose database has no migration."""
    migrations.make_database(stack.postgres, database)
    try:
        url = stack.database_url("authenticator", database)
        with another_postgrest(stack, PGRST_DB_URI=url) as address:
            yield address
    finally:
        migrations.drop_database(stack.postgres, database)


@contextmanager
def another_postgrest(stack: Stack, **settings: str) -> Iterator[str]:
    """The address of a project with another PostgREST of these settings."""
    port = free_port()
    environment = {**stack._postgrest_environment(), "PGRST_SERVER_PORT": str(port), **settings}
    log = stack.folder / "logs" / "another_postgrest.log"
    child = start([postgrest_binary()], environment, log)
    try:
        wait_until_ready(partial(is_responding, f"http://127.0.0.1:{port}/"), child, log)
        with proxy_to(f"http://127.0.0.1:{port}", "/rest/v1") as (address, _):
            yield address
    finally:
        child.stop()


GATEWAY_STATES: list[tuple[Reply, str]] = [
    (Reply(json={"data": []}), "healthy"), (Reply(json={}, status=404), "unknown"),
    (Reply(json={}, status=402), "unhealthy"), (Reply(json={}, status=429), "degraded"),
    (Reply(json={"error": "the secret project"}, status=401), "unhealthy"), (Reply(drop=True), "unhealthy"),
]  # fmt: skip


def test_the_gateway_probe_sends_the_key_and_hides_the_gateway_s_message(
    subtests: pytest.Subtests, settings: Settings, people: People, no_jobs: None, short_pauses: None
):
    """It lists the models, and for an admin requests a word of the configured one."""
    for reply, state in GATEWAY_STATES:
        answer = reply_of("yes") if state in ("healthy", "unknown") else reply

        def answered(request: Request, listed: Reply = reply, answer: Reply = answer) -> Reply:
            return listed if request.method == "GET" else answer

        with subtests.test(status=reply.status, drop=reply.drop, state=state), StandIn() as gateway:
            gateway.replies(Reply(json=answered))
            address = f"{gateway.url}/v1"
            body = health(settings, people.ada, rag_llm_api_key="sk-gateway", rag_llm_url=address)
            assert body["services"]["gateway"] == state
            assert body["status"] == ("healthy" if state in ("healthy", "unknown") else "degraded")
            assert (gateway.requests[0].method, gateway.requests[0].path) == ("GET", "/v1/models")
            assert gateway.requests[0].headers["authorization"] == "Bearer sk-gateway"
            error = body["details"]["gateway"].pop("error")
            assert (error is None) == (state in ("healthy", "unknown"))
            expected = {"model": "google/gemini-3.5-flash-lite", "source": "127.0.0.1"}
            assert body["details"]["gateway"] == expected
            assert [request.path for request in gateway.requests][1] == "/v1/chat/completions"
            assert not re.search("secret project|sk-gateway", str(body))


def test_the_embedder_probe_embeds_a_word(settings: Settings, people: People, no_jobs: None):
    """Degraded, since the org's documents are of another model."""

    def embedding_of(vector: list[float]) -> Reply:
        return Reply(json={"data": [{"index": 0, "embedding": vector}]})

    no_key = Reply(status=401, json={"error": {"message": "Incorrect API key provided"}})
    replies: list[tuple[Reply, str, int | None, str | None]] = [
        (embedding_of([1.0] * 1536), "degraded", 1536, None),
        (embedding_of([1.0] * 8), "unhealthy", 8, None),
        (embedding_of([0.0] * 1536), "unhealthy", None, "embedding_failed"),
        (no_key, "unhealthy", None, "embedder_unauthorized"),
    ]
    for reply, state, size, error in replies:
        with StandIn() as api:
            api.replies(reply)
            body = health(settings, people.ada, openai_api_key="sk-embedder", rag_embedding_url=api.url)
        assert body["services"]["embedding_service"] == state
        embedding = body["details"]["embedding"]
        assert (embedding["model"], embedding["dimensions"]) == ("text-embedding-3-small", size)
        assert (embedding["source"], embedding["error"]) == ("127.0.0.1", error)


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
                    # The body of GET /health.
                    assert looking.deployment(services)[0]
            # The first call of rag_health reaches Postgres, the third counts what waits. The second asks
            # whether PostgREST knows the newest function, which is rag_health in this schema.
            assert requests == ["/rest/v1/rpc/is_org_member", *["/rest/v1/rpc/rag_health"] * 3]
            # What has failed meanwhile is seen soon.
            del requests[:]
            for now in (1e9, 1e9 + AGAIN_SECONDS / 2, 1e9 + AGAIN_SECONDS):
                looking.check(services, None, partial(float, now))
            assert requests.count("/rest/v1/rpc/is_org_member") == 2


def test_stats_cover_the_admin_s_org(services: Services, people: People, world: World):
    graph_documents.put_all(services, people.ann)
    stored = put(services, people.ann, "docs", "Private", OUTAGE, private=True).removeprefix("doc_")
    put(services, people.bob, "docs", "Theirs", OUTAGE)
    before = get(people.ada)
    assert set(before) == {
        "total_users", "total_collections", "total_documents", "total_chunks", "total_entities",
        "total_relationships", "storage_used_bytes", "api_calls_today", "is_complete",
    }  # fmt: skip
    for name, query in (
        ("total_collections", "count(*) from rag.collections"),
        ("total_documents", "count(*) from rag.documents"),
        ("total_chunks", "count(*) from rag.chunks"),
        ("total_relationships", "count(distinct (subject, type, object)) from rag.relations"),
        ("storage_used_bytes", "sum(octet_length(content)) from rag.documents"),
    ):
        ((expected,),) = world.sql(f"select {query} where org_id = %s", people.acme.id)
        assert before[name] == expected > 0, name
    entities = "select entity from rag.{} where org_id = %s"
    named = {
        row
        for table in ("mentions", "title_entities")
        for row in world.sql(entities.format(table), people.acme.id)
    }
    assert (before["total_entities"], before["is_complete"]) == (len(named), True)
    # An original counts with its text.
    world.sql(
        "insert into rag.originals (org_id, document_id, collection_id, bytes) "
        "select org_id, id, collection_id, repeat('x', 1000)::bytea from rag.documents where id = %s",
        stored,
    )
    assert get(people.ada, "/v1/stats")["storage_used_bytes"] == before["storage_used_bytes"] + 1000


def test_calls_are_counted_by_day_and_org(people: People, world: World):
    def counts() -> tuple[int, int]:
        body = get(people.ada)
        return body["total_users"], body["api_calls_today"]

    assert counts() == (1, 1)
    for actor in (people.ann, people.ann, people.kim, people.bob):
        actor.request("GET", "/v1/collections")
    # (Kim belongs to another org too, which no caller sees here.)
    assert counts() == (2, 4)
    of_bolt = "select owner_id::text, total from rag.org_calls where org_id = %s"
    assert world.sql(of_bolt, people.bolt.id) == [(people.bob.id, 1)]
    token = key(people.kim, org_id=people.acme.id, scopes=["documents:read"])
    people.kim.request("GET", "/v1/collections", token=token)
    assert counts() == (3, 6)
    world.sql("update rag.org_calls set day = day - 1 where org_id = %s", people.acme.id)
    people.ann.request("GET", "/v1/collections")
    assert counts() == (3, 2)


def test_rate_limited_requests_are_not_counted_as_calls(settings: Settings, people: People):
    with app_with(administration.app, settings, rag_rate_limit_api="2/minute") as client:
        responses: list[Any] = [client.get(STATS, headers=people.ada.headers()) for _ in range(4)]
    assert [response.status_code for response in responses] == [200, 200, 429, 429]
    assert platform_error(responses[2], 429)["code"] == "rate_limit_exceeded"
    assert get(people.ada)["api_calls_today"] == 3


def test_a_refusal_says_whether_an_admin_or_a_scope_is_required(people: People):
    """The sweep compares the caller and the scopes of every route with verify/permissions.json."""
    reader = key(people.ada, scopes=["documents:read", "collections:manage"])
    for actor, token, code in ((people.ann, None, "admin_required"), (people.ada, reader, "missing_scope")):
        error = platform_error(actor.request("GET", STATS, token=token), 403)
        assert (error["type"], error["code"]) == ("permission_error", code)


def test_an_admin_lists_the_events_of_the_org(people: People, subtests: pytest.Subtests):
    for number, kind in enumerate(("ingest", "retrieve", "retrieve")):
        noted = {"event": f"knowledge.{kind}", "namespace": "faq" if number else "old", "chunks": number}
        assert people.ann.rpc("rag_record_event", noted).status_code == 204
    people.bob.rpc("rag_record_event", {"event": "knowledge.query", "namespace": "faq"})
    for query, chunks, total in (
        ("", [2, 1, 0], 3), ("?limit=1&offset=1", [1], 3), ("?namespace=faq", [2, 1], 2),
        ("?event=knowledge.ingest", [0], 1), ("?namespace=none", [], 0),
    ):  # fmt: skip
        with subtests.test(query=query):
            body = get(people.ada, f"/v1/events{query}")
            assert [row["chunk_count"] for row in body["data"]] == chunks
            assert body["pagination"]["total"] == total
            assert {row["user_id"] for row in body["data"]} <= {people.ann.id}


def test_an_admin_invites_and_removes_a_member(people: People):
    added = people.ada.post("/v1/members", {"user_id": people.sam.id, "name": "Sam Hill"})
    assert (added.status_code, added.content) == (204, b"")
    (invited,) = get(people.ada, "/v1/members?invited=true")["data"]
    assert (invited["user_id"], invited["name"]) == (people.sam.id, "Sam Hill")
    (invitation,) = get(people.sam, "/v1/invitations")["data"]
    assert invitation.pop("created_at")
    assert invitation == {"org_id": people.acme.id, "org_name": "Acme", "role": "member"}
    answer = f"/v1/invitations/{people.acme.id}"
    assert people.sam.post(answer, {"accept": True}).status_code == 204
    assert platform_error(people.sam.post(answer, {"accept": True}), 404)["code"] == "invitation_not_found"
    listed = {row["user_id"]: row for row in get(people.ada, "/v1/members")["data"]}
    assert (listed[people.sam.id]["name"], listed[people.sam.id]["role"]) == ("Sam Hill", "member")
    path = f"/v1/members/{people.sam.id}?org_id={people.acme.id}"
    assert people.ada.request("DELETE", path).status_code == 204
    missing = platform_error(people.ada.request("DELETE", path), 404)
    assert missing["code"] == "member_not_found"
    own = platform_error(people.ada.post("/v1/members", {"user_id": people.ada.id}), 409)
    assert own["code"] == "own_membership"


def test_only_a_user_s_own_token_reads_and_answers_invitations(people: People):
    assert get(people.sam, "/v1/invitations") == {"data": []}
    path = f"/v1/invitations/{people.acme.id}"
    invalid: list[Row] = [{}, {"accept": "yes"}, {"accept": None}]
    for body in invalid:
        assert people.sam.post(path, body).status_code == 400
    key = people.ada.post("/api/keys", {"name": "all", "scopes": ["admin"]}).json()["key"]
    assert people.ada.request("GET", "/v1/invitations", token=key).status_code == 401
    assert people.ada.post(path, {"accept": True}, token=key).status_code == 401


def test_usage_and_members_are_listed_for_admins(people: People):
    people.ann.request("GET", "/v1/collections")
    columns = {"day", "calls", "users", "model_tokens", "embedding_tokens"}
    usage = get(people.ada, "/v1/usage?days=2")["data"]
    assert [set(row) for row in usage] == [columns] * 2
    assert (usage[0]["calls"], usage[1]["users"]) == (0, 2)
    members = get(people.ada, "/v1/members?limit=1&offset=1")
    assert (len(members["data"]), members["pagination"]["total"]) == (1, 4)


def test_orgs_lists_the_caller_s_orgs_with_name_and_role(people: People):
    acme = {"id": people.acme.id, "name": "Acme", "role": "member"}
    bolt = {"id": people.bolt.id, "name": "Bolt", "role": "member"}
    admin = {**acme, "role": "admin"}
    orgs: tuple[tuple[Actor, list[Row]], ...] = (
        (people.ann, [acme]),
        (people.ada, [admin]),
        (people.kim, [acme, bolt]),
    )
    for actor, expected in orgs:
        assert get(actor, "/v1/orgs") == {"data": expected}
    # A key sees its one org, whatever its scope.
    for scope in ("documents:read", "chat:read", "collections:manage"):
        token = key(people.kim, org_id=people.bolt.id, scopes=[scope])
        assert get(people.kim, "/v1/orgs", token) == {"data": [bolt]}


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
            assert one.database_status().is_serving
            assert looking.check(one, None).services["database"] == "healthy"
    own |= backends()
    with stack.postgres.log.open(errors="replace") as log:
        log.seek(begin)
        lines = [line for line in log if any(f"[{pid}]" in line for pid in own)]
    assert lines == []


def test_health_is_503_during_a_database_outage_and_shows_no_key(settings: Settings):
    keys = {"openai_api_key": "sk-one", "rag_llm_api_key": "sk-two", "supabase_url": "http://127.0.0.1:9"}
    with app_with(open_health.app, settings, **keys) as client:
        response = client.get("/health")
    body = json_of(response, 503)
    problem = "The database does not answer: start PostgREST, or check SUPABASE_URL."
    assert (body["status"], body["detail"]) == ("Unhealthy", problem)
    assert body["embedder"] == {"model": "text-embedding-3-small", "source": "api.openai.com"}
    assert "sk-" not in response.text
