"""A request as spans, to a real HTTP collector: the right ones, children of the caller's; nothing of it
without a collector, and nothing worse with one that is down."""

import json
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from functions import api_keys, chat_completions, collections, rag_answer, rag_search, v1_answer
from local import ROOT
from local.stack import Stack
from shared.api.app import lambda_handler
from shared.api.dependencies import get_services
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.observability import opentelemetry
from shared.services import Services
from tests.actors import vector
from tests.conftest import People
from tests.ingestion import ingest
from tests.shared.app_lifespan import started_client
from tests.stand_in_server import Reply, StandIn

EMBEDDER = "text-embedding-3-small"
# The second match finds the passages by which confidence is judged.
STEPS = ["authenticate", "limit", "embed", "match", "judge", "generate"]
TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"
QUESTION = {"query_text": "What is the code of the vault door, ZEBRAFISH?"}


def collector(stand_in: StandIn, *replies: Reply) -> dict[str, str]:
    """The setting that sends spans there."""
    stand_in.replies(*(replies or [Reply(headers={"Content-Type": "application/x-protobuf"}, body=b"")]))
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": stand_in.url}


def spans_of(stand_in: StandIn) -> list[Span]:
    results = []
    for request in stand_in.requests:
        assert (request.method, request.path) == ("POST", "/v1/traces")
        assert request.headers["content-type"] == "application/x-protobuf"
        for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans:
            assert values(resource.resource)["service.name"] == "rag"
            results += [span for scope in resource.scope_spans for span in scope.spans]
    return results


def values(holder: Any) -> dict[str, Any]:
    """Attributes by name."""
    return {item.key: getattr(item.value, str(item.value.WhichOneof("value"))) for item in holder.attributes}


def request_and_steps(spans: list[Span]) -> tuple[Span, list[Span]]:
    (request,) = [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]
    return request, sorted((span for span in spans if span.kind == Span.SPAN_KIND_INTERNAL), key=by_start)


def calls_of(spans: list[Span], attribute: str) -> list[Span]:
    """The calls of services with that attribute."""
    calls = [span for span in spans if span.kind == Span.SPAN_KIND_CLIENT]
    return sorted((span for span in calls if attribute in values(span)), key=by_start)


def by_start(span: Span) -> int:
    return span.start_time_unix_nano


@pytest.fixture
def document(services: Services, people: People) -> str:
    assert people.ann.org
    new = NewDocument("The vault door", "The code of the vault door is QUARTZ-5521.")
    return ingest(services.database, services.embedder, people.ann.principal, new).document_id


def test_an_answer_is_one_server_span_with_a_child_per_step_in_the_caller_s_trace(
    people: People, document: str, monkeypatch: pytest.MonkeyPatch
):
    with StandIn() as stand_in:
        settings = collector(stand_in)
        with started_client(rag_answer.app, people.ann.stack, monkeypatch, **settings) as client:
            # A trace that the caller does not sample is exported, too.
            traced = {"traceparent": TRACEPARENT[:-1] + "0", "X-Request-Id": "the-request"}
            headers = people.ann.headers() | traced
            assert client.post("/api/rag/answer", json=QUESTION, headers=headers).status_code == 200
        spans = spans_of(stand_in)
    request, steps = request_and_steps(spans)
    assert request.name == "POST /api/rag/answer"
    assert {span.trace_id.hex() for span in spans} == {TRACE_ID}
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
    assert values(request) == {
        "faas.name": "rag-answer",
        "http.request.method": "POST",
        "http.route": "/api/rag/answer",
        "http.response.status_code": 200,
        "rag.request_id": "the-request",
    }
    assert request.status.code == Status.STATUS_CODE_UNSET
    assert [step.name for step in steps] == STEPS
    for step in steps:
        assert (step.trace_id, step.parent_span_id) == (request.trace_id, request.span_id)
        assert by_start(request) <= by_start(step) <= step.end_time_unix_nano <= request.end_time_unix_nano
    assert abs(time.time() - by_start(request) / 1e9) < 60


def test_the_collector_receives_the_service_s_name_attributes_and_headers_of_the_environment(
    people: People, monkeypatch: pytest.MonkeyPatch
):
    with StandIn() as stand_in:
        settings = {
            **collector(stand_in),
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=k-1",
            "OTEL_SERVICE_NAME": "answers",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment=staging",
        }
        with started_client(rag_search.app, people.ann.stack, monkeypatch, **settings) as client:
            assert (
                client.post("/api/rag/search", json=QUESTION, headers=people.ann.headers()).status_code == 200
            )
        (sent,) = stand_in.requests
    assert sent.headers["api-key"] == "k-1"
    (spans,) = ExportTraceServiceRequest.FromString(sent.body).resource_spans
    attributes = values(spans.resource)
    assert (attributes["service.name"], attributes["deployment.environment"]) == ("answers", "staging")


def test_without_a_caller_s_trace_each_request_starts_its_own(
    people: People, monkeypatch: pytest.MonkeyPatch
):
    headers: dict[str, dict[str, str]] = {"none": {}}
    zero = f"00-{TRACE_ID}-{'0' * 16}-01"
    for value in ("", "garbage", "00-0-0-01", TRACEPARENT.upper(), zero, f"{TRACEPARENT}-x"):
        headers[value or "empty"] = {"traceparent": value}
    with StandIn() as stand_in:
        with started_client(rag_search.app, people.ann.stack, monkeypatch, **collector(stand_in)) as client:
            for case, arguments in headers.items():
                for _ in range(2):
                    sent = {**people.ann.headers(), **arguments, "X-Request-Id": case}
                    assert client.post("/api/rag/search", json=QUESTION, headers=sent).status_code == 200
        spans = spans_of(stand_in)
    servers = [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]
    assert len({span.trace_id for span in servers}) == 2 * len(headers)
    for case in headers:
        own = [span for span in servers if values(span)["rag.request_id"] == case]
        assert [span.parent_span_id for span in own] == [b"", b""]
        for server in own:
            own_spans = [span for span in spans if span.parent_span_id == server.span_id]
            names = [span.name for span in own_spans]
            assert sorted(names) == sorted(STEPS[:4])


def test_the_route_is_the_template_and_no_token_or_text_is_exported(
    people: People, document: str, monkeypatch: pytest.MonkeyPatch
):
    with StandIn() as stand_in:
        settings = collector(stand_in)
        with started_client(api_keys.app, people.ann.stack, monkeypatch, **settings) as client:
            key = client.post(
                "/api/keys", json={"name": "ZEBRAFISH", "scopes": ["chat:read"]}, headers=people.ann.headers()
            ).json()
            client.delete(f"/api/keys/{key['id']}?x=ZEBRAFISH", headers=people.ann.headers())
            client.get("/api/keys", headers={"Authorization": f"Bearer {key['key']}"})
            client.get("/ZEBRAFISH", headers=people.ann.headers())
            client.request("ZEBRAFISH", "/api/keys", headers=people.ann.headers())
            baggage = {"traceparent": TRACEPARENT, "tracestate": "a=ZEBRAFISH", "baggage": "b=ZEBRAFISH"}
            client.get("/api/keys", headers={**people.ann.headers(), **baggage})
        with started_client(rag_answer.app, people.ann.stack, monkeypatch, **settings) as client:
            client.post("/api/rag/answer", json=QUESTION, headers=people.ann.headers())
        spans, sent = spans_of(stand_in), b"".join(request.body for request in stand_in.requests)
    names = {span.name for span in spans if span.kind == Span.SPAN_KIND_SERVER}
    assert names == {
        "POST /api/keys", "DELETE /api/keys/{key_id}", "GET /api/keys", "GET no route",
        "POST /api/rag/answer", "_OTHER /api/keys",
    }  # fmt: skip
    for hidden in (key["key"], key["id"], people.ann.id, "ZEBRAFISH", "QUARTZ", "eyJ", "mn_live"):
        assert hidden.encode() not in sent


def test_a_client_error_is_not_a_span_error_and_a_server_error_is(
    people: People, monkeypatch: pytest.MonkeyPatch
):
    ann = people.ann.headers()
    cases: list[tuple[dict[str, str], dict[str, str], int, int]] = [
        ({}, {**ann, "Authorization": "Bearer a.b.c"}, 401, Status.STATUS_CODE_UNSET),
        ({"SUPABASE_ANON_KEY": "wrong"}, ann, 500, Status.STATUS_CODE_ERROR),
    ]
    for settings, headers, status, code in cases:
        with StandIn() as stand_in:
            changes = {**settings, **collector(stand_in)}
            with started_client(rag_search.app, people.ann.stack, monkeypatch, **changes) as client:
                answer = client.post("/api/rag/search", json=QUESTION, headers=headers)
            request, _ = request_and_steps(spans_of(stand_in))
        assert answer.status_code == values(request)["http.response.status_code"] == status
        assert request.status.code == code


# -- calls of services ------------------------------------------------------------------------------------


def test_database_calls_are_children_of_their_step_by_the_conventions(
    people: People, document: str, monkeypatch: pytest.MonkeyPatch
):
    with StandIn() as stand_in:
        settings = collector(stand_in)
        with started_client(rag_search.app, people.ann.stack, monkeypatch, **settings) as client:
            assert client.post("/api/rag/search", json=QUESTION, headers=people.ann.headers()).is_success
        spans = spans_of(stand_in)
    _, steps = request_and_steps(spans)
    name_of = {step.span_id: step.name for step in steps}
    calls = calls_of(spans, "db.system.name")
    named = [(call.name, name_of[call.parent_span_id]) for call in calls]
    assert named == [("rag_check_rate_limit", "limit"), ("rag_match", "match")]
    stack = urlsplit(people.ann.stack.url)
    assert values(calls[1]) == {
        "db.system.name": "postgresql",
        "db.stored_procedure.name": "rag_match",
        "server.address": stack.hostname,
        "server.port": stack.port,
    }


def test_a_failing_database_call_has_its_codes(people: People, monkeypatch: pytest.MonkeyPatch):
    with StandIn() as stand_in:
        settings = collector(stand_in)
        with started_client(collections.app, people.ann.stack, monkeypatch, **settings) as client:
            path = "/api/v1/collections/col_11111111111111111111111111111111"
            assert client.get(path, headers=people.ann.headers()).status_code == 404
        (call,) = [span for span in spans_of(stand_in) if span.name == "rag_get_collection"]
    assert call.status.code == Status.STATUS_CODE_ERROR
    codes = values(call)
    assert (codes["db.response.status_code"], codes["error.type"]) == ("PT404", "collection_not_found")


def test_model_calls_have_their_model_and_counts_of_tokens_and_no_text(
    people: People, monkeypatch: pytest.MonkeyPatch
):
    """An embedder, a reranker and a gateway that quote the question in all their fields."""
    people.ann.put([vector(1)], embedding_model=EMBEDDER, title="Door")
    question, org = QUESTION["query_text"], people.acme.id
    echo = {"model": "ZEBRAFISH", "id": "ZEBRAFISH"}
    embedding = {"object": "embedding", "index": 0, "embedding": vector(1)}
    message = {"role": "assistant", "content": "ZEBRAFISH."}
    choice = {"index": 0, "message": message, "finish_reason": "ZEBRAFISH"}
    with StandIn() as stand_in, StandIn() as embedder, StandIn() as reranker, StandIn() as gateway:
        embedder.replies(Reply(json={**echo, "data": [embedding], "usage": {"prompt_tokens": 7}}))
        reranker.replies(Reply(json={**echo, "results": [{"index": 0, "relevance_score": 0.9}]}))
        usage = {"prompt_tokens": 120, "completion_tokens": 8}
        gateway.replies(Reply(json={**echo, "choices": [choice], "usage": usage}))
        settings = {
            **collector(stand_in),
            "OPENAI_API_KEY": "sk-1", "RAG_EMBEDDING_URL": f"{embedder.url}/v1",
            "RAG_EMBEDDING_MODEL": EMBEDDER,
            "RAG_RERANK_PROVIDER": "cohere", "RAG_RERANK_API_KEY": "sk-2", "RAG_RERANK_URL": reranker.url,
            "RAG_RERANK_MODEL": "m-rank", "RAG_RERANK_ENABLED": "true",
            "RAG_LLM_API_KEY": "sk-3", "RAG_LLM_URL": f"{gateway.url}/v1", "RAG_LLM_MODEL": "m-chat",
        }  # fmt: skip
        with started_client(v1_answer.app, people.ann.stack, monkeypatch, **settings) as client:
            where = {"scope": "org", "organizationId": org}
            body = {"question": question, "quality": {"rerank": True}, **where}
            answer = client.post("/v1/answer", json=body, headers=people.ann.headers())
            assert answer.status_code == 200, answer.text
        with started_client(chat_completions.app, people.ann.stack, monkeypatch, **settings) as client:
            chat = {"model": "ZEBRAFISH", "messages": [{"role": "user", "content": "ZEBRAFISH"}]}
            response = client.post("/v1/chat/completions", json=chat, headers=people.ann.headers())
            assert response.status_code == 200, response.text
        spans, sent = spans_of(stand_in), b"".join(request.body for request in stand_in.requests)
    assert b"ZEBRAFISH" not in sent
    calls = calls_of(spans, "gen_ai.operation.name")
    by_name = {call.name: values(call) for call in calls}
    names = [f"embeddings {EMBEDDER}", "rerank m-rank", "chat m-chat", "chat"]
    assert list(by_name) == names
    steps = {span.span_id: span.name for span in spans if span.kind == Span.SPAN_KIND_INTERNAL}
    parents = {call.name: steps[call.parent_span_id] for call in calls}
    assert parents == dict(zip(names, ("embed", "rerank", "generate", "generate"), strict=True))
    assert by_name["chat m-chat"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-chat",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 8,
        "server.address": "127.0.0.1",
        "server.port": urlsplit(gateway.url).port,
    }
    assert by_name[f"embeddings {EMBEDDER}"]["gen_ai.usage.input_tokens"] == 7
    assert by_name["rerank m-rank"]["gen_ai.provider.name"] == "cohere"
    # The caller chose this model's name.
    assert "gen_ai.request.model" not in by_name["chat"]


def test_a_streamed_answer_s_call_ends_with_its_tokens(people: People, monkeypatch: pytest.MonkeyPatch):
    delta = {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 2}}
    events = [f"data: {json.dumps(part)}\n\n".encode() for part in (delta, usage)]
    with StandIn() as stand_in, StandIn() as gateway:
        gateway.replies(Reply(chunks=[events[0], 0.05, events[1], b"data: [DONE]\n\n"]))
        settings = {**collector(stand_in), "RAG_LLM_API_KEY": "sk-3", "RAG_LLM_URL": f"{gateway.url}/v1"}
        with started_client(chat_completions.app, people.ann.stack, monkeypatch, **settings) as client:
            body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
            assert "Yes." in client.post("/v1/chat/completions", json=body, headers=people.ann.headers()).text
        (call,) = calls_of(spans_of(stand_in), "gen_ai.operation.name")
    assert values(call)["gen_ai.usage.output_tokens"] == 2
    assert call.end_time_unix_nano - call.start_time_unix_nano >= 50_000_000


# -- without a collector ------------------------------------------------------------------------------

PROGRAM = """
import json, sys
from fastapi.testclient import TestClient
from functions import api_keys, health, metrics, rag_answer, rag_search, v1_answer
from shared.api.dependencies import services_dependency

def broken():
    raise RuntimeError("QUARTZ-5521, as a document says")

if "broken" in sys.argv:
    rag_search.app.dependency_overrides[services_dependency] = broken
with TestClient(rag_search.app, raise_server_exceptions=False) as client:
    status = client.post("/api/rag/search?q=ZEBRAFISH", json={"query_text": "x"}).status_code
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto")
print(json.dumps([status, [name for name in sys.modules if name.startswith(heavy)]]))
"""


def run_program(stack: Stack, *arguments: str, **settings: str) -> tuple[int, list[str]]:
    """The status of a request in a process of its own, and the slow modules that were imported."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={"PYTHONPATH": str(ROOT), **stack.function_environment(), **settings},
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    status, modules = json.loads(process.stdout)
    return status, modules


def test_no_exporter_is_imported_without_a_collector(stack: Stack):
    """FastAPI imports OpenTelemetry's own interface where it is installed; the rest is slow."""
    assert run_program(stack) == (401, [])


# FastAPI has telemetry of its own, on unless it is told otherwise: with this variable, or a provider
# that other code in the process sets, it sends metrics, and spans with the path and the query as written.
def test_environment_variables_do_not_extend_the_export(stack: Stack):
    with StandIn() as stand_in:
        settings = {**collector(stand_in), "FASTAPI_OTEL_AUTO_CONFIGURE": "true"}
        status, modules = run_program(stack, "broken", **settings)
        sent = b"".join(request.body for request in stand_in.requests)
    assert status == 500
    assert modules, "with a collector"
    assert {request.path for request in stand_in.requests} == {"/v1/traces"}
    request, steps = request_and_steps(spans_of(stand_in))
    assert (request.name, steps) == ("POST /api/rag/search", [])
    for hidden in (b"QUARTZ-5521", b"ZEBRAFISH"):
        assert hidden not in sent


# -- a collector that is down or slow -----------------------------------------------------------------


def search(client: Any, headers: dict[str, str], number: int = 5) -> None:
    """So many requests, all of them answered."""
    for _ in range(number):
        answer = client.post("/api/rag/search", json=QUESTION, headers=headers)
        assert answer.status_code == 200
        assert set(answer.json()) >= {"results", "total_found"}


@pytest.mark.parametrize("trouble", ["down", "slow", "failing"])
def test_a_failing_collector_changes_no_response_and_does_not_delay_the_end_of_the_process(
    people: People, document: str, monkeypatch: pytest.MonkeyPatch, trouble: str
):
    replies = {"slow": Reply(delay=600), "failing": Reply(status=503, headers={"Retry-After": "600"})}
    # What ended is sent ten times a second, so that the sending meets the requests.
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with StandIn() as stand_in:
        settings = collector(stand_in, replies.get(trouble, Reply()))
        if trouble == "down":
            settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        began = time.monotonic()
        with started_client(rag_search.app, people.ann.stack, monkeypatch, **settings) as client:
            search(client, people.ann.headers(), 1)
            time.sleep(0.3)
            search(client, people.ann.headers())
        # The end of the process waits for the last try, and not for the collector.
        assert time.monotonic() - began < 300


EVENT = {
    "version": "2.0", "routeKey": "$default", "rawPath": "/health", "rawQueryString": "",
    "headers": {"host": "example.com"}, "isBase64Encoded": False,
    "requestContext": {
        "http": {"method": "GET", "path": "/health", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"},
        "stage": "$default",
    },
}  # fmt: skip


# The batch processor's force_flush ignores its time-out, and waits as long as the exporter does.
def test_on_lambda_a_slow_collector_delays_a_response_by_two_seconds_at_most(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
):
    with StandIn() as stand_in:
        assert handled(stack, monkeypatch, collector(stand_in, Reply(delay=600))) < 300


def handled(stack: Stack, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> float:
    """How long the Lambda handler takes for a request, spans and all."""
    from functions import health

    on_lambda = {"AWS_LAMBDA_FUNCTION_NAME": "health"}
    for name, value in {**stack.function_environment(), **on_lambda, **settings}.items():
        monkeypatch.setenv(name, value)
    get_services.cache_clear()
    services = get_services()
    try:
        began = time.monotonic()
        answer = lambda_handler(health.app)(EVENT, None)
        spent = time.monotonic() - began
    finally:
        services.close()
        opentelemetry.start(None)
        get_services.cache_clear()
    assert answer["statusCode"] == 200
    return spent
