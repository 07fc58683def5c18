"""What the tests of the search API ask of it: a workspace with documents of several kinds and dates."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.services import Services
from tests.actors import Actor
from tests.functions.app_server import client_of
from tests.ingestion import ingest

Row = dict[str, Any]
# What "now" is where a test says so: a Friday.
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OUTAGE = (
    "The billing service was down for two hours on Monday. The root cause were Stripe webhook retries that "
    "piled up in the queue. The on-call engineer was Priya Nair, who paused the queue at 14:20."
)
OWNERSHIP = (
    "The billing service is owned by the Payments team. Questions about it go to payments@example.com."
)
TICKET = "INC-4821: invoices were sent twice to 312 customers. The fix is a unique key on the invoice number."
MENU = "The canteen serves lentil soup on Tuesdays and pancakes on Fridays. Bring your own cup."


@dataclass(frozen=True)
class Workspace:
    """A collection as one actor uses it: its id and name, and the ids of its documents by title."""

    services: Services
    actor: Actor
    id: str
    name: str
    documents: dict[str, str]

    def for_actor(self, actor: Actor) -> "Workspace":
        """The same workspace, used by another member of its org."""
        return replace(self, actor=actor)

    def search(self, q: str, **body: Any) -> Row:
        return ok(self.actor.post("/v1/search", {"workspaceId": self.id, "q": q, **body}))

    def titles(self, q: str, **body: Any) -> list[str]:
        return [result["title"] for result in self.search(q, **body)["results"]]

    def answer(self, question: str, **body: Any) -> Row:
        return ok(self.actor.post("/v1/answer", {"workspaceId": self.id, "question": question, **body}))

    def contents(self, *ids: str, **body: Any) -> Row:
        kinds = {"doc": "document", "chn": "chunk"}
        references = [{"kind": kinds[entry[:3]], "id": entry} for entry in ids]
        return ok(self.actor.post("/v1/contents", {"workspaceId": self.id, "ids": references, **body}))

    def similar(self, subject: Row, **body: Any) -> Row:
        return ok(self.actor.post("/v1/similar", {"workspaceId": self.id, "subject": subject, **body}))

    def put(self, title: str, text: str, *, collection: str | None = None, **fields: Any) -> str:
        return put(self.services, self.actor, collection or self.name, title, text, **fields)


def ok(response: Any) -> Row:
    assert response.status_code == 200, response.text
    body: Row = response.json()
    assert body["requestId"] == response.headers["x-request-id"]
    return body


def error_of(response: Any, status: int, code: str, field: str | None = None) -> Row:
    """The error of the contract's envelope."""
    assert response.status_code == status, response.text
    body: Row = response.json()
    assert set(body) == {"error", "requestId"}
    assert body["requestId"] == response.headers["x-request-id"]
    error: Row = body["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    if field:
        assert error["details"]["field"] == field
    return error


def put(services: Services, actor: Actor, collection: str, title: str, text: str, **fields: Any) -> str:
    document = NewDocument(title, text, **fields)
    stored = ingest(services.database, services.embedder, actor.principal, document, collection)
    return f"doc_{stored.document_id}"


def workspace(services: Services, actor: Actor) -> Workspace:
    """A workspace of its own, with an incident, a page, a ticket and what has nothing to do with them."""
    name = f"workspace {actor.id}"
    texts: dict[str, tuple[str, Row]] = {
        "Billing outage": (OUTAGE, {
            "source_type": "incident", "origin": "notion", "uri": "https://notion.example/outage",
            "occurred_at": datetime(2026, 11, 11, 9, tzinfo=UTC), "author": "priya@example.com",
            "labels": ("incident", "billing"), "state": "resolved",
        }),
        "Who owns what": (OWNERSHIP, {"origin": "notion", "occurred_at": datetime(2025, 2, 3, tzinfo=UTC)}),
        "Duplicate invoices": (TICKET, {
            "source_type": "issue", "origin": "github", "occurred_at": datetime(2026, 8, 20, tzinfo=UTC),
            "author": "alice@example.com", "labels": ("billing",), "state": "open",
        }),
        "Canteen": (MENU, {}),
    }  # fmt: skip
    documents = [NewDocument(title, text, **fields) for title, (text, fields) in texts.items()]
    # In one call, since many tests need a workspace of their own.
    stored = ingest_many(services.database, services.embedder, actor.principal, name, documents)
    ids = {title: f"doc_{row.document_id}" for title, row in zip(texts, stored, strict=True) if row}
    return Workspace(services, actor, workspace_id(actor, name), name, ids)


def workspace_id(actor: Actor, name: str) -> str:
    """The id of the actor's collection of that name, as the search API writes it."""
    (row,) = actor.rpc("rag_find_collection", {"collection": name}).json()
    return f"ws_{row['id']}"


@contextmanager
def at(services: Services, moment: datetime, app: FastAPI) -> Iterator[TestClient]:
    """The function, in whose deployment it is that moment."""
    before, services.clock = services.clock, lambda: moment
    try:
        with client_of(app, services) as client:
            yield client
    finally:
        services.clock = before
