"""dify: the External Knowledge API of Dify, passages of one collection."""

from typing import Annotated

from shared import pipeline
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import in_bearer_alone, with_scope
from shared.api.contracts import dify as wire
from shared.api.dependencies import Container
from shared.documents import collections
from shared.types import Principal, Scope

# When a user enters a key, Dify refuses it for 403, 404 and 502 alone.
app = create_app(wire, "dify", errors=(400, 403, 404, 413, 429, 500, 503), unauthorized_status=403)

Searcher = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, credential=in_bearer_alone)]


@app.post("/api/dify/retrieval")
def retrieve(caller: Searcher, services: Container, body: wire.RetrievalRequest) -> wire.RetrievalResponse:
    query = body.to_query()
    result = pipeline.search(services, caller, query)
    if not result.matches:
        # For an unknown name the search raises NotFound, for an unknown id this does.
        for collection in query.filters.collection_ids:
            collections.get(services.database, caller, collection)
    return wire.RetrievalResponse.of(body, result)


handler = lambda_handler(app)
