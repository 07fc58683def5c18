"""/query and /retrieve over HTTP, on the real stack and with a stand-in for the model."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from functions import index_query
from shared.api.contracts.shared_fields import LOCATION
from shared.config import Settings
from tests.actors import Actor, vector
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.test_indexes import KETTLE, TOASTER, digest, index
from tests.stand_in_server import Reply, StandIn

QUESTION = "At how many degrees does the kettle switch off?"
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "At 100 degrees."}}]}


def ask(actor: Actor, **more: Any) -> Any:
    return actor.post("/query", {"index_name": "rag_index", "query": QUESTION, **more})


def retrieve(actor: Actor, query: str = QUESTION, **more: Any) -> Any:
    return actor.post("/retrieve", {"index_name": "rag_index", "query": query, **more})


@contextmanager
def with_model(settings: Settings, api: StandIn) -> Iterator[TestClient]:
    """The function of a deployment that has a gateway."""
    changes = {"rag_llm_api_key": "sk-model", "rag_llm_url": api.url}
    with app_with(index_query.app, settings, **changes) as client:
        yield client


def test_an_answer_comes_from_the_retrieved_nodes(people: People):
    index(people.ann, KETTLE, TOASTER, author="kaito")
    body = ask(people.ann).json()
    assert set(body) == {"response", "source_nodes", "metadata", "confidence_detail"}
    assert "The kettle switches off at 100 degrees." in body["response"]
    best = body["source_nodes"][0]
    # The contract's fields come first.
    assert list(best) == ["doc_id", "node_id", "text", "score", "metadata", *LOCATION]
    assert (best["doc_id"], best["text"]) == (digest(KETTLE), KETTLE)
    assert body["metadata"] == {node["node_id"]: {"author": "kaito"} for node in body["source_nodes"]}
    scores = [node["score"] for node in body["source_nodes"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_the_model_gets_the_parameters_and_the_context(people: People, settings: Settings, gateway: StandIn):
    index(people.ann, KETTLE)
    gateway.replies(Reply(json=ANSWER))
    request = {"temperature": 0.7, "max_tokens": 2048, "top_p": 0.5, "seed": 7, "stop": ["END"], "unknown": 1}
    with with_model(settings, gateway) as client:
        body = {"index_name": "rag_index", "query": QUESTION, "llm_params": request}
        answer = client.post("/query", json=body, headers=people.ann.headers())
    assert answer.json()["response"] == "At 100 degrees."
    (query,) = gateway.requests
    del request["unknown"]
    assert "unknown" not in query.json
    assert {name: query.json[name] for name in request} == request
    assert KETTLE in query.json["messages"][-1]["content"]


def test_retrieval_filters_nodes_by_metadata(people: People):
    index(people.ann, KETTLE, author="a", year=2025)
    index(people.ann, TOASTER, author="b", year=2025)
    body = retrieve(people.ann, metadata_filter={"author": "b", "year": 2025}).json()
    assert set(body) == {"query", "results", "count"}
    assert (body["query"], body["count"]) == (QUESTION, 1)
    assert body["results"][0]["doc_id"] == digest(TOASTER)
    assert retrieve(people.ann, metadata_filter=None).json()["count"] == 2
    # No operators: an object is a value, and a key may begin with $.
    assert retrieve(people.ann, metadata_filter={"year": {"$gte": 2000}}).json()["count"] == 0
    special: dict[str, Any] = {"year": {"$gte": 2000}, "$or": [1]}
    index(people.ann, TOASTER + " Warm.", **special)
    for key, value in special.items():
        (result,) = retrieve(people.ann, metadata_filter={key: value}).json()["results"]
        assert result["metadata"]["year"] == {"$gte": 2000}
    assert retrieve(people.ann, metadata_filter={"author": "c"}).json() == {
        "query": QUESTION, "results": [], "count": 0,
    }  # fmt: skip


def test_retrieval_returns_up_to_three_hundred_nodes(people: People):
    people.ann.put([vector(number) for number in range(310)], collection="rag_index")
    assert retrieve(people.ann).json()["count"] == 5
    body = retrieve(people.ann, max_node_count=300).json()
    assert body["count"] == 300
    assert len({node["node_id"] for node in body["results"]}) == 300
