"""The demo's documents and questions: each question finds what it should."""

import io
import re
from contextlib import closing
from typing import Any

import psycopg
import pytest
from rich.console import Console

from local import demo
from local.demo_corpus import ORGS
from local.errors import CommandError
from local.seed_demo import demo_files, ingest_files, make_services, principals_of
from local.stack import Stack
from tests.stand_in_server import Reply, StandIn


@pytest.fixture(scope="module")
def filled(stack: Stack) -> tuple[Stack, int]:
    """The stack with the demo's documents, and how many chunks they made."""
    with closing(make_services(stack)) as services:
        _, chunks = ingest_files(services, demo_files(), principals_of(stack), Console(quiet=True))
    return stack, chunks


def texts_of(stack: Stack, chunk_ids: list[str]) -> str:
    with psycopg.connect(stack.database_url()) as connection:
        rows = connection.execute("select content from rag.chunks where id = any (%s::uuid[])", [chunk_ids])
        return "\n".join(text for (text,) in rows)


@pytest.mark.parametrize(
    "question", demo.questions(), ids=lambda question: f"{question.asker} {question.text}"
)
def test_each_question_is_answered_from_its_user_s_visible_documents(
    filled: tuple[Stack, int], question: demo.Question
):
    stack, _ = filled
    body = demo.ask(stack.url, stack.publishable_key, stack.token(question.asker), question)
    passages = body["results"] if question.call == "search" else body["citations"]
    org = {"halden.example": "halden", "brightwater.example": "brightwater"}[question.asker.split("@")[1]]
    assert {passage["meta"]["org_id"] for passage in passages} <= {ORGS[org]}
    if question.call == "search":
        assert question.expects is not None
        assert question.expects in texts_of(stack, [result["chunk_id"] for result in body["results"]])
        return
    if question.expects is not None:
        assert body["status"] == "success"
        assert question.expects in body["answer"]["text"]
    elif question.note == "nobody has the answer":
        assert body["status"] == "insufficient_context"
    else:
        # Another user who asks the same gets it: this one must not.
        (secret,) = {other.expects for other in demo.questions() if other.text == question.text} - {None}
        # Times of the response may have its digits.
        assert str(secret) not in re.sub(r"\d\d:\d\d:\d\d\.\d+", "", str(body))


def shown(body: dict[str, Any], **filters: str) -> list[str]:
    output = io.StringIO()
    question = demo.Question("ann@halden.example", "search", "How hot is the kettle?", filters=filters)
    demo.show(question, {"processing_time_ms": 7, **body}, Console(file=output, width=60))
    return output.getvalue().splitlines()


def test_a_search_shows_how_many_of_its_passages_follow():
    result = {"rank": 1, "score": 0.5, "source_title": "T", "source_type": "doc", "snippet": "hot"}
    _, line, *rows = shown({"results": [result] * 5, "total_found": 8})
    assert line == "  search: the first 3 of 8 passages, 7 ms"
    assert len([row for row in rows if row]) == 3


@pytest.mark.long
def test_documents_of_another_embedding_model_are_ingested_again(filled: tuple[Stack, int]):
    stack, chunks = filled
    count = "select count(*), count(distinct embedding_model) from rag.chunks"
    with closing(make_services(stack)) as services, psycopg.connect(stack.database_url()) as connection:
        assert demo.is_ingested(stack, services)
        connection.execute("update rag.chunks set embedding_model = 'another'")
        connection.commit()
        assert not demo.is_ingested(stack, services)
        demo.ingest(stack, services, Console(quiet=True))
        assert connection.execute(count).fetchone() == (chunks, 1)
        own = "select from rag.chunks where embedding_model = %s"
        assert connection.execute(own, [services.embedder.model]).rowcount == chunks


def test_an_embedder_that_answers_404_is_named_with_its_address(stack: Stack):
    with StandIn() as server:
        server.replies(Reply(status=404))
        url = f"{server.url}/v1"
        options = {"openai_api_key": "any", "rag_embedding_url": url, "rag_embedding_model": "nomic"}
        with closing(make_services(stack, **options)) as services, pytest.raises(CommandError) as raised:
            demo.ingest(stack, services, Console(quiet=True))
    assert f"RAG_EMBEDDING_URL {url} did not embed with the model nomic (status 404, model)" in str(
        raised.value
    )


def test_the_start_says_which_models_refuse(stack: Stack):
    """A refused key, and a model that the endpoint does not have."""
    output = io.StringIO()
    with StandIn() as embeddings, StandIn() as gateway:
        embeddings.replies(Reply(status=401))
        gateway.replies(Reply(status=404, json={"error": {"code": "model_not_found"}}))
        options = {
            "openai_api_key": "any", "rag_embedding_url": embeddings.url, "rag_llm_api_key": "any",
            "rag_llm_url": gateway.url,
        }  # fmt: skip
        with closing(make_services(stack, **options)) as services:
            demo.try_models(services, Console(file=output, width=300))
    embedder, model = output.getvalue().splitlines()
    assert embedder.startswith(
        "The embedding model does not answer: The embedding model refused the deployment's"
    )
    assert "OPENAI_API_KEY" in embedder
    assert model.startswith(
        "The answering model does not answer: The answering model is unknown to its endpoint."
    )
