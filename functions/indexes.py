"""indexes: KAITO RAGEngine's indexes and their documents, which are searchable when they are answered for."""

from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import JSONResponse

from shared.api.app import create_app, lambda_handler
from shared.api.contracts.fastapi_errors import CollectionName
from shared.api.contracts.index import index as wire
from shared.api.dependencies import Core, FreshCaller, guard_from, in_authorization, with_scope
from shared.clients.row_validation import readable
from shared.documents import indexes, named_collections
from shared.documents.documents import MAX_BYTES
from shared.documents.indexes import IndexDocument
from shared.ingestion.ingest import Guard
from shared.observability.usage_metrics import timed
from shared.types import Principal, Scope

app = create_app(
    wire,
    "indexes",
    errors=(400, 401, 403, 404, 409, 413, 422, 429, 500, 503),
    max_body_bytes=MAX_BYTES,
    malformed=422,
)

Reader = Annotated[Principal, with_scope(Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE, anonymous=True)]
WRITER = with_scope(Scope.DOCUMENTS_WRITE, anonymous=True)
Writer = Annotated[Principal, WRITER]
Manager = Annotated[Principal, with_scope(Scope.COLLECTIONS_MANAGE, anonymous=True)]
Guarded = Annotated[Guard, guard_from(in_authorization, WRITER)]
Name = Annotated[CollectionName, Path()]
# A hundred documents are ten megabytes then.
MaxTextLength = Annotated[int, Query(ge=1, le=100_000)]


@app.post("/index", response_model=list[wire.Document])
def create(caller: Writer, renewed: FreshCaller, core: Core, guard: Guarded, body: wire.Indexing) -> Any:
    with timed(core.database, renewed, "index"):
        texts = [IndexDocument.new(document.text, document.metadata) for document in body.documents]
        rows = indexes.add(core.database, core.embedder, renewed, body.index_name, texts, guard)
        return JSONResponse([wire.Document.of(row).model_dump() for row in rows])


@app.get("/indexes", response_model=list[str])
def index(caller: Reader, core: Core) -> Any:
    with timed(core.database, caller, "indexes"):
        return JSONResponse(named_collections.names(core.database, caller))


@app.get("/indexes/{index_name:path}/documents")
def documents(
    caller: Reader,
    core: Core,
    index_name: Name,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    max_text_length: MaxTextLength = 1000,
    metadata_filter: str | None = None,
) -> wire.Documents:
    with timed(core.database, caller, "indexes_document"):
        page = named_collections.DocumentPageRequest(
            limit, offset, max_text_length, wire.filters_of(metadata_filter)
        )
        rows, total = named_collections.documents(core.database, caller, index_name, page)
        shown = list(readable(rows, wire.Document.of))
        return wire.Documents(documents=shown, count=len(shown), total_items=total)


@app.post("/indexes/{index_name:path}/documents")
def change(
    caller: Writer, renewed: FreshCaller, core: Core, guard: Guarded, index_name: Name, body: wire.Changes
) -> wire.Changed:
    with timed(core.database, renewed, "indexes_update_document"):
        texts = [
            IndexDocument(document.doc_id or "", document.text, document.metadata)
            for document in body.documents
        ]
        named = [text for text in texts if text.name]
        changed = indexes.change(core.database, core.embedder, renewed, index_name, named, guard)
        absent = [*changed.absent, *(text.row() for text in texts if not text.name)]
        return wire.Changed(
            updated_documents=[wire.Document.of(row) for row in changed.updated],
            unchanged_documents=[wire.Document.of(row) for row in changed.unchanged],
            not_found_documents=[wire.Document.of(row) for row in absent],
        )


@app.post("/indexes/{index_name:path}/documents/delete")
def delete_documents(caller: Writer, core: Core, index_name: Name, body: wire.Deletion) -> wire.Deleted:
    with timed(core.database, caller, "indexes_delete_document"):
        gone = named_collections.delete(core.database, caller, index_name, body.doc_ids)
        return wire.Deleted.of(body, gone)


@app.delete("/indexes/{index_name:path}")
def delete(caller: Manager, core: Core, index_name: Name) -> wire.Done:
    with timed(core.database, caller, "delete_index"):
        indexes.delete(core.database, caller, index_name)
        return wire.Done(message=f"Successfully deleted index {index_name}.")


handler = lambda_handler(app)
