"""A misspelt filter never widens a search unnoticed: it is named, applied or refused, in all contracts."""

import pytest

from shared.services import Services
from tests.conftest import People
from tests.functions.platform_chat_client import result_of
from tests.functions.search_workspace import put, workspace_id
from tests.functions.test_answers_without_a_model import HOME
from tests.functions.test_mcp import Agent

QUESTION = "At how many degrees does the kettle switch off?"
MISSPELT = {"autor": "ann"}


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
            body = result_of(ann.post(path, request))
            assert body.get("ignored_filters", body.get("ignoredFilters")) == ["autor"]
            field = "constraints" if "constraints" in request else "filters"
            result = result_of(ann.post(path, {**request, field: {}}))
            assert not {"ignored_filters", "ignoredFilters"} & set(result)
    # Keys of metadata, which may have any name.
    retrieval = {"metadata_filter": MISSPELT}
    chat = {"message": QUESTION, "stream": False, "retrieval": retrieval}
    condition = {"name": "autor", "comparison_operator": "is", "value": "ann"}
    of_dify = {"knowledge_id": HOME, "query": QUESTION, "metadata_condition": {"conditions": [condition]}}
    applied = {
        "/api/v1/retrievals": ("results", {"query": QUESTION, **retrieval}),
        "/api/v1/chat": ("sources", chat),
        f"/api/v1/knowledge/{HOME}/retrieve": ("chunks", {"query": QUESTION, "filters": MISSPELT}),
        f"/api/v1/knowledge/{HOME}/query": ("chunks", {"question": QUESTION, "filters": MISSPELT}),
        "/retrieve": ("results", {"index_name": HOME, "query": QUESTION, **retrieval}),
        "/api/dify/retrieval": ("records", of_dify),
    }
    for path, (name, filtered) in applied.items():
        with subtests.test(path=path):
            assert result_of(ann.post(path, filtered))[name] == []
    with subtests.test("MCP"):
        assert Agent(ann).result("search", query=QUESTION, autor="ann").is_error
