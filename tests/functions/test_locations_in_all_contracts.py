"""Page and section of each citation and passage in all contracts and in MCP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.platform_chat_client import result_of
from tests.functions.search_workspace import put, workspace_id
from tests.functions.test_answers_without_a_model import HOME, answers
from tests.functions.test_mcp import Agent

QUESTION = "At how many degrees does the kettle switch off?"
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
    asked = {"question": QUESTION, "include_citations": True}
    bodies = {name: body for name, _, body in answers(ann, QUESTION) if name != "knowledge"}
    bodies |= {
        "knowledge": result_of(ann.post(f"/api/v1/knowledge/{HOME}/query", asked)),
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
