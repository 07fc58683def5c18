"""The embedders: the real OpenAI client against a stand-in for the paid API, and the local model."""

import base64
import math
import struct
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from shared.errors import EmbeddingFailed
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed, embedder_for, local_embedder
from shared.models.openai_embedder import OpenAIEmbedder
from shared.models.vectors import DIMENSIONS
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, StandIn

SECRET = "sk-secret-7f3x"


def hosted(service: StandIn, **fields: Any) -> Embedder:
    return closed_after_test(
        embedder_for(
            settings(**{"openai_api_key": SECRET, "rag_embedding_url": f"{service.url}/v1", **fields})
        )
    )


def vectors(*items: Any) -> Reply:
    """An answer with these embeddings, in order."""
    data = [{"object": "embedding", "index": place, "embedding": item} for place, item in enumerate(items)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(json={"object": "list", "data": data, "model": "m", "usage": usage})


def refusal(status: int, **headers: str) -> Reply:
    error = {"message": f"upstream says {SECRET}", "type": "x", "code": "x"}
    return Reply(status=status, json={"error": error}, headers={"retry-after-ms": "1", **headers})


def failure(service: StandIn, **fields: Any) -> EmbeddingFailed:
    with pytest.raises(EmbeddingFailed) as raised:
        embed(hosted(service, **fields), ["a text"], Role.DOCUMENT)
    assert raised.value.status == 500
    return raised.value


def test_the_request_has_model_texts_key_and_the_stored_size(service: StandIn):
    service.replies(vectors([1.0, 0.0], [0.0, 1.0]))
    embed(hosted(service), ["first", "second"], Role.DOCUMENT)
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/v1/embeddings")
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.json == {
        "model": "text-embedding-3-small", "input": ["first", "second"], "encoding_format": "base64",
        "dimensions": 1536,
    }  # fmt: skip


def test_a_size_is_requested_only_of_models_that_support_it(subtests: pytest.Subtests):
    cases: list[tuple[str, int | None]] = [
        ("text-embedding-3-small", 1536), ("text-embedding-3-large", 1536), ("text-embedding-ada-002", None),
        ("bge-m3", None),
    ]  # fmt: skip
    for model, request in cases:
        with subtests.test(model=model), StandIn() as service:
            service.replies(vectors([1.0]))
            embedder = hosted(service, rag_embedding_model=model)
            embed(embedder, ["a text"], Role.DOCUMENT)
            assert service.requests[0].json.get("dimensions") == request
            assert service.requests[0].json["model"] == embedder.model == model


def test_a_set_size_is_requested_of_any_model_and_no_more_is_accepted(service: StandIn):
    service.replies(vectors([0.1] * 3072), vectors([0.1] * 3073), vectors([0.1] * 1536))
    embedder = hosted(service, rag_embedding_model="gemini-embedding-001", rag_embedding_dimensions=3072)
    assert embed(embedder, ["a text"], Role.DOCUMENT) == [[0.1] * 3072]
    assert service.requests[0].json["dimensions"] == 3072
    for smaller in (embedder, hosted(service, rag_embedding_dimensions=512)):
        with pytest.raises(EmbeddingFailed):
            embed(smaller, ["a text"], Role.DOCUMENT)


@pytest.mark.parametrize("dimensions", [255, 3073])
def test_a_size_that_the_database_cannot_store_is_refused(service: StandIn, dimensions: int):
    with pytest.raises(ValidationError):
        hosted(service, rag_embedding_dimensions=dimensions)


def test_texts_are_sent_in_batches_of_128_and_returned_in_order(service: StandIn):
    for start, end in ((0, 128), (128, 256), (256, 300)):
        service.replies(vectors(*[[float(number + 1)] for number in range(start, end)]))
    results = embed(hosted(service), [f"text {number}" for number in range(300)], Role.DOCUMENT)
    assert [len(request.json["input"]) for request in service.requests] == [128, 128, 44]
    assert [text for request in service.requests for text in request.json["input"]] == [
        f"text {number}" for number in range(300)
    ]
    assert [vector[0] for vector in results] == [float(number + 1) for number in range(300)]


def test_an_empty_list_sends_no_request(service: StandIn):
    assert embed(hosted(service), [], Role.DOCUMENT) == []
    assert service.requests == []


def test_shorter_vectors_are_padded_with_zeros(service: StandIn):
    service.replies(vectors([0.6, 0.8]))
    (vector,) = embed(hosted(service), ["a text"], Role.DOCUMENT)
    assert len(vector) == DIMENSIONS == 1536
    assert vector[:2] == [0.6, 0.8]
    assert not any(vector[2:])


def test_a_vector_of_the_stored_size_is_unchanged_as_numbers_and_in_base64(service: StandIn):
    full = [number / 4096 for number in range(1, 1537)]
    service.replies(vectors(full), vectors(base64.b64encode(struct.pack("<1536f", *full)).decode()))
    for _ in range(2):
        assert embed(hosted(service), ["a text"], Role.DOCUMENT) == [full]


def test_a_vector_that_cannot_be_read_or_stored_is_a_failure(subtests: pytest.Subtests):
    # Lengths that are no multiple of four, other characters, no number, NaN and infinity.
    encoded = ("AAA", "AAAA", "AAAAAAAAAAA=", "!!!!", "AACAf!==", "é", "", "AADAfw==", "AACAfw==")
    cases: dict[str, Any] = {
        **{f"base64 {text}": text for text in encoded},
        "too many dimensions": [1.0] * 1537,
        "nan": [1.0, math.nan],
        "infinite": [math.inf],
        "zero": [0.0] * 1536,
        "empty": [],
    }
    # What a wrong address, or a proxy that is unwell, sends with status 200.
    pages = {
        "no json": Reply(body=b"{not json"),
        "null": Reply(json=None),
        "null data": Reply(json={"data": None}),
    }
    for case, reply in ({case: vectors(vector) for case, vector in cases.items()} | pages).items():
        with subtests.test(case), StandIn() as service:
            service.replies(reply)
            failure(service)


@pytest.mark.usefixtures("short_pauses")
def test_a_broken_connection_and_a_busy_endpoint_get_three_requests_at_most(service: StandIn):
    service.replies(Reply(drop=True), refusal(429), vectors([1.0]), refusal(502))
    assert embed(hosted(service), ["a text"], Role.DOCUMENT)[0][0] == 1.0
    failure(service)
    assert len(service.requests) == 6


@pytest.mark.usefixtures("short_pauses")
def test_an_endpoint_gets_no_request_within_its_retry_after(service: StandIn):
    """The pause is longer than the time-out, so there is no second attempt."""
    service.replies(refusal(429, **{"retry-after-ms": "", "retry-after": "60"}), vectors([1.0]))
    failure(service, rag_llm_timeout_seconds=90)
    assert len(service.requests) == 1


def test_an_invalid_key_or_request_fails_at_once_without_a_fallback(subtests: pytest.Subtests):
    # A refusal that does not say why may be about an optional field: a second request has none.
    cases = (
        (400, "embedder_refused", 2), (401, "embedder_unauthorized", 1), (403, "embedder_unauthorized", 1),
        (404, "embedder_not_found", 1), (422, "embedder_refused", 2),
    )  # fmt: skip
    for status, code, count in cases:
        with subtests.test(status=status), StandIn() as service:
            service.replies(refusal(status))
            raised = failure(service)
            assert (raised.code, len(service.requests)) == (code, count)
            assert raised.log_reason == f"status {status}: upstream says … x x"
            assert SECRET not in f"{raised!r} {raised} {raised.headers}"


def test_a_time_out_is_a_failure(service: StandIn):
    service.replies(replace(vectors([1.0]), delay=30))
    failure(service, rag_llm_timeout_seconds=1.5)
    # On a machine that is busy for half a second, the time is over before the request.
    assert len(service.requests) <= 1


def test_hosted_models_use_the_upper_bound_of_tokens_and_have_room_for_passages(service: StandIn):
    embedder = hosted(service)
    assert isinstance(embedder, OpenAIEmbedder)
    assert embedder.count_tokens("The logger FL-300") > 0
    assert service.requests == []
    assert embedder.passage_tokens <= embedder.window == 8191


def test_without_a_key_the_local_model_embeds(embedder: Embedder):
    chosen = embedder_for(settings())
    assert chosen is local_embedder() is embedder
    assert chosen.model == "all-MiniLM-L6-v2"
    assert chosen.window == 256
    assert chosen.passage_tokens <= chosen.window - 2


def test_an_endpoint_whose_refusals_contradict_each_other_ends_the_request(short_pauses: None):
    required = {"error": {"message": "input_type is required for asymmetric models"}}
    refused = {"error": {"message": "extra fields not permitted: input_type"}}
    with StandIn() as service:
        service.replies(
            Reply(
                json=lambda request: Reply(
                    status=400, json=refused if "input_type" in request.json else required
                )
            )
        )
        with pytest.raises(EmbeddingFailed):
            hosted(service).embed(["What is it?"], Role.QUESTION)
        assert len(service.requests) < 12
