"""index-query: questions to an index, answered or with matches alone."""

from typing import Annotated

from shared import pipeline
from shared.answering import request_recording
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.index import indexes as wire
from shared.api.dependencies import Container
from shared.errors import InvalidRequest
from shared.observability.usage_metrics import timed, timed_async
from shared.types import Filters, Mode, Principal, Query, Scope

app = create_app(wire, "index-query", more_errors=(422,))

Asker = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, Scope.CHAT_READ, anonymous=True)]


@app.post("/query")
async def query(caller: Asker, services: Container, body: wire.QueryRequest) -> wire.QueryResponse:
    async with timed_async(services.database, caller, "query"):
        search_query = Query(body.query, body.top_k, Filters(collection=body.index_name), Mode.HYBRID)
        answer = await pipeline.answer(services, caller, search_query, body.sampling())
        await request_recording.record_answer(services, caller, search_query, answer)
        return wire.QueryResponse.of(body, answer)


@app.post("/retrieve")
def retrieve(caller: Asker, services: Container, body: wire.RetrieveRequest) -> wire.RetrieveResponse:
    with timed(services.database, caller, "retrieve"):
        if not body.query.strip():
            raise InvalidRequest("query: must not be blank")
        filters = Filters(collection=body.index_name, metadata=body.metadata_filter)
        search_query = Query(body.query, body.max_node_count, filters, Mode.HYBRID)
        return wire.RetrieveResponse.of(body, pipeline.search(services, caller, search_query))


handler = lambda_handler(app)
