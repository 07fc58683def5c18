"""Documents of one title: the collection of a source tells them apart, in all APIs that search several."""

import pytest

from shared.services import Services
from tests.conftest import People
from tests.functions.platform_chat_client import result_of
from tests.functions.search_workspace import put
from tests.functions.test_mcp import Agent

QUESTION = "At how many degrees does the kettle switch off?"


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
