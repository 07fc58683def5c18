"""Fields in all contracts: metadata, misspelt filters, pages, collections, unknown fields."""

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from local import ROOT
from shared.api.contracts.knowledge import RetrieveRequest
from shared.services import Services
from tests.actors import NOBODYS, World, webhook_arguments
from tests.conftest import People
from tests.functions.app_server import NO_METADATA, json_of, platform_error
from tests.functions.platform_chat_client import result_of
from tests.functions.search_workspace import put, workspace_id
from tests.functions.test_answers_without_a_model import HOME, answers
from tests.functions.test_mcp import Agent


def test_metadata_that_is_not_json_is_refused_by_field(subtests: pytest.Subtests, people: People):
    home = json_of(people.ann.post("/v1/collections", {"name": "docs"}), 201)["id"]
    place = f'"collection_id": "{home}"'
    text = {"collection_id": home, "content": "x"}
    document = json_of(people.ann.post("/v1/documents/text", text), 202)["id"]
    requests = (
        ("POST", "/v1/collections", '"name": "x", "metadata": %s'),
        ("PATCH", f"/v1/collections/{home}", '"metadata": %s'),
        ("POST", "/v1/documents/text", f'{place}, "content": "x", "metadata": %s'),
        ("POST", "/v1/documents/upload", f'{place}, "filename": "a.pdf", "size_bytes": 1, "metadata": %s'),
        ("PATCH", f"/v1/documents/{document}", '"title": "x", "metadata": %s'),
        ("POST", "/v1/retrievals", '"query": "x", "metadata_filter": %s'),
        ("POST", "/api/v1/knowledge/docs/documents", '"documents": [{"text": "x", "metadata": %s}]'),
        ("POST", "/index", '"index_name": "docs", "documents": [{"text": "x", "metadata": %s}]'),
    )
    for number, (method, path, body) in enumerate(requests):
        for metadata in NO_METADATA[:: 4 if number else 1]:
            with subtests.test(path=path, metadata=metadata):
                response = people.ann.raw(method, path, f"{{{body % metadata}}}")
                if "documents" in body:
                    assert json_of(response, 422)["detail"][0]["loc"][-1] == "metadata"
                else:
                    field = platform_error(response, 400)["details"]["field"]
                    assert f'"{field}": %s' in body
    assert people.ann.request("GET", f"/v1/documents/{document}").json()["metadata"] == {}
    (listed,) = people.ann.request("GET", "/v1/collections").json()["data"]
    assert (listed["name"], listed["metadata"]) == ("docs", {})


QUESTION = "At how many degrees does the kettle switch off?"
MISSPELT = {"autor": "ann"}
OF_METADATA = {"air_filter": "paper"}
IGNORED_FILTERS = ("ignored_filters", "ignoredFilters")


def ignored_filters_of(response: Any) -> list[str] | None:
    """Of the body; those of the header are the same, with ? for what a header may not have."""
    body = result_of(response)
    body = body["metadata"] if "usage" in body and "metadata" in body else body
    names: list[str] | None = next((body[name] for name in IGNORED_FILTERS if name in body), None)
    header = response.headers.get("x-rag-ignored-filters")
    assert header == (names and ", ".join(names).replace("\n", "?"))
    return names


def test_a_misspelt_filter_is_named_applied_or_refused(
    subtests: pytest.Subtests, people: People, services: Services
):
    put(services, people.ann, HOME, "Kettle manual", "The kettle switches off at 100 degrees.")
    ann, workspace = people.ann, workspace_id(people.ann, HOME)
    subject = {"kind": "text", "text": QUESTION}
    named = {
        "/api/rag/search": {"query_text": QUESTION, "filters": MISSPELT},
        "/api/rag/answer": {"query_text": QUESTION, "filters": MISSPELT},
        "/v1/search": {"workspaceId": workspace, "q": QUESTION, "filters": MISSPELT},
        "/v1/answer": {"workspaceId": workspace, "question": QUESTION, "constraints": MISSPELT},
        "/v1/similar": {"workspaceId": workspace, "subject": subject, "filters": MISSPELT},
    }
    for path, request in named.items():
        with subtests.test(path=path):
            assert ignored_filters_of(ann.post(path, request)) == ["autor"]
            field = "constraints" if "constraints" in request else "filters"
            assert ignored_filters_of(ann.post(path, {**request, field: {}})) is None
    # Keys of metadata, which may have any name.
    retrieval = {"metadata_filter": OF_METADATA}
    chat = {"message": QUESTION, "stream": False, "retrieval": retrieval}
    condition = {"name": "air_filter", "comparison_operator": "is", "value": "paper"}
    of_dify = {"knowledge_id": HOME, "query": QUESTION, "metadata_condition": {"conditions": [condition]}}
    applied = {
        "/api/v1/retrievals": ("results", {"query": QUESTION, **retrieval}),
        "/api/v1/chat": ("sources", chat),
        f"/api/v1/knowledge/{HOME}/retrieve": ("chunks", {"query": QUESTION, "filters": OF_METADATA}),
        f"/api/v1/knowledge/{HOME}/query": ("chunks", {"question": QUESTION, "filters": OF_METADATA}),
        "/retrieve": ("results", {"index_name": HOME, "query": QUESTION, **retrieval}),
        "/api/dify/retrieval": ("records", of_dify),
    }
    for path, (name, filtered) in applied.items():
        with subtests.test(path=path):
            response = ann.post(path, filtered)
            assert result_of(response)[name] == []
            assert ignored_filters_of(response) is None
    # In a field that this API lacks: in the body and, as in a stream, in a header.
    of_answer = {"message": QUESTION, "stream": False}
    of_completion = {"index_name": HOME, "messages": [{"role": "user", "content": QUESTION}]}
    ignored: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
        "/api/rag/search": ({"query_text": QUESTION}, [{"filter": MISSPELT}, {"search": {"Filters": 1}}]),
        "/api/rag/answer": ({"query_text": QUESTION}, [{"metadata_filter": MISSPELT}]),
        "/v1/search": (
            {"workspaceId": workspace, "q": QUESTION},
            [{"filter": 1}, {"quality": {"filter": 1}}, {"Constraint": 1}],
        ),
        "/v1/answer": ({"workspaceId": workspace, "question": QUESTION}, [{"filters": MISSPELT}]),
        "/v1/similar": ({"workspaceId": workspace, "subject": subject}, [{"filtr\n": MISSPELT}]),
        "/api/v1/retrievals": ({"query": QUESTION}, [{"filters": MISSPELT}]),
        "/api/v1/chat": (of_answer, [{"metadata_filter": {}}, {"retrieval": {"metadata_filtr": MISSPELT}}]),
        f"/api/v1/knowledge/{HOME}/retrieve": ({"query": QUESTION}, [{"filter": MISSPELT}]),
        f"/api/v1/knowledge/{HOME}/query": ({"question": QUESTION}, [{"filter": MISSPELT}]),
        "/retrieve": ({"index_name": HOME, "query": QUESTION}, [{"filters": MISSPELT}]),
        "/query": ({"index_name": HOME, "query": QUESTION}, [{"filters": 1}, {"llm_params": {"filter": 1}}]),
        "/v1/chat/completions": (of_completion, [{"metadata_filter": MISSPELT}]),
    }
    for path, (request, additions) in ignored.items():
        for added in additions:
            with subtests.test(path=path, added=added):
                ((name, inner),) = added.items()
                is_nested = isinstance(inner, dict) and "filt" not in name
                name = f"{name}.{next(iter(inner))}" if is_nested else name
                assert ignored_filters_of(ann.post(path, {**request, **added})) == [name]
                if path in ("/v1/answer", "/api/v1/chat", "/v1/chat/completions"):
                    stream = ann.post(path, {**request, **added, "stream": True})
                    assert stream.headers["content-type"].startswith("text/event-stream")
                    assert stream.headers["x-rag-ignored-filters"] == name
    with subtests.test("Dify, which reads no further field"):
        for added in (
            {"filters": MISSPELT},
            {"metadata_conditions": {}},
            {"metadata_condition": {"conditons": []}},
        ):
            response = ann.post("/api/dify/retrieval", {**of_dify, **added})
            name = "conditons" if "metadata_condition" in added else next(iter(added))
            assert response.headers["x-rag-ignored-filters"] == name
    with subtests.test("a long name, and many in an object with one"):
        long = {"x" * 100_000: {f"filter{number:04}": 1 for number in range(7_000)}}
        tracemalloc.start()
        body = RetrieveRequest.model_validate({"query": QUESTION, **long})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert body.ignored_filters == ["x" * 100]
        assert peak < 20_000_000
    with subtests.test("null, and an object that is passed to the model"):
        assert (
            ignored_filters_of(ann.post("/api/rag/search", {"query_text": QUESTION, "filter": None})) is None
        )
        passed = {**of_completion, "metadata": OF_METADATA}
        assert ignored_filters_of(ann.post("/v1/chat/completions", passed)) is None
    with subtests.test("MCP"):
        assert Agent(ann).result("search", query=QUESTION, autor="ann").is_error


LOCATION = {"page_number": 3, "page_end": 4, "section": "Operation > Safety"}
# Names of the search contract.
NAMES = {"pageNumber": "page_number", "pageEnd": "page_end", "sectionLabel": "section"}
PASSAGES = ("citations", "sources", "source_nodes", "results", "passages")


def passages_in(body: Any) -> Iterator[dict[str, Any]]:
    """Each citation and passage of a response."""
    for name, value in body.items() if isinstance(body, dict) else ():
        if name in PASSAGES and isinstance(value, list):
            yield from value
        for item in value if isinstance(value, list) else [value]:
            yield from passages_in(item)


def location_in(passage: dict[str, Any]) -> dict[str, Any]:
    own = {NAMES.get(name, name): value for name, value in passage.items()}
    own |= own.get("chunk_metadata") or {}
    # The knowledge contract has the page as text.
    if isinstance(own.get("page"), str):
        own |= {"page_number": int(own["page"]), "page_end": LOCATION["page_end"]}
    return {name: own.get(name) for name in LOCATION}


def test_every_citation_has_its_page_and_section(
    subtests: pytest.Subtests, people: People, services: Services, world: World
):
    put(services, people.ann, HOME, "Kettle manual", "The kettle switches off at 100 degrees.")
    world.sql(
        "update rag.chunks set metadata = %s::jsonb where org_id = %s", json.dumps(LOCATION), people.acme.id
    )
    ann, agent = people.ann, Agent(people.ann)
    knowledge = {"query": QUESTION, "include_citations": True}
    body = {"question": QUESTION, "include_citations": True}
    bodies = {name: body for name, _, body in answers(ann, QUESTION) if name != "knowledge"}
    bodies |= {
        "knowledge": result_of(ann.post(f"/api/v1/knowledge/{HOME}/query", body)),
        "rag search": ann.search(QUESTION).json(),
        "knowledge retrieve": result_of(ann.post(f"/api/v1/knowledge/{HOME}/retrieve", knowledge)),
        "retrievals": result_of(ann.post("/api/v1/retrievals", {"query": QUESTION})),
        "retrieve": result_of(ann.post("/retrieve", {"index_name": HOME, "query": QUESTION})),
        "search of /v1": result_of(
            ann.post("/v1/search", {"workspaceId": workspace_id(ann, HOME), "q": QUESTION})
        ),
        "MCP search": agent.call("search", query=QUESTION),
        "MCP answer": agent.call("answer", question=QUESTION),
    }
    for name, body in bodies.items():
        with subtests.test(contract=name):
            passages = [passage for passage in passages_in(body) if "references" not in passage]
            assert passages
            assert [location_in(passage) for passage in passages] == [LOCATION] * len(passages)


def test_sources_of_one_title_have_the_names_of_their_collections(
    subtests: pytest.Subtests, people: People, services: Services
):
    for name, degrees in (("kitchen", 100), ("laboratory", 95)):
        put(
            services,
            people.ann,
            name,
            "Manual",
            f"The kettle of the {name} switches off at {degrees} degrees.",
        )
    chat = {"message": QUESTION, "stream": False}
    requests = {
        "/api/rag/search": ("results", "source_title", {"query_text": QUESTION}),
        "/api/rag/answer": ("citations", "source_title", {"query_text": QUESTION}),
        "/api/v1/retrievals": ("results", None, {"query": QUESTION}),
        "/api/v1/chat": ("sources", "title", chat),
    }
    for path, (field, title, request) in requests.items():
        with subtests.test(path=path):
            sources = result_of(people.ann.post(path, request))[field]
            assert {one["collection_name"] for one in sources} == {"kitchen", "laboratory"}
            assert {one[title] if title else one["document"]["title"] for one in sources} == {"Manual"}
    with subtests.test("MCP"):
        sources = Agent(people.ann).call("answer", question=QUESTION)["sources"]
        assert {one["collection_name"] for one in sources} == {"kitchen", "laboratory"}


def test_a_change_names_the_fields_that_it_ignores(
    people: People, services: Services, no_jobs: None, subtests: pytest.Subtests
):
    put(services, people.ada, "docs", "Kettle manual", "The kettle switches off at 100 degrees.")
    collection = workspace_id(people.ada, "docs").removeprefix("ws_")
    documents = json_of(people.ada.request("GET", f"/v1/documents?collection_id={collection}"))["data"]
    site = {"collection_id": collection, "kind": "website", "address": "https://docs.example/"}
    source = json_of(people.ada.post("/v1/sources", site), 201)["id"]
    webhook = people.ada.rpc("rag_create_webhook", webhook_arguments()).json()[0]["id"]
    changes: dict[str, tuple[str, dict[str, Any]]] = {
        "/api/v1/documents/{document_id}": (documents[0]["id"], {"title": "Kettle"}),
        "/api/v1/collections/{collection_id}": (collection, {"description": "Manuals"}),
        "/api/v1/sources/{source_id}": (source, {"max_items": 7}),
        "/api/v1/webhooks/{webhook_id}": (webhook, {"description": "A hook"}),
        "/api/v1/records/settings": ("", {"retention_days": 7}),
        "/api/v1/orgs/{org_id}": (people.acme.id, {"restricts_collections": False}),
    }
    paths = json.loads((ROOT / "openapi" / "platform.json").read_text())["paths"]
    assert changes.keys() == {
        path for path, methods in paths.items() if "patch" in methods and path.startswith("/api/v1/")
    }
    for path, (subject, change) in changes.items():
        with subtests.test(path=path):
            address = f"{path.partition('{')[0]}{subject}"
            body = json_of(people.ada.request("PATCH", address, change))
            assert "ignored_fields" not in body
            unknown = {"owner_id": NOBODYS, "ttile": "x", **change}
            body = json_of(people.ada.request("PATCH", address, unknown))
            assert body["ignored_fields"] == ["owner_id", "ttile"]
            assert change.items() <= body.items()
    config = {"config": {"chunk_sise": 64, "chunk_size": 64}}
    body = json_of(people.ada.request("PATCH", f"/v1/collections/{collection}", config))
    assert (body["config"]["chunk_size"], body["ignored_fields"]) == (64, ["config.chunk_sise"])
    moved = json_of(
        people.ada.request("PATCH", f"/v1/documents/{documents[0]['id']}", {"collection_id": NOBODYS})
    )
    assert (moved["collection_id"], moved["ignored_fields"]) == (collection, ["collection_id"])
