"""Documents that are brought while webhooks listen, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.documents import collections, documents, webhooks
from shared.documents.documents import NewUpload
from shared.documents.webhook_delivery_attempts import WebhookSender
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.stand_in_server import StandIn

Row = dict[str, Any]
OF_COLLECTIONS = ["collection.created", "collection.updated", "collection.deleted"]
OF_DOCUMENTS = [
    "document.processing_started", "document.processing_completed", "document.processing_failed",
    "document.deleted",
]  # fmt: skip


@dataclass(frozen=True)
class Desk:
    """Ada's webhooks, and Ann's documents in a collection."""

    services: Services
    people: People
    world: World
    home: str
    courier: WebhookSender

    def listen(self, url: str, events: Sequence[str] = OF_DOCUMENTS, **more: Any) -> Row:
        return webhooks.create(
            self.services.database, self.people.ada.principal, {"url": url, "events": [*events], **more}
        )

    def webhook(self, webhook: Row) -> Row:
        return webhooks.get(self.services.database, self.people.ada.principal, webhook["id"])

    def update(self, webhook: Row, **changes: Any) -> Row:
        return webhooks.update(self.services.database, self.people.ada.principal, webhook["id"], changes)

    def rotate(self, webhook: Row, overlap: int) -> Row:
        return webhooks.rotate(self.services.database, self.people.ada.principal, webhook["id"], overlap)

    def bring(self, text: str = "The kiln is hot.", **more: Any) -> str:
        return bring(self.services, self.people.ann, self.home, text, **more)

    def bring_to_bolt(self, url: str) -> None:
        """A document of the other org, whose admin listens at that address."""
        bea = self.world.user(self.people.bolt, role="admin")
        webhooks.create(self.services.database, bea.principal, {"url": url, "events": OF_DOCUMENTS})
        bob = self.people.bob
        bring(self.services, bob, self.collection(bob), "The kiln is hot.")

    def collection(self, actor: Actor, name: str = "docs") -> str:
        return str(collections.create(self.services.database, actor.principal, {"name": name})["id"])


def bring(services: Services, actor: Actor, home: str, text: str, **more: Any) -> str:
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
