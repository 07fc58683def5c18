"""sources: websites and buckets whose contents the worker (ingest.py) copies and follows."""

from typing import Annotated

from starlette.responses import Response

from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.ignored_names import ignored_names
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform import sources as wire
from shared.api.dependencies import Container, id_in_path
from shared.documents import sources
from shared.errors import error_details
from shared.ingestion.sources.source import EndpointRefused
from shared.text.prefixed_ids import id_of
from shared.types import Principal, Scope

app = create_app(error_format, "sources", searches=False, more_errors=(409,))
routes = PlatformRoutes(app)

Manager = Annotated[Principal, with_scope(Scope.ADMIN)]
Id = Annotated[str, id_in_path("source")]


@routes.post("/sources", status_code=201)
def create(caller: Manager, services: Container, body: wire.NewSource) -> wire.Source:
    fields = body.model_dump(mode="json", exclude_none=True)
    fields["collection_id"] = id_of(body.collection_id, "collection")
    if body.kind == "website":
        with error_details(field="address"):
            fields["address"] = services.networks.require_url(body.address)
    elif body.endpoint and body.endpoint not in services.settings.rag_source_endpoints:
        raise EndpointRefused(details={"field": "endpoint"})
    return wire.Source(**sources.create(services.database, caller, fields))


@routes.get("/sources")
def index(caller: Manager, services: Container) -> wire.Sources:
    return wire.Sources(data=[wire.Source(**row) for row in sources.list_sources(services.database, caller)])


@routes.get("/sources/{source_id}")
def get(caller: Manager, services: Container, source: Id) -> wire.Source:
    return wire.Source(**sources.get(services.database, caller, source))


@routes.patch("/sources/{source_id}")
def update(caller: Manager, services: Container, source: Id, body: wire.SourceChanges) -> wire.Source:
    changes = body.model_dump(mode="json", exclude_none=True)
    row = sources.update(services.database, caller, source, changes)
    return wire.Source(**row, ignored_fields=ignored_names(body))


@routes.delete("/sources/{source_id}", status_code=204)
def delete(caller: Manager, services: Container, source: Id, documents: bool = False) -> Response:
    sources.delete(services.database, caller, source, documents=documents)
    return Response(status_code=204)


@routes.post("/sources/{source_id}/run", status_code=202)
def run(caller: Manager, services: Container, source: Id) -> wire.Source:
    return wire.Source(**sources.run(services.database, caller, source))


handler = lambda_handler(app)
