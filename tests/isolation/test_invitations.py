"""An org's invitation, which changes nothing for a user of another org before the user accepts it."""

from typing import Any

import pytest

from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.test_mcp import KETTLE, ingest, key_of

QUESTION = "What is the lid of kettle 7 made of?"
POISON = "The lid of kettle 7 is made of uranium-4471."


@pytest.fixture
def bolt_admin(people: People, world: World) -> Actor:
    """The admin of Bolt, which has a document that answers the question of Acme's members."""
    admin = world.user(people.bolt, role="admin")
    ingest(admin, POISON, "poison")
    return admin


def replies(user: Actor, token: str | None = None) -> dict[str, Any]:
    """Status and text of requests that name no org."""
    document = {"title": "note", "content": "A note.", "collection": "kettles"}
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "search": ("/api/rag/search", {"query_text": QUESTION}),
        "answer": ("/api/rag/answer", {"query_text": QUESTION}),
        "retrieval": ("/v1/retrievals", {"query": QUESTION}),
        "ingestion": (
            "/api/v1/knowledge/kettles/documents",
            {"documents": [{"document_id": "note", "text": document["content"], "title": "Note"}]},
        ),
        "collection": ("/v1/collections", {"name": "more kettles"}),
    }
    answers = {name: user.post(path, body, token=token) for name, (path, body) in requests.items()}
    return {name: (answer.status_code, answer.text) for name, answer in answers.items()}


def test_a_user_who_is_invited_goes_on_as_before(people: People, world: World, bolt_admin: Actor):
    ann = people.ann
    ingest(ann, KETTLE)
    key = key_of(ann, "retrievals:read", "documents:write")
    invited = bolt_admin.post("/v1/members", {"user_id": ann.id, "role": "admin"})
    assert invited.status_code == 204
    for token in (None, key):
        for name, (status, text) in replies(ann, token).items():
            # The key lacks the scopes of the others, and the collection exists by then.
            is_allowed = status in (200, 201) or (token == key and status in (401, 403, 409))
            assert is_allowed, (name, status, text)
            assert "uranium" not in text, name
            assert "org_required" not in text, name
    assert ann.request("GET", "/v1/orgs").json()["data"] == [
        {"id": people.acme.id, "name": "Acme", "role": "member"}
    ]
    statement = "select count(*) from rag.documents where org_id = %s"
    assert world.sql(statement, people.bolt.id) == [(1,)]
