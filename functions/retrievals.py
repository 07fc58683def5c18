"""retrievals: the platform's search over chunks, in five modes."""

from typing import Annotated

from shared import collections
from shared.app import create_app, lambda_handler
from shared.callers import Core, with_scope
from shared.dialects import retrievals as wire
from shared.types import Principal, Scope

app = create_app(wire, "retrievals", errors=(400, 401, 403, 404, 413, 429, 500, 503))

Searcher = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ)]


@app.post("/api/v1/retrievals")
@app.post("/v1/retrievals")
def retrieve(caller: Searcher, core: Core, body: wire.Request) -> wire.Response:
    query = body.wanted()
    found = core.search(caller, query)
    if not found.matches:
        # Where nothing is, there may be no such collection either.
        for collection in query.filters.collection_ids:
            collections.get(core.database, caller, collection)
    return wire.Response.of(body, found)


handler = lambda_handler(app)
