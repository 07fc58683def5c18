"""Documents that are brought while webhooks listen, and what became of it."""

from typing import Any

from shared.documents import documents, webhooks
from shared.documents.documents import NewUpload
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.stand_in_server import StandIn

Row = dict[str, Any]
OF_COLLECTIONS = ["collection.created", "collection.updated", "collection.deleted"]
OF_DOCUMENTS = [
    "document.processing_started",
    "document.processing_completed",
    "document.processing_failed",
    "document.deleted",
]


def listen(services: Services, people: People, url: str, events: list[str], **more: Any) -> webhooks.Row:
    """Ada's webhook."""
    return webhooks.create(services.database, people.ada.principal, {"url": url, "events": events, **more})


def bring(services: Services, actor: Actor, home: str, text: str = "The kiln is hot.", **more: Any) -> str:
    document = NewUpload(text.encode(), "Kiln", content_type="text/plain", **more)
    return str(documents.add(services.database, actor.principal, home, document)["id"])


def delivered_events(receiver: StandIn) -> list[Row]:
    """The bodies that arrived, in the order of their events."""
    bodies = [request.json for request in receiver.requests]
    order = [*OF_COLLECTIONS, *OF_DOCUMENTS]
    return sorted(bodies, key=lambda body: order.index(body["type"]))


def pending_count(world: World) -> int:
    return int(world.sql("select count(*) from rag.deliveries where state in ('waiting', 'running')")[0][0])


def states(world: World) -> list[tuple[Any, ...]]:
    return world.sql(
        "select state, attempts, response_status, error from rag.deliveries order by created_at, id"
    )


def make_due(world: World) -> None:
    """End the pauses of all addresses."""
    world.sql("update rag.deliveries set due_at = now() where state in ('waiting', 'running')")
    world.sql("update rag.endpoints set paused_until = now() where paused_until is not null")


def failing_for(world: World, interval: str) -> None:
    """Nothing has arrived at any address for so long, and each has been tried all the while."""
    world.sql("update rag.endpoints set failing_since = now() - %s::interval, paused_until = now()", interval)
