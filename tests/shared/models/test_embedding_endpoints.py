"""Embedding endpoints as they are: each refusal and each shape of a response that real servers send.

embedding_endpoints.json has their statuses and words. A stand-in refuses by the rule of a row: `refuses` is a
limit of texts or characters in a request, lists, a field, a request without a field, one text, the first
request, or all. `code` is the error of the query and of the ingestion; without one both succeed.
"""

import json
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from shared.errors import EmbeddingFailed
from shared.ingestion.chunking.chunked_document import ChunkingConfig
from shared.ingestion.synchronous_ingestion import NewDocument, chunk_and_embed
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed, embedder_for
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, Request, StandIn

WAYS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("embedding_endpoints.json").read_text(encoding="utf-8")
)
# The only text that the endpoints with `text` refuse.
REFUSED = "forbidden"
COUNT = 100
PASSAGES = [f"Report {number:03}" for number in range(COUNT)]
pytestmark = pytest.mark.usefixtures("short_pauses")


def number_of(text: str) -> float:
    """The first number of a vector, by which the test finds its text."""
    digits = "".join(filter(str.isdigit, text))
    return float(int(digits[-3:]) + 1) if digits else 500.0


def data(vectors: Sequence[Any], indices: Sequence[int] | None = None) -> list[dict[str, Any]]:
    items = [{"object": "embedding", "index": index, "embedding": own} for index, own in enumerate(vectors)]
    for item, index in zip(items, indices or (), strict=False):
        item["index"] = index
    return items


def shaped(shape: str, vectors: list[Any]) -> Any:
    """The response with the vectors in this shape."""
    count, usage = len(vectors), {"prompt_tokens": 4, "total_tokens": 4}
    rows: dict[str, list[Any]] = {
        "empty vectors": data([[]] * count),
        "no index": [{"embedding": vector} for vector in vectors],
        "index 0": data(vectors, [0] * count),
        "index 1": data(vectors, [1] * count),
        "index from 1": data(vectors, range(1, count + 1)),
        "reversed": data(vectors)[::-1],
        "no data": [],
        "first": data(vectors[:1]),
        "all but one": data(vectors[: max(1, count - 1)]),
        "rows of tokens": data([[vector, vector] for vector in vectors]),
        "one row": data([[vector] for vector in vectors]),
        "nulls": data([[None, None], *vectors[1:]]),
        "null": data([*vectors[:-1], None]),
        "NaN": data([[float("nan")]] * count),
        "zeros": data([[0, 0]] * count),
        "strings": data([[*map(str, vector)] for vector in vectors]),
    }
    whole: dict[str, Any] = {
        "Cohere": {"embeddings": {"float": vectors}},
        "Ollama": {"model": "m", "embeddings": vectors},
        "Ollama, none": {"model": "m", "embeddings": []},
        "Ollama, one": {"embedding": []},
        "Cloudflare": {"result": {"shape": [count, 2], "data": vectors}, "success": True, "errors": []},
        "plain": vectors,
        "no usage": {"data": data(vectors)},
        "null usage": {"data": data(vectors), "model": None, "usage": None},
        "total tokens": {"data": data(vectors), "usage": {"total_tokens": 4}},
        "no tokens": {"data": data(vectors), "usage": {"prompt_tokens": 0, "total_tokens": 0}},
    }
    return whole.get(shape) or {"object": "list", "data": rows.get(shape, data(vectors)), "usage": usage}


def texts_of(body: dict[str, Any]) -> list[str]:
    return [body["input"]] if isinstance(body["input"], str) else body["input"]


class Endpoint:
    """Embeds or refuses as a row of the table says. `refusals`: the number of refused requests."""

    def __init__(self, way: dict[str, Any], dimensions: int = 2) -> None:
        self.way, self.dimensions, self.refusals, self.bodies = way, dimensions, 0, list[dict[str, Any]]()

    def refuses(self, body: dict[str, Any]) -> bool:
        rule, texts = self.way.get("refuses"), texts_of(body)
        match rule:
            case None:
                return False
            case "all":
                return True
            case "first":
                return not self.refusals
            case "text":
                return any(REFUSED in text for text in texts)
            case {"texts": limit}:
                return len(texts) > int(limit)
            case {"characters": limit}:
                return sum(map(len, texts)) > int(limit)
            case {"lists": _}:
                return isinstance(body["input"], list)
            case {"field": name}:
                return name in body
            case {"without": name}:
                return name not in body
        raise AssertionError(rule)

    def __call__(self, request: Request) -> Reply:
        body = request.json
        self.bodies.append(body)
        if self.refuses(body):
            self.refusals += 1
            content = json.dumps(self.way["body"]) if "body" in self.way else self.way.get("text", "")
            headers = dict(self.way.get("headers", {}))
            if "date" in headers.get("retry-after", ""):
                headers["retry-after"] = format_datetime(
                    datetime.now(UTC) + timedelta(seconds=1), usegmt=True
                )
            return Reply(status=self.way["status"], body=content.encode(), headers=headers)
        texts = texts_of(body)
        own: list[Any] = [[number_of(text), 0.5, *[0.0] * (self.dimensions - 2)] for text in texts]
        if self.way.get("shape") == "base64":
            own = [b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() for vector in own]
        return Reply(json=shaped(self.way.get("shape", ""), own))


def embedder_of(service: StandIn, way: dict[str, Any], **fields: Any) -> Embedder:
    """The settings under which the way matters: a model with dimensions or with roles."""
    match way.get("refuses"):
        case {"field": "dimensions"}:
            fields = {"rag_embedding_model": "text-embedding-3-small", **fields}
        case {"field": ("task" | "prompt_name") as name}:
            forms = {"question": {name: "query"}, "document": {name: "passage"}}
            fields = {"rag_embedding_roles": json.dumps({"bge-m3": forms}), **fields}
    own = {"openai_api_key": "sk-own-7f3x", "rag_embedding_url": f"{service.url}/v1", **fields}
    return closed_after_test(embedder_for(settings(**{"rag_embedding_model": "bge-m3", **own})))


def ingest(embedder: Embedder, refused: int) -> list[dict[str, Any]]:
    """The rows of as many documents, whose titles have their number."""
    texts = [REFUSED if number == refused else "A short text." for number in range(COUNT)]
    documents = [NewDocument(f"Report {number:03}", text) for number, text in enumerate(texts)]
    return chunk_and_embed(embedder, documents, ChunkingConfig(is_graph_enabled=False))


@pytest.mark.parametrize("way", WAYS, ids=[way["name"] for way in WAYS])
def test_a_query_and_an_ingestion_succeed_or_name_their_cause(way: dict[str, Any]):
    code, is_text = way.get("code"), way.get("refuses") == "text"
    dimensions = 1536 if way.get("refuses") == {"field": "dimensions"} else 2
    endpoint = Endpoint(way, dimensions)
    with StandIn() as service:
        service.replies(Reply(json=endpoint))
        embedder = embedder_of(service, way)
        if code:
            query = REFUSED if is_text else "question 006"
            assert_named(failure(embed, embedder, [query], Role.QUESTION), way, is_query=True)
        else:
            ((first, *_),) = embed(embedder, ["question 006"], Role.QUESTION)
            assert first == 7.0
        # A new embedder, which has learned nothing of the endpoint.
        embedder, endpoint.refusals = embedder_of(service, way), 0
        endpoint.bodies.clear()
        if not code:
            assert_vectors(embed(embedder, PASSAGES, Role.DOCUMENT))
            first, refusals = len(endpoint.bodies), endpoint.refusals
            if refusals and way["name"] != "ollama-embed-500-many":
                assert_vectors(embed(embedder, PASSAGES, Role.DOCUMENT))
                # What the endpoint accepts is remembered.
                assert endpoint.refusals == refusals
                assert len(endpoint.bodies) - first <= first
            return
        error = failure(ingest, embedder, 57)
        assert_named(error, way, is_query=False)
        # A refusal is found by halves, and no request is repeated without end.
        assert len(endpoint.bodies) <= 30
        if is_text:
            assert "Report 057" in str(error)
            assert (error.details["document"], error.details["passage"]) == (57, 1)
            assert len(embed(embedder, PASSAGES, Role.DOCUMENT)) == COUNT


def failure(action: Callable[..., Any], *arguments: Any) -> EmbeddingFailed:
    with pytest.raises(EmbeddingFailed) as raised:
        action(*arguments)
    return raised.value


def assert_named(error: EmbeddingFailed, way: dict[str, Any], *, is_query: bool) -> None:
    is_document = way["code"] == "embedding_failed" and not is_query
    assert error.code == ("document_not_embedded" if is_document else way["code"])
    assert "<" not in str(error)
    assert len(error.log_reason) <= 220
    if way["code"] in ("embedding_failed", "text_too_long"):
        assert ("query" in str(error)) is is_query


def assert_vectors(vectors: list[list[float]]) -> None:
    assert [vector[0] for vector in vectors] == [number + 1.0 for number in range(COUNT)]


def test_the_limit_that_the_words_name_is_used_at_once():
    for way in WAYS:
        if isinstance(way.get("refuses"), dict) and way["refuses"].get("texts") in (10, 16, 20, 25):
            endpoint = Endpoint(way)
            with StandIn() as service:
                service.replies(Reply(json=endpoint))
                embedder = embedder_of(service, way)
                limit = way["refuses"]["texts"]
                for _ in range(2):
                    embed(embedder, [f"text {number}" for number in range(64)], Role.DOCUMENT)
                sizes = [len(body["input"]) for body in endpoint.bodies]
                assert endpoint.refusals == 1
                assert sizes == [64, *[*[limit] * (64 // limit), *([64 % limit] if 64 % limit else [])] * 2]


def test_dimensions_are_left_out_only_where_the_model_has_as_many():
    way = next(way for way in WAYS if way["name"] == "vllm-dimensions-refused")
    for dimensions, number in ((768, None), (1024, 512)):
        with StandIn() as service:
            service.replies(Reply(json=Endpoint(way, dimensions)))
            embedder = embedder_of(service, way, rag_embedding_dimensions=number)
            error = failure(embed, embedder, ["a text"], Role.QUESTION)
            assert error.code == "embedder_refused"
            assert f"{dimensions:,} dimensions" in error.log_reason
            assert "RAG_EMBEDDING_DIMENSIONS" in error.log_reason


def test_a_required_role_differs_for_questions_and_documents():
    words = {"nim-input-type-required-error": ("query", "passage"),
             "cohere-input-type-required": ("search_query", "search_document")}  # fmt: skip
    for way in WAYS:
        if way["name"] in words:
            endpoint = Endpoint(way)
            with StandIn() as service:
                service.replies(Reply(json=endpoint))
                embedder = embedder_of(service, way)
                for role in (Role.QUESTION, Role.DOCUMENT):
                    embed(embedder, ["a text"], role)
                assert [body.get("input_type") for body in endpoint.bodies] == [None, *words[way["name"]]]


def test_many_threads_learn_one_limit():
    way = next(way for way in WAYS if way["name"] == "dashscope-batch-10")
    endpoint = Endpoint(way)
    with StandIn() as service, ThreadPoolExecutor(8) as pool:
        service.replies(Reply(json=endpoint))
        embedder = embedder_of(service, way)
        texts = [f"text {number:03}" for number in range(64)]
        for vectors in pool.map(lambda _: embed(embedder, texts, Role.DOCUMENT), range(16)):
            assert [vector[0] for vector in vectors] == [number + 1.0 for number in range(64)]
        assert endpoint.refusals <= 8


def test_an_outage_of_the_endpoint_costs_few_requests():
    for status, most in ((500, 12), (503, 3), (429, 3)):
        endpoint = Endpoint({"refuses": "all", "status": status, "text": "unwell"})
        with StandIn() as service:
            service.replies(Reply(json=endpoint))
            embedder = embedder_of(service, {})
            texts = [f"text {number}" for number in range(64)]
            error = failure(embed, embedder, texts, Role.DOCUMENT)
            assert (str(error), error.text) == ("The document could not be embedded. Please try again.", None)
            assert len(endpoint.bodies) <= most
