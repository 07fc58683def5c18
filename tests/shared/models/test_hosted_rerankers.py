"""The rerankers behind paid APIs, each against a real HTTP server that stands in for it."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from shared.errors import RerankFailed
from shared.models import reranking
from shared.models.hosted_rerankers import APIS
from shared.models.reranking import Reranker, reranker_for
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, StandIn

SECRET = "key-secret-7f3x"
PASSAGES = ["first", "second", "third"]
every_provider = pytest.mark.parametrize("provider", sorted(APIS))


def hosted(service: StandIn, provider: str = "cohere", **fields: Any) -> Reranker:
    own = {"rag_rerank_api_key": SECRET, "rag_rerank_url": f"{service.url}/v9/rerank"}
    made = reranker_for(settings(**{"rag_rerank_provider": provider, **own, **fields}))
    assert made is not None
    return closed_after_test(made)


def results(provider: str, *matches: tuple[Any, Any], **reply: Any) -> Reply:
    """An answer in the provider's form, of (index, relevance)s in this order."""
    listed = [{"index": index, NAMES[provider][1]: score} for index, score in matches]
    return Reply(json={"id": "1", "model": "m", NAMES[provider][0]: listed, "usage": {}}, **reply)


# The names on the wire, as the providers document them: of the list of results, and of a relevance in it.
NAMES = {
    "cohere": ("results", "relevance_score"),
    "jina": ("results", "relevance_score"),
    "voyage": ("data", "relevance_score"),
    "mixedbread": ("data", "score"),
}
JINA = {"model": "jina-reranker-v3.5", "top_n": 3, "return_documents": False}
VOYAGE = {"model": "rerank-2.5", "top_k": 3, "return_documents": False, "truncation": True}
MIXEDBREAD = {"model": "mixedbread-ai/mxbai-rerank-large-v2", "top_k": 3, "return_input": False}
REQUESTS = {
    "cohere": {"model": "rerank-v5.0-fast", "query": "a question", "documents": PASSAGES, "top_n": 3},
    "jina": {**JINA, "query": "a question", "documents": PASSAGES},
    "voyage": {**VOYAGE, "query": "a question", "documents": PASSAGES},
    "mixedbread": {**MIXEDBREAD, "query": "a question", "input": PASSAGES},
}


def failure(reranker: Reranker, passages: Sequence[str] = PASSAGES) -> RerankFailed:
    with pytest.raises(RerankFailed) as raised:
        reranker.score("a question", passages)
    output = f"{raised.value!r} {raised.value.log_reason} {raised.value.__cause__} {raised.value.headers}"
    assert SECRET not in output
    assert "first" not in output
    return raised.value


@every_provider
def test_each_provider_gets_its_own_request_and_scores_are_in_the_order_of_the_passages(
    service: StandIn, provider: str
):
    service.replies(results(provider, (2, 0.9), (0, 0.5), (1, 0)))
    assert hosted(service, provider).score("a question", PASSAGES) == [0.5, 0.0, 0.9]
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/v9/rerank")
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["content-type"] == "application/json"
    assert request.json == REQUESTS[provider]


# Faults are handled by the client that all providers share, so one provider stands for all of them.
@pytest.mark.usefixtures("short_pauses")
def test_a_temporary_failure_is_retried(subtests: pytest.Subtests):
    refusals = [Reply(status=status, json={"message": SECRET}) for status in (429, 500, 503)]
    for reply in (*refusals, Reply(drop=True)):
        with subtests.test(reply=reply), StandIn() as service:
            service.replies(reply, results("cohere", (0, 0.5)))
            assert hosted(service).score("a question", ["first"]) == [0.5]
            assert len(service.requests) == 2
            assert service.requests[0].json == service.requests[1].json


def test_an_error_status_is_a_failure_without_a_retry(subtests: pytest.Subtests):
    for status in (400, 401, 402, 403, 404, 422, 302, 204):
        with subtests.test(status=status), StandIn() as service:
            headers = {"Location": f"{service.url}/elsewhere"} if status == 302 else {}
            service.replies(Reply(status=status, json={"message": f"no such key {SECRET}"}, headers=headers))
            assert failure(hosted(service)).log_reason == f"HTTP {status}"
            assert len(service.requests) == 1


@pytest.mark.usefixtures("short_pauses")
def test_a_permanent_failure_is_given_up_after_three_attempts(subtests: pytest.Subtests):
    for reply, reason in ((Reply(status=503), "HTTP 503"), (Reply(drop=True), "RemoteProtocolError")):
        with subtests.test(reason), StandIn() as service:
            service.replies(reply)
            assert failure(hosted(service)).log_reason == reason
            assert len(service.requests) == 3
    with subtests.test("unreachable"), StandIn() as service:
        failure(hosted(service, rag_rerank_url="http://127.0.0.1:9/rerank"))


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(service: StandIn):
    service.replies(Reply(status=429, headers={"Retry-After": "60"}))
    assert failure(hosted(service)).log_reason == "HTTP 429"
    assert len(service.requests) == 1


def test_many_passages_are_sent_in_several_requests(service: StandIn):
    size = APIS["jina"].batch
    for start in (0, size):
        service.replies(results("jina", *[(place, (start + place) / 5000) for place in range(size)]))
    service.replies(results("jina", (1, 0.25), (0, 0.75)))
    scores = hosted(service, "jina").score("a question", [str(number) for number in range(2 * size + 2)])
    assert scores == [*[number / 5000 for number in range(2 * size)], 0.75, 0.25]
    assert [len(request.json["documents"]) for request in service.requests] == [size, size, 2]
    assert service.requests[2].json["documents"] == [str(2 * size), str(2 * size + 1)]


def test_all_batches_and_retries_share_one_time_out(service: StandIn, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reranking, "RERANK_SECONDS", 0.5)
    few = [(number, 0.5) for number in range(100)]
    service.replies(results("jina", *few, delay=0.3))
    failure(hosted(service, "jina"), [f"first {number}" for number in range(500)])
    assert len(service.requests) <= 2


MALFORMED: dict[str, Reply] = {
    "too few": results("cohere", (0, 0.1), (1, 0.2)),
    "too many": results("cohere", (0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4)),
    "an index twice": results("cohere", (0, 0.1), (1, 0.2), (1, 0.3)),
    "an index out of range": results("cohere", (0, 0.1), (1, 0.2), (3, 0.3)),
    "no index": Reply(json={"results": [{"relevance_score": 0.1}] * 3}),
    "no relevance": Reply(json={"results": [{"index": n} for n in range(3)]}),
    "an index as text": results("cohere", (0, 0.1), ("1", 0.2), (2, 0.3)),
    "a relevance as text": results("cohere", (0, 0.1), (1, "0.2"), (2, 0.3)),
    "a relevance of null": results("cohere", (0, 0.1), (1, None), (2, 0.3)),
    "nan": results("cohere", (0, 0.1), (1, math.nan), (2, 0.3)),
    "a number beyond all": results("cohere", (0, 0.1), (1, 10**400), (2, 0.3)), "a list": Reply(json=[]),
    "results that are null": Reply(json={"results": None}),
    "results that are an object": Reply(json={"results": {"a": 1}}),
    "an error with 200": Reply(json={"message": f"invalid key {SECRET}"}),
    "no json": Reply(body=b"{not json"), "not unicode": Reply(body=b'{"results": "\xff"}'),
    "nested without end": Reply(body=b"[" * 100_000),
    "a page": Reply(body=b"<html>", headers={"Content-Type": "text/html"}),
}  # fmt: skip


def test_a_malformed_reply_is_a_failure(subtests: pytest.Subtests):
    for kind, reply in MALFORMED.items():
        with subtests.test(kind), StandIn() as service:
            service.replies(reply)
            failure(hosted(service))
            assert len(service.requests) == 1


@pytest.mark.parametrize("key", ["schlüssel-7f3x", "line\nbreak-7f3x"])
def test_an_invalid_key_is_a_failure_that_does_not_show_it(service: StandIn, key: str):
    raised = failure(hosted(service, rag_rerank_api_key=key))
    assert "7f3x" not in f"{raised!r} {raised.log_reason} {raised.__cause__}"
    assert raised.__suppress_context__
    assert service.requests == []


def test_a_lone_surrogate_in_a_passage_is_a_failure(service: StandIn):
    failure(hosted(service), ["first \ud83d"])
    assert service.requests == []
