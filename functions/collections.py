"""collections: named sets of documents: list, creation, changes, deletion."""

from functools import partial
from typing import Annotated

from starlette.responses import Response

from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.ignored_names import ignored_names
from shared.api.contracts.platform import collections as wire
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform.pagination import Limit, Order
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Container, id_in_path
from shared.api.idempotent_execution import IdempotentRequest, Once
from shared.clients.lenient_row_reading import readable
from shared.documents import collections
from shared.errors import InvalidRequest
from shared.models.embeddings import model_of
from shared.types import Principal, Row, Scope

app = create_app(error_format, "collections", searches=False, more_errors=(409,), headers=["idempotency-key"])
routes = PlatformRoutes(app)

Reader = Annotated[Principal, with_scope(Scope.DOCUMENTS_READ, Scope.COLLECTIONS_MANAGE)]
Manager = Annotated[Principal, with_scope(Scope.COLLECTIONS_MANAGE)]
Writer = Annotated[Principal, with_scope(Scope.DOCUMENTS_WRITE)]
Id = Annotated[str, id_in_path("collection")]


@routes.post("/collections", status_code=201, response_model=wire.Collection)
def create(
    caller: Manager, services: Container, once: Once, body: wire.NewCollection
) -> wire.Collection | Response:
    fields = body.to_request()
    request = IdempotentRequest(Scope.COLLECTIONS_MANAGE, fields, org_id=fields.get("org_id"))
    return once.make(request, partial(_create, services, caller, body))


@routes.get("/collections")
def index(
    caller: Reader,
    services: Container,
    limit: Limit = 20,
    offset: Offset = 0,
    sort_by: wire.CollectionOrder = "created_at",
    order: Order = "desc",
) -> wire.Collections:
    rows, total = collections.list_collections(services.database, caller, limit, offset, sort_by, order)
    return wire.Collections.of(readable(rows, partial(_to_wire, services)), total, limit, offset)


@routes.get("/collections/{collection_id}")
def get(caller: Reader, services: Container, collection: Id) -> wire.Collection:
    return _to_wire(services, collections.get(services.database, caller, collection))


@routes.patch("/collections/{collection_id}")
def update(
    caller: Manager, services: Container, collection: Id, body: wire.CollectionChanges
) -> wire.Collection:
    _require_model(services, body.config)
    row = collections.update(services.database, caller, collection, body.changes())
    return _to_wire(services, {**row, "ignored_fields": ignored_names(body)})


@routes.delete("/collections/{collection_id}", status_code=204)
def delete(caller: Manager, services: Container, collection: Id, cascade: bool = False) -> Response:
    collections.delete(services.database, caller, collection, cascade=cascade)
    return Response(status_code=204)


@routes.get("/collections/{collection_id}/access")
def access(caller: Reader, services: Container, collection: Id) -> wire.Access:
    return wire.Access.of(collections.access_of(services.database, caller, collection))


@routes.post("/collections/{collection_id}/access")
def put_access(caller: Manager, services: Container, collection: Id, body: wire.NewAccess) -> wire.Access:
    grants = [grant.model_dump(mode="json") for grant in body.grants]
    row = collections.put_access(
        services.database, caller, collection, restricted=body.restricted, grants=grants
    )
    return wire.Access.of(row)


@routes.post("/collections/{collection_id}/graph", status_code=202)
def build_graph(
    caller: Writer, services: Container, collection: Id, body: wire.GraphBuild
) -> wire.GraphBuildQueued:
    queued = collections.build_graph(services.database, caller, collection, again=body.again)
    return wire.GraphBuildQueued(collection_id=collection, queued=queued)


def _create(services: Container, caller: Principal, body: wire.NewCollection) -> wire.Collection:
    _require_model(services, body.config)
    return _to_wire(services, collections.create(services.database, caller, body.to_request()))


def _to_wire(services: Container, row: Row) -> wire.Collection:
    return wire.Collection.of(row, model_of(services.settings), services.embedder_limits)


def _require_model(services: Container, config: wire.Config | None) -> None:
    """Raises InvalidRequest for an embedding model that the deployment does not have."""
    model = model_of(services.settings)
    if config and config.embedding_model not in (None, model):
        raise InvalidRequest(
            f"config.embedding_model: {model} is the only model of this deployment",
            details={"field": "config.embedding_model", "missing": False},
        )


handler = lambda_handler(app)
