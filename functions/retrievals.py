"""retrievals: the platform's search over chunks, in five modes."""

from typing import Annotated

from shared import pipeline
from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform import retrievals as wire
from shared.api.dependencies import Container
from shared.documents import collections
from shared.graph.graph_as_text import graph_context
from shared.text.prefixed_ids import id_of
from shared.types import Graph, Principal, Scope

app = create_app(error_format, "retrievals")
routes = PlatformRoutes(app)

Searcher = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ)]


@routes.post("/retrievals")
def retrieve(caller: Searcher, services: Container, body: wire.Request) -> wire.Response:
    collection = id_of(body.collection_id, "collection") if body.collection_id else None
    result = pipeline.search(services, caller, body.to_request(collection))
    if collection and not result.matches:
        # An empty result may mean that the collection does not exist: then this raises NotFound.
        collections.get(services.database, caller, collection)
    return wire.Response.of(body, result, graph_context(result.graph or Graph()))


handler = lambda_handler(app)
