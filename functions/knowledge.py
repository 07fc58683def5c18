"""knowledge: namespaces of documents that agents ingest, search and query."""

from collections.abc import Callable
from time import monotonic
from typing import Annotated

from fastapi import Path
from starlette.responses import JSONResponse, Response

from shared.access.concurrent_ingestion_limit import Guard
from shared.answering import knowledge
from shared.answering.knowledge import NewText
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import in_either_header, refreshing_caller, with_scope
from shared.api.contracts import knowledge as wire
from shared.api.contracts.shared_fields import CollectionName, DocumentName, Offset
from shared.api.dependencies import Container
from shared.api.health_probes import DATABASE
from shared.api.ingestion_guard import guard_from
from shared.clients.lenient_row_reading import readable
from shared.documents import named_collections
from shared.documents.documents import MAX_BYTES
from shared.types import Filters, Principal, Query, Scope

PREFIX = "/api/v1/knowledge"
app = create_app(
    wire,
    "knowledge",
    more_errors=(409, 422),
    max_body_bytes=MAX_BYTES,
    headers=("x-api-key",),
)

Reader = Annotated[
    Principal, with_scope(Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE, credential=in_either_header)
]
WRITER = with_scope(Scope.DOCUMENTS_WRITE, credential=in_either_header)
Writer = Annotated[Principal, WRITER]
Retriever = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, credential=in_either_header)]
Asker = Annotated[Principal, with_scope(Scope.CHAT_READ, credential=in_either_header)]
FreshCaller = Annotated[Callable[[], Principal], refreshing_caller(in_either_header)]
WriteGuard = Annotated[Guard, guard_from(in_either_header, WRITER)]
Namespace = Annotated[CollectionName, Path()]


@app.get("/healthz")
def alive() -> wire.HealthStatus:
    return wire.HealthStatus(status="ok")


@app.get("/readyz", responses={503: {"description": "The database is unavailable"}})
def ready(services: Container) -> JSONResponse:
    reachable = DATABASE.at(services, monotonic).is_serving
    status = wire.HealthStatus(status="ok" if reachable else "unavailable")
    return JSONResponse(status.model_dump(), 200 if reachable else 503)


@app.get(f"{PREFIX}/namespaces")
def namespaces(caller: Reader, services: Container) -> wire.Namespaces:
    return wire.Namespaces(namespaces=named_collections.names(services.database, caller))


@app.post(PREFIX + "/{namespace:path}/documents", status_code=201)
def ingest(
    caller: Writer,
    fresh_caller: FreshCaller,
    services: Container,
    guard: WriteGuard,
    namespace: Namespace,
    body: wire.IngestRequest,
) -> wire.IngestResponse:
    texts = [
        NewText(document.document_id, document.text, document.metadata, document.source, document.title)
        for document in body.documents
    ]
    return wire.IngestResponse.of(knowledge.ingest(services, fresh_caller, namespace, texts, guard))


@app.get(PREFIX + "/{namespace:path}/documents")
def documents(
    caller: Reader,
    services: Container,
    namespace: Namespace,
    limit: wire.Limit = 100,
    offset: Offset = 0,
) -> wire.Documents:
    rows, total = knowledge.documents(services, caller, namespace, limit, offset)
    return wire.Documents(documents=list(readable(rows, wire.Document.of)), total=total)


@app.delete(PREFIX + "/{namespace:path}/documents/{document_id:path}", status_code=204)
def delete(
    caller: Writer, services: Container, namespace: Namespace, document_id: Annotated[DocumentName, Path()]
) -> Response:
    knowledge.delete(services, caller, namespace, document_id)
    return Response(status_code=204)


@app.post(PREFIX + "/{namespace:path}/retrieve")
def retrieve(
    caller: Retriever, services: Container, namespace: Namespace, body: wire.RetrieveRequest
) -> wire.RetrieveResponse:
    request = Query(body.query, body.top_k, Filters(metadata=body.filters))
    passages = knowledge.retrieve(services, caller, [namespace], request)
    chunks = wire.chunks_of(passages, with_citations=body.include_citations)
    return wire.RetrieveResponse(chunks=chunks, ignored_filters=body.ignored_filters)


@app.post(PREFIX + "/{namespace:path}/query")
async def query(
    caller: Asker, services: Container, namespace: Namespace, body: wire.QueryRequest
) -> wire.QueryResponse:
    request = Query(body.question, body.top_k, Filters(metadata=body.filters))
    draft, judgement, passages = await knowledge.query(services, caller, namespace, request)
    chunks = wire.chunks_of(passages, with_citations=body.include_citations)
    return wire.QueryResponse.of(body, draft, judgement, chunks)


handler = lambda_handler(app)
