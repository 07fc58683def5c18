"""webhooks: endpoints for events of an org's collections and documents. The worker delivers (ingest.py)."""

from typing import Annotated

from fastapi import Body
from starlette.responses import Response

from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.ignored_names import ignored_names
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform import webhooks as wire
from shared.api.contracts.platform.pagination import Limit
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Container, id_in_path
from shared.documents import webhooks
from shared.errors import error_details
from shared.text.prefixed_ids import id_of
from shared.types import Principal, Scope

app = create_app(error_format, "webhooks", searches=False, more_errors=(409,))
routes = PlatformRoutes(app)

Manager = Annotated[Principal, with_scope(Scope.ADMIN)]
Id = Annotated[str, id_in_path("webhook")]
DeliveryId = Annotated[str, id_in_path("delivery")]


@routes.post("/webhooks", status_code=201)
def create(caller: Manager, services: Container, body: wire.NewWebhook) -> wire.CreatedWebhook:
    fields = body.model_dump(mode="json", exclude_none=True)
    fields["url"] = _require_public(services, body.url)
    if body.collection_id is not None:
        fields["collection_id"] = id_of(body.collection_id, "collection")
    return wire.CreatedWebhook(**webhooks.create(services.database, caller, fields))


@routes.get("/webhooks")
def index(caller: Manager, services: Container) -> wire.Webhooks:
    return wire.Webhooks(
        data=[wire.Webhook(**row) for row in webhooks.list_webhooks(services.database, caller)]
    )


@routes.get("/webhooks/{webhook_id}")
def get(caller: Manager, services: Container, webhook: Id) -> wire.Webhook:
    return wire.Webhook(**webhooks.get(services.database, caller, webhook))


@routes.patch("/webhooks/{webhook_id}")
def update(caller: Manager, services: Container, webhook: Id, body: wire.WebhookChanges) -> wire.Webhook:
    changes = body.model_dump(mode="json", exclude_none=True)
    if body.url is not None:
        changes["url"] = _require_public(services, body.url)
    row = webhooks.update(services.database, caller, webhook, changes)
    return wire.Webhook(**row, ignored_fields=ignored_names(body))


@routes.delete("/webhooks/{webhook_id}", status_code=204)
def delete(caller: Manager, services: Container, webhook: Id) -> Response:
    webhooks.delete(services.database, caller, webhook)
    return Response(status_code=204)


@routes.post("/webhooks/{webhook_id}/rotate", status_code=201)
def rotate(
    caller: Manager, services: Container, webhook: Id, body: Annotated[wire.Rotation | None, Body()] = None
) -> wire.CreatedWebhook:
    overlap = (body or wire.Rotation()).overlap_seconds
    return wire.CreatedWebhook(**webhooks.rotate(services.database, caller, webhook, overlap))


@routes.get("/webhooks/{webhook_id}/deliveries")
def deliveries(
    caller: Manager, services: Container, webhook: Id, limit: Limit = 20, offset: Offset = 0
) -> wire.Deliveries:
    rows, total = webhooks.deliveries(services.database, caller, webhook, limit, offset)
    return wire.Deliveries.of([wire.Delivery(**row) for row in rows], total, limit, offset)


@routes.post("/webhooks/{webhook_id}/deliveries/{delivery_id}/repeat", status_code=202)
def repeat(caller: Manager, services: Container, webhook: Id, delivery: DeliveryId) -> Response:
    webhooks.repeat(services.database, caller, webhook, delivery)
    return Response(status_code=202)


def _require_public(services: Container, url: str) -> str:
    """Raises AddressRefused for an address in a private network."""
    with error_details(field="url"):
        return services.networks.require_url(url)


handler = lambda_handler(app)
