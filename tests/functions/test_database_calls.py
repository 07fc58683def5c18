"""Calls of the database for one question: a search and its judged matches are one call."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from functions import chat, chat_completions, index_query, rag_answer, rag_search, v1_answer
from shared.config import Settings
from shared.services import Services
from tests.functions.app_server import client_of, proxy_to, services_with
from tests.functions.search_workspace import Workspace

QUESTION = "What was the root cause of the billing outage?"
ONE = "rag_judged_search"
GRAPH = "rag_graph_search"
LEGS = {"mode": "hybrid", "hierarchical": False, "enable_graph": False}


def requests_of(home: Workspace) -> dict[str, tuple[Any, str, dict[str, Any], list[str]]]:
    """By a name: the app, the path, the body, and the searches that the database serves."""
    chats = {
        "semantic": {"mode": "semantic", "enable_graph": False},
        "keyword": {"mode": "keyword", "enable_graph": False},
        "hybrid": {**LEGS, "top_k": 20},
        "graph": {"mode": "graph"},
        "default": {},
    }
    answers = ("auto", "keyword", "hybrid", "graph", "neural", "fast")
    collection = home.id.removeprefix("ws_")
    search = {"workspaceId": home.id, "question": QUESTION}
    messages = [{"role": "user", "content": QUESTION}]
    return {
        "rag-search": (rag_search.app, "/api/rag/search", {"query_text": QUESTION}, ["rag_match"]),
        "rag-answer": (rag_answer.app, "/api/rag/answer", {"query_text": QUESTION}, [ONE]),
        "query": (index_query.app, "/query", {"index_name": home.name, "query": QUESTION}, ["rag_search"]),
        "completions": (
            chat_completions.app, "/v1/chat/completions", {"index_name": home.name, "messages": messages},
            ["rag_search"],
        ),
        **{
            f"chat, {name}": (
                chat.app, "/v1/chat",
                {"message": QUESTION, "collection_id": collection, "stream": False, "retrieval": retrieval},
                [GRAPH if name in ("graph", "default") else ONE],
            )
            for name, retrieval in chats.items()
        },
        **{
            f"answer, {mode}": (
                v1_answer.app, "/v1/answer", search | {"mode": mode},
                [GRAPH if mode in ("auto", "graph") else ONE],
            )
            for mode in answers
        },
    }  # fmt: skip


@contextmanager
def counted(settings: Settings) -> Iterator[tuple[Services, list[str]]]:
    """A pipeline whose calls of the database are recorded."""
    with (
        proxy_to(settings.supabase_url) as (address, paths),
        services_with(settings, supabase_url=address, supabase_jwt_issuer=settings.issuer) as services,
    ):
        yield services, paths


def test_an_answer_s_matches_and_judged_matches_are_one_call(
    subtests: pytest.Subtests, settings: Settings, home: Workspace
):
    with counted(settings) as (services, paths), ExitStack() as stack:
        for name, (app, path, body, searches) in requests_of(home).items():
            client = stack.enter_context(client_of(app, services))
            paths.clear()
            with subtests.test(name):
                response = client.post(path, json=body, headers=home.actor.headers())
                assert response.status_code == 200, response.text
                called = [each.rpartition("/")[2] for each in paths]
                assert [each for each in called if "search" in each or each == "rag_match"] == searches
