"""knowledge: namespaces of texts that agents bring, retrieve from and ask, as the knowledge contract says."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query
from starlette.responses import JSONResponse, Response

from shared.answering import knowledge
from shared.answering.knowledge import Asked, Text
from shared.api.app import create_app, lambda_handler
from shared.api.contracts import knowledge as wire
from shared.api.contracts.fastapi_errors import CollectionName, DocumentName
from shared.api.dependencies import Core, guard_from, in_either_header, refreshing_caller, with_scope
from shared.clients.row_validation import readable
from shared.documents import named_collections
from shared.documents.documents import MAX_BYTES
from shared.ingestion.ingest import Guard
from shared.types import Principal, Scope

PREFIX = "/api/v1/knowledge"
app = create_app(
    wire,
    "knowledge",
    errors=(400, 401, 403, 404, 409, 413, 422, 429, 500, 501, 503),
    max_body_bytes=MAX_BYTES,
    malformed=422,
    headers=("x-api-key",),
)

Reader = Annotated[
    Principal, with_scope(Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE, credential=in_either_header)
]
WRITER = with_scope(Scope.DOCUMENTS_WRITE, credential=in_either_header)
Writer = Annotated[Principal, WRITER]
Retriever = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, credential=in_either_header)]
Asker = Annotated[Principal, with_scope(Scope.CHAT_READ, credential=in_either_header)]
Renewed = Annotated[Callable[[], Principal], refreshing_caller(in_either_header)]
Guarded = Annotated[Guard, guard_from(in_either_header, WRITER)]
Namespace = Annotated[CollectionName, Path()]


@app.get("/healthz")
def alive() -> wire.Alive:
    return wire.Alive(status="ok")


@app.get("/readyz", responses={503: {"description": "The database is gone"}})
def ready(core: Core) -> JSONResponse:
    reachable = core.is_reachable()
    status = wire.Alive(status="ok" if reachable else "unavailable")
    return JSONResponse(status.model_dump(), 200 if reachable else 503)


@app.get(f"{PREFIX}/namespaces")
def namespaces(caller: Reader, core: Core) -> wire.Namespaces:
    return wire.Namespaces(namespaces=named_collections.names(core.database, caller))


@app.post(PREFIX + "/{namespace:path}/documents", status_code=201)
def ingest(
    caller: Writer, renewed: Renewed, core: Core, guard: Guarded, namespace: Namespace, body: wire.Ingestion
) -> wire.Ingested:
    texts = [
        Text(document.document_id, document.text, document.metadata, document.source, document.title)
        for document in body.documents
    ]
    return wire.Ingested.of(knowledge.ingest(core, renewed, namespace, texts, guard))


@app.get(PREFIX + "/{namespace:path}/documents")
def documents(
    caller: Reader,
    core: Core,
    namespace: Namespace,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
) -> wire.Documents:
    rows, total = knowledge.documents(core, caller, namespace, limit, offset)
    return wire.Documents(documents=list(readable(rows, wire.Document.of)), total=total)


@app.delete(PREFIX + "/{namespace:path}/documents/{document_id:path}", status_code=204)
def delete(
    caller: Writer, core: Core, namespace: Namespace, document_id: Annotated[DocumentName, Path()]
) -> Response:
    knowledge.delete(core, caller, namespace, document_id)
    return Response(status_code=204)


@app.post(PREFIX + "/{namespace:path}/retrieve")
def retrieve(caller: Retriever, core: Core, namespace: Namespace, body: wire.Retrieval) -> wire.Retrieved:
    request = Asked(body.query, body.top_k, body.filters)
    passages = knowledge.retrieve(core, caller, [namespace], request)
    return wire.Retrieved(
        chunks=[wire.Chunk.of(passage, cited=body.include_citations) for passage in passages]
    )


@app.post(PREFIX + "/{namespace:path}/query")
async def query(caller: Asker, core: Core, namespace: Namespace, body: wire.Asking) -> wire.Answered:
    request = Asked(body.question, body.top_k, body.filters)
    draft, passages = await knowledge.query(core, caller, namespace, request)
    chunks = [wire.Chunk.of(passage, cited=body.include_citations) for passage in passages]
    return wire.Answered.of(body.question, draft, chunks)


handler = lambda_handler(app)
