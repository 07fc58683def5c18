"""indexes: KAITO RAGEngine's indexes and documents, searchable as soon as the response is sent."""

from typing import Annotated, Any

from fastapi import Path
from starlette.responses import JSONResponse

from shared.access.concurrent_ingestion_limit import Guard
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import FreshCaller, in_authorization, with_scope
from shared.api.contracts.index import indexes as wire
from shared.api.contracts.platform.pagination import Limit
from shared.api.contracts.shared_fields import CollectionName, Offset
from shared.api.dependencies import Container
from shared.api.ingestion_guard import guard_from
from shared.clients.lenient_row_reading import readable
from shared.documents import index_documents as indexes
from shared.documents import named_collections
from shared.documents.documents import MAX_BYTES
from shared.documents.index_documents import IndexDocument
from shared.observability.usage_metrics import timed
from shared.types import Principal, Scope

app = create_app(
    wire,
    "indexes",
    more_errors=(409, 422),
    max_body_bytes=MAX_BYTES,
)

Reader = Annotated[Principal, with_scope(Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE, anonymous=True)]
WRITER = with_scope(Scope.DOCUMENTS_WRITE, anonymous=True)
Writer = Annotated[Principal, WRITER]
Manager = Annotated[Principal, with_scope(Scope.COLLECTIONS_MANAGE, anonymous=True)]
WriteGuard = Annotated[Guard, guard_from(in_authorization, WRITER)]
Name = Annotated[CollectionName, Path()]


@app.post("/index", response_model=list[wire.Document])
def create(
    caller: Writer, fresh_caller: FreshCaller, services: Container, guard: WriteGuard, body: wire.IndexRequest
) -> Any:
    with timed(services.database, fresh_caller, "index"):
        texts = [IndexDocument.new(document.text, document.metadata) for document in body.documents]
        rows = indexes.add(
            services.database,
            services.embedder_of_org(fresh_caller),
            fresh_caller,
            body.index_name,
            texts,
            guard,
        )
        return JSONResponse([wire.Document.of(row).model_dump() for row in rows])


@app.get("/indexes", response_model=list[str])
def index(caller: Reader, services: Container) -> Any:
    with timed(services.database, caller, "indexes"):
        return JSONResponse(named_collections.names(services.database, caller))


@app.get("/indexes/{index_name:path}/documents")
def documents(
    caller: Reader,
    services: Container,
    index_name: Name,
    limit: Limit = 10,
    offset: Offset = 0,
    max_text_length: wire.MaxTextLength = 1000,
    metadata_filter: str | None = None,
) -> wire.Documents:
    with timed(services.database, caller, "indexes_document"):
        filters = wire.filters_of(metadata_filter)
        rows, total = named_collections.documents(
            services.database, caller, index_name, limit, offset, max_text_length, filters
        )
        entries = list(readable(rows, wire.Document.of))
        return wire.Documents(documents=entries, count=len(entries), total_items=total)


@app.post("/indexes/{index_name:path}/documents")
def change(
    caller: Writer,
    fresh_caller: FreshCaller,
    services: Container,
    guard: WriteGuard,
    index_name: Name,
    body: wire.UpdateRequest,
) -> wire.UpdateResponse:
    with timed(services.database, fresh_caller, "indexes_update_document"):
        texts = [
            IndexDocument(document.doc_id or "", document.text, document.metadata)
            for document in body.documents
        ]
        with_id = [text for text in texts if text.name]
        changed = indexes.change(
            services.database,
            services.embedder_of_org(fresh_caller),
            fresh_caller,
            index_name,
            with_id,
            guard,
        )
        absent = [*changed.absent, *(text.row() for text in texts if not text.name)]
        return wire.UpdateResponse(
            updated_documents=[wire.Document.of(row) for row in changed.updated],
            unchanged_documents=[wire.Document.of(row) for row in changed.unchanged],
            not_found_documents=[wire.Document.of(row) for row in absent],
        )


@app.post("/indexes/{index_name:path}/documents/delete")
def delete_documents(
    caller: Writer, services: Container, index_name: Name, body: wire.DeleteRequest
) -> wire.DeleteResponse:
    with timed(services.database, caller, "indexes_delete_document"):
        deleted = named_collections.delete(services.database, caller, index_name, body.doc_ids)
        return wire.DeleteResponse.of(body, deleted)


@app.delete("/indexes/{index_name:path}")
def delete(caller: Manager, services: Container, index_name: Name) -> wire.Confirmation:
    with timed(services.database, caller, "delete_index"):
        indexes.delete(services.database, caller, index_name)
        return wire.Confirmation(message=f"Successfully deleted index {index_name}.")


handler = lambda_handler(app)
