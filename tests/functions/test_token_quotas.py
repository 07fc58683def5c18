"""Quotas of tokens over HTTP: the counts, and the responses to an org that has used up its tokens."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from functions import (
    chat,
    chat_completions,
    dify,
    index_query,
    knowledge,
    rag_answer,
    rag_search,
    retrievals,
    v1_answer,
    v1_search,
)
from shared.access.token_signer import principal_at_end
from shared.access.token_usage import Quota, TokenUsage, record
from shared.config import Settings
from shared.documents import documents
from shared.documents.documents import NewUpload
from shared.errors import EmbeddingQuotaExceeded, Forbidden
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult, Jobs
from shared.models.embedding_roles import Role
from shared.services import Services
from shared.types import Principal
from tests.actors import MODEL, Actor, World
from tests.conftest import People
from tests.functions.app_server import app_with, client_of, services_with
from tests.functions.chat_completions_client import DONE, encode, piece, user
from tests.sql.operations.test_token_quotas import USAGE, limit
from tests.stand_in_server import Reply, Request, StandIn

QUESTION = "At how many degrees does the kettle switch off?"
KETTLE = "The kettle switches off at 100 degrees. The kettle holds 1.7 litres of water."
ANSWER = "The kettle switches off at 100 degrees [1]."


def completion(request: Request) -> dict[str, Any]:
    usage = {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40}
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}}], "usage": usage}


@pytest.fixture
def embedding_server(services: Services) -> Iterator[StandIn]:
    """The local model behind HTTP, with seven tokens for each text."""

    def embed(request: Request) -> dict[str, Any]:
        vectors = services.embedder.embed(request.json["input"], Role.DOCUMENT)
        data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return {"data": data, "usage": dict.fromkeys(("prompt_tokens", "total_tokens"), 7 * len(data))}

    with StandIn() as server:
        server.replies(Reply(json=embed))
        yield server


@pytest.fixture
def paid(settings: Settings, gateway: StandIn, embedding_server: StandIn) -> Iterator[Services]:
    """A deployment whose models all cost money."""
    gateway.replies(Reply(json=completion))
    endpoints = {
        "rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url,
        "openai_api_key": "sk-embedder", "rag_embedding_url": embedding_server.url,
        "rag_embedding_model": MODEL,
    }  # fmt: skip
    with services_with(settings, **endpoints) as services:
        yield services


@contextmanager
def clients(services: Services, *modules: Any) -> Iterator[list[TestClient]]:
    with ExitStack() as until:
        yield [until.enter_context(client_of(module.app, services)) for module in modules]


def ingest(client: TestClient, actor: Actor, text: str = KETTLE, name: str = "kettle") -> Any:
    body = {"documents": [{"document_id": name, "text": text, "title": "Kettle"}]}
    return client.post("/api/v1/knowledge/kitchen/documents", json=body, headers=actor.headers())


def ask(client: TestClient, path: str, actor: Actor, text: str = QUESTION) -> Any:
    return client.post(path, json={"query_text": text}, headers=actor.headers())


def assert_wait_until_midnight(response: Any) -> None:
    now = datetime.now(UTC)
    left = 86_400 - (now.hour * 3600 + now.minute * 60 + now.second)
    # The test may run at midnight.
    assert abs(int(response.headers["Retry-After"]) - left) < 300 or left < 300 or left > 86_100


def test_tokens_are_those_that_the_endpoints_report(people: People, world: World, paid: Services):
    with clients(paid, knowledge, rag_search, rag_answer) as (knowing, searching, answering):
        assert ingest(knowing, people.ann).status_code < 300
        assert world.sql(USAGE, people.acme.id) == [("embedding", 7, 1)]
        for _ in range(2):
            # The second time, the embedding of the question is cached.
            assert ask(searching, "/api/rag/search", people.ann).json()["total_found"] == 1
        assert world.sql(USAGE, people.acme.id) == [("embedding", 14, 2)]
        response = ask(answering, "/api/rag/answer", people.ann)
        assert response.json()["answer"]["model"] == paid.settings.rag_llm_model
        assert "X-Quota-Exceeded" not in response.headers
    assert world.sql(USAGE, people.acme.id) == [("embedding", 14, 2), ("model", 40, 1)]
    assert world.sql(USAGE, people.bolt.id) == []


def test_the_local_model_costs_nothing(people: People, world: World, services: Services):
    with clients(services, knowledge, rag_answer) as (knowing, answering):
        ingest(knowing, people.ann)
        assert ask(answering, "/api/rag/answer", people.ann).status_code == 200
    assert world.sql(USAGE, people.acme.id) == []


def test_a_stream_is_counted_even_if_it_breaks_or_reports_no_usage(
    people: People, world: World, settings: Settings, paid: Services
):
    with StandIn() as model:
        model.replies(
            Reply(chunks=[*encode(piece("It "), piece("does."), piece()), DONE]),
            Reply(chunks=[*encode(piece("It "), piece("does"))], drop=True),
        )
        with app_with(chat_completions.app, settings, rag_llm_api_key="sk", rag_llm_url=model.url) as client:
            for calls in (1, 2):
                body = {"messages": [user("Hello there, how are you?")], "stream": True}
                client.post("/v1/chat/completions", json=body, headers=people.ann.headers())
                ((_, tokens, counted),) = world.sql(USAGE, people.acme.id)
                assert counted == calls
                assert tokens >= 8 * calls


def test_a_stream_reports_its_usage_to_the_quota_and_not_to_a_client_without_the_option(
    people: People, world: World, settings: Settings
):
    usage = {"prompt_tokens": 900, "completion_tokens": 99, "total_tokens": 999}
    with StandIn() as model:
        model.replies(Reply(chunks=[*encode(piece("Hi."), piece(), {"choices": [], "usage": usage}), DONE]))
        with app_with(chat_completions.app, settings, rag_llm_api_key="sk", rag_llm_url=model.url) as client:
            for is_wanted in (False, True):
                options = {"stream_options": {"include_usage": True}} if is_wanted else {}
                body = {"messages": [user()], "stream": True, **options}
                response = client.post("/v1/chat/completions", json=body, headers=people.ann.headers())
                assert "Hi." in response.text
                assert ("usage" in response.text) is is_wanted
    assert world.sql(USAGE, people.acme.id) == [("model", 1998, 2)]


def test_a_request_that_outlasts_its_credential_is_counted(people: People, world: World, paid: Services):
    restrictions = {"org": people.acme.id, "key": people.ann.id, "scopes": ["chat:read"]}
    used = TokenUsage([(Quota.MODEL, 5)])
    for claims in ({}, {"rag": restrictions}):
        caller = Principal(people.ann.id, people.ann.token(exp=int(time.time()) - 3600, **claims))
        record(paid.database, caller, used)
        signed = principal_at_end(paid.signer, caller)
        # The token that is signed for the count permits nothing else.
        with pytest.raises(Forbidden):
            paid.database.call(signed, "rag_list_collections", {})
        record(paid.database, signed, used)
    assert world.sql(USAGE, people.acme.id) == [("model", 10, 2)]
    caller = people.ann.principal
    assert principal_at_end(paid.signer, caller) is caller
    assert principal_at_end(None, caller) is caller


def test_with_both_quotas_exceeded_answers_are_extracted_by_words(
    people: People, world: World, paid: Services, gateway: StandIn, embedding_server: StandIn
):
    limit(world, people.acme, model_tokens_per_day=40, embedding_tokens_per_day=14)
    with clients(paid, knowledge, rag_answer) as (knowing, answering):
        ingest(knowing, people.ann)
        assert ask(answering, "/api/rag/answer", people.ann).json()["answer"]["model"] != "extractive"
        calls = len(gateway.requests), len(embedding_server.requests)
        response = ask(answering, "/api/rag/answer", people.ann)
    assert response.status_code == 200, response.text
    assert response.headers["X-Quota-Exceeded"] == "embedding, model"
    assert "100 degrees" in response.json()["answer"]["text"]
    assert "litres" not in response.json()["answer"]["text"]
    assert (len(gateway.requests), len(embedding_server.requests)) == calls


def test_without_model_tokens_answers_are_extracted_and_say_so(
    people: People, world: World, paid: Services, gateway: StandIn
):
    limit(world, people.acme, model_tokens_per_day=40)
    modules = knowledge, rag_answer, v1_answer, chat, chat_completions
    with clients(paid, *modules) as (knowing, answering, cited, chatting, completing):
        ingest(knowing, people.ann)
        assert ask(answering, "/api/rag/answer", people.alf).json()["answer"]["model"] != "extractive"
        calls = len(gateway.requests)
        headers = people.ann.headers()
        response = ask(answering, "/api/rag/answer", people.ann)
        assert response.json()["answer"]["model"] == "extractive"
        assert "100 degrees" in response.json()["answer"]["text"]
        assert response.headers["X-Quota-Exceeded"] == "model"
        body = {"question": QUESTION, "scope": "org", "organizationId": people.acme.id}
        response = cited.post("/v1/answer", json=body, headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["X-Quota-Exceeded"] == "model"
        message = {"message": QUESTION, "stream": False}
        response = chatting.post("/api/v1/chat", json=message, headers=headers)
        assert (response.status_code, response.headers["X-Quota-Exceeded"]) == (200, "model")
        assert response.json()["metadata"]["model"] == "extractive"
        # A completion without documents has nothing to extract from.
        response = completing.post("/v1/chat/completions", json={"messages": [user()]}, headers=headers)
        assert response.status_code == 429
        assert "model tokens" in response.text
        assert_wait_until_midnight(response)
        assert len(gateway.requests) == calls
        # Another org has its own tokens.
        of_bob, chat_body = people.bob.headers(), {"messages": [user()]}
        assert completing.post("/v1/chat/completions", json=chat_body, headers=of_bob).is_success


# The requests of all contracts that need an embedding of the question: function, path, the question's name,
# other fields, and where an error has its code. Those of index, knowledge and Dify have the message alone.
SEARCHES: dict[str, tuple[Any, str, str, dict[str, Any], tuple[str, ...]]] = {
    "rag search": (rag_search, "/api/rag/search", "query_text", {}, ("error", "code")),
    "rag answer": (rag_answer, "/api/rag/answer", "query_text", {}, ("error", "code")),
    "search": (v1_search, "/v1/search", "q", {"scope": "org"}, ("error", "details", "reason")),
    "cited answer": (v1_answer, "/v1/answer", "question", {"scope": "org"}, ("error", "details", "reason")),
    "platform retrieval": (retrievals, "/v1/retrievals", "query", {}, ("error", "code")),
    "platform chat": (chat, "/api/v1/chat", "message", {"stream": False}, ("error", "code")),
    "index retrieval": (index_query, "/retrieve", "query", {"index_name": "kitchen"}, ("detail",)),
    "index query": (index_query, "/query", "query", {"index_name": "kitchen"}, ("detail",)),
    "knowledge retrieval": (knowledge, "/api/v1/knowledge/kitchen/retrieve", "query", {}, ("detail",)),
    "knowledge query": (knowledge, "/api/v1/knowledge/kitchen/query", "question", {}, ("detail",)),
    "Dify": (dify, "/api/dify/retrieval", "query", {"knowledge_id": "kitchen"}, ("error_msg",)),
}  # fmt: skip


def test_without_embedding_tokens_each_contract_refuses_a_new_question(
    subtests: pytest.Subtests, people: People, world: World, paid: Services, embedding_server: StandIn,
    gateway: StandIn,
):  # fmt: skip
    with clients(paid, knowledge) as (knowing,):
        ingest(knowing, people.ann)
    limit(world, people.acme, embedding_tokens_per_day=7)
    calls = len(embedding_server.requests)
    for name, (module, path, question, fields, place) in SEARCHES.items():
        with subtests.test(name), clients(paid, module) as (client,):
            body = {question: f"{QUESTION} {name}", "organizationId": people.acme.id, **fields}
            refused = client.post(path, json=body, headers=people.ann.headers())
            assert refused.status_code == 429, refused.text
            assert_wait_until_midnight(refused)
            value = refused.json()
            for key in place:
                value = value[key]
            error = EmbeddingQuotaExceeded
            assert value == (error.__doc__ if place[0] in ("detail", "error_msg") else error.code)
            assert "litres" not in refused.text
    assert len(embedding_server.requests) == calls
    assert not gateway.requests


def test_without_embedding_tokens_cached_and_keyword_searches_continue(
    people: People, world: World, paid: Services, embedding_server: StandIn
):
    limit(world, people.acme, embedding_tokens_per_day=14)
    with clients(paid, knowledge, rag_search) as (knowing, searching):
        ingest(knowing, people.ann)
        assert ask(searching, "/api/rag/search", people.ann).status_code == 200
        calls = len(embedding_server.requests)
        assert ask(searching, "/api/rag/search", people.ann).json()["total_found"] == 1
        response = ask(searching, "/api/rag/search", people.ann, "What does it hold?")
        assert response.status_code == 429
        assert response.json()["error"]["code"] == "embedding_quota_exceeded"
        assert_wait_until_midnight(response)
        assert ingest(knowing, people.ann, name="other").status_code == 429
        body = {"q": "kettle", "mode": "keyword", "scope": "org", "organizationId": people.acme.id}
        with client_of(v1_search.app, paid) as client:
            response = client.post("/v1/search", json=body, headers=people.ann.headers())
        assert response.status_code == 200, response.text
        assert len(embedding_server.requests) == calls


def test_the_worker_counts_each_org_s_passages_and_defers_documents_of_an_exceeded_quota(
    people: People, world: World, paid: Services, no_jobs: None
):
    limit(world, people.acme, embedding_tokens_per_day=10)
    worker = Worker(Jobs(paid.database, paid.require_signer()), paid.embedder)

    def add(actor: Actor, text: str) -> str:
        collection = actor.rpc("rag_create_collection", {"name": text}).json()[0]["id"]
        upload = NewUpload(text.encode(), title="Kettle", content_type="text/plain")
        return str(documents.add(paid.database, actor.principal, collection, upload)["id"])

    add(people.ann, "A long text about kettles and about their many uses in a kitchen.")
    add(people.bob, "A short text.")
    assert worker.work() + worker.work() == BatchResult(claimed=2, completed=2)
    ((_, long, _),), ((_, short, _),) = (world.sql(USAGE, org.id) for org in (people.acme, people.bolt))
    assert (long, short) == (7, 7)
    world.sql("update rag.token_usage set tokens = 10 where org_id = %s", people.acme.id)
    deferred, other = add(people.ann, "Tomorrow."), add(people.bob, "Today.")
    assert worker.work() + worker.work() == BatchResult(claimed=2, completed=1, postponed=1)
    state = (
        "select document_id::text, state from rag.jobs where kind = 'ingestion' and document_id = any (%s)"
    )
    states = dict(world.sql(state, [deferred, other]))
    assert states == {deferred: "waiting", other: "done"}
    ((code, attempts, is_midnight),) = world.sql(
        "select error_code, attempts, abs(extract(epoch from due_at - "
        "(date_trunc('day', now() at time zone 'UTC') + interval '1 day') at time zone 'UTC')) < 300 "
        "from rag.jobs where kind = 'ingestion' and document_id = %s",
        deferred,
    )
    assert (code, attempts, is_midnight) == ("embedding_quota_exceeded", 0, True)
    assert worker.work() == BatchResult()
    world.sql("update rag.token_usage set day = day - 1; update rag.jobs set due_at = now()")
    assert worker.work() == BatchResult(claimed=1, completed=1)
