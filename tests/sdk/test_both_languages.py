"""Behaviour of both SDKs: names in place of ids, the parameters and the results of a retrieval."""

import inspect
import re
from typing import Any

import pytest

from mnemosyne import ConflictError, Mnemosyne, NotFoundError
from mnemosyne.resources.retrievals import RetrievalsResource
from shared.services import Services
from tests.conftest import People
from tests.functions.search_workspace import workspace
from tests.sdk.python_client import address_of, client_of, key_of
from tests.sdk.typescript_package import HOME, KEY, Package, Row
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")
TEXT = "The kiln is hot."
VALUES: Row = {
    "collection_id": HOME, "query": "q", "mode": "hybrid", "top_k": 3, "document_type": "legal",
    "rerank": True, "enable_graph": False, "metadata_filter": {"a_b": 1},
}  # fmt: skip


def camel(value: Any) -> Any:
    """The names as TypeScript has them; free-form values unchanged."""
    if isinstance(value, list):
        return list(map(camel, value))
    if not isinstance(value, dict):
        return value
    free = {"document_metadata", "chunk_metadata"}
    return {
        re.sub(r"_(\w)", lambda match: match[1].upper(), name): inner if name in free else camel(inner)
        for name, inner in value.items()
    }


def test_a_collection_is_used_by_its_name(typescript: Package, people: People):
    with client_of(people.ann) as ann:
        made = ann.collections.create("Handbook")
        assert ann.collections.get("Handbook") == made
        document = ann.documents.create_from_text("Handbook", TEXT)
        assert document.collection_id == made.id
        assert [each.id for each in ann.documents.list("Handbook")] == [document.id]
        assert list(ann.retrievals.retrieve("Handbook", "kiln", mode="keyword")) == []
        for call in (ann.collections.get, lambda name: ann.retrievals.retrieve(name, "kiln")):
            with pytest.raises(NotFoundError, match="you see: 'Handbook'") as unknown:
                call("handbook")
            assert unknown.value.code == "collection_not_found"
        client = {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)}
        home = {"collectionId": "Handbook"}
        got, second, listed, chat, unseen, gone = typescript.results(
            client,
            {"call": "collections.get", "args": ["Handbook"]},
            {
                "call": "documents.create",
                "args": [home],
                "file": {"kind": "named", "name": "a.txt", "text": "b"},
            },
            {"call": "documents.list", "args": [home]},
            {
                "call": "chat.completions.create",
                "args": [{**home, "messages": [{"role": "user", "content": "kiln?"}]}],
            },
            {"call": "retrievals.retrieve", "args": [{"collectionId": "handbook", "query": "kiln"}]},
            {"call": "collections.delete", "args": ["Handbook", {"cascade": True}]},
        )
        assert (got["value"]["id"], second["value"]["collectionId"]) == (made.id, made.id)
        assert chat["value"]["metadata"]["collectionId"] == made.id
        assert len(listed["value"]["items"]) == 2
        assert unseen["error"]["message"].endswith('Check the name; you see: "Handbook".')
        assert (unseen["error"]["name"], unseen["error"]["status"]) == ("NotFoundError", 404)
        assert "error" not in gone
        assert ann.collections.list() == []


def test_a_name_of_two_orgs_is_refused_and_an_org_is_used_by_its_name(typescript: Package, people: People):
    token, address = people.kim.token(), address_of(people.kim.stack)
    with Mnemosyne(token, address) as kim:
        first = kim.collections.create("Handbook", org_id="Acme")
        assert first.org_id == people.acme.id
        create = {"call": "collections.create", "args": [{"name": "Handbook", "orgId": "Bolt"}]}
        unknown = {"call": "collections.create", "args": [{"name": "Handbook", "orgId": "Cog"}]}
        get = {"call": "collections.get", "args": ["Handbook"]}
        second, unseen, two = typescript.results({"baseUrl": address, "apiKey": token}, create, unknown, get)
        assert second["value"]["orgId"] == people.bolt.id
        assert unseen["error"]["message"].endswith('you see: "Acme", "Bolt".')
        with pytest.raises(ConflictError, match="2 collections have the name 'Handbook'") as ambiguous:
            kim.collections.delete("Handbook")
        for error in (str(ambiguous.value), two["error"]["message"]):
            assert first.id in error
            assert second["value"]["id"] in error


def test_a_name_is_looked_for_on_all_pages(typescript: Package, gateway: StandIn):
    def page(offset: int, has_more: bool, *rows: Row) -> Reply:
        data = [*rows, *({"id": f"i{number}", "name": f"n{number:03}"} for number in range(100 - len(rows)))]
        pagination = {"total": 200, "limit": 100, "offset": offset, "has_more": has_more}
        return Reply(json={"data": data, "pagination": pagination})

    pages = (page(0, True), page(100, False, {"id": HOME, "name": "Handbook"}))
    gateway.replies(*pages, Reply(status=404, json={}), *pages, Reply(status=404, json={}))
    with Mnemosyne(KEY, gateway.url) as client, pytest.raises(NotFoundError):
        client.collections.get("Handbook")
    typescript.results({"baseUrl": gateway.url}, {"call": "collections.get", "args": ["Handbook"]})
    paths = [
        "/collections?limit=100&offset=0", "/collections?limit=100&offset=100", f"/collections/{HOME}",
    ]  # fmt: skip
    assert [request.path for request in gateway.requests] == paths * 2


def test_a_retrieval_has_the_same_parameters(typescript: Package, gateway: StandIn):
    assert set(inspect.signature(RetrievalsResource.retrieve).parameters) == {"self", *VALUES}
    reply = {"query": "q", "mode": "hybrid", "total_results": 0, "results": []}
    gateway.replies(*[Reply(json=reply)] * 4)
    with Mnemosyne(KEY, gateway.url) as client:
        client.retrievals.retrieve(**VALUES)
        client.retrievals.retrieve(None, "q")
    free = {"metadataFilter": VALUES["metadata_filter"]}
    steps = [{**camel(VALUES), **free}, {"query": "q"}]
    typescript.results(
        {"baseUrl": gateway.url}, *({"call": "retrievals.retrieve", "args": [step]} for step in steps)
    )
    assert [request.json for request in gateway.requests] == [VALUES, {"query": "q"}] * 2


def test_a_retrieval_has_the_same_result(typescript: Package, people: People, core: Services):
    workspace(core, people.ann)
    question = "Why was there a billing outage?"
    with client_of(people.ann) as ann:
        result = ann.retrievals.retrieve(None, question, mode="hybrid", enable_graph=True)
        arguments = {"query": question, "mode": "hybrid", "enableGraph": True}
        (output,) = typescript.results(
            {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)},
            {"call": "retrievals.retrieve", "args": [arguments]},
        )
    other = output["value"]
    assert [chunk["chunkId"] for chunk in other["items"]] == [chunk.chunk_id for chunk in result]
    details = {
        name: getattr(result, name)
        for name, value in vars(type(result)).items()
        if isinstance(value, property)
    }
    details = {
        name: value.model_dump(mode="json") if hasattr(value, "model_dump") else value
        for name, value in details.items()
    }
    for each in (other["retrievalMetadata"], details["retrieval_metadata"]):
        each.pop("retrieval_time_ms", None)
        each.pop("retrievalTimeMs", None)
    assert {"items": camel([chunk.model_dump(mode="json") for chunk in result]), **camel(details)} == other
