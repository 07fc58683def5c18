"""documents: uploads, texts and addresses; lists, originals, changes, deletion. ingest.py processes them."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import File, Form, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from shared.access.download_links import LIFETIME_SECONDS, link_to, new_link
from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import LinkCaller, with_scope
from shared.api.contracts.ignored_names import ignored_names
from shared.api.contracts.platform import documents as wire
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform.pagination import Limit, Order
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Container, PublicUrl, id_in_path
from shared.api.idempotent_execution import IdempotentRequest, Once
from shared.clients.lenient_row_reading import readable
from shared.documents import documents
from shared.documents.direct_uploads import Uploads
from shared.documents.documents import NewUpload
from shared.errors import error_details
from shared.text.prefixed_ids import id_of
from shared.types import Principal, Scope

# The request limit of Lambda is six megabytes.
app = create_app(
    error_format,
    "documents",
    searches=False,
    more_errors=(409,),
    max_body_bytes=documents.MAX_BYTES + 64 * 1024,
    too_large=documents.TOO_LARGE,
    headers=["idempotency-key"],
)
routes = PlatformRoutes(app)

Reader = Annotated[Principal, with_scope(Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE)]
Writer = Annotated[Principal, with_scope(Scope.DOCUMENTS_WRITE)]
Id = Annotated[str, id_in_path("document")]


@routes.post("/documents", status_code=202, response_model=wire.Document)
def upload(
    caller: Writer,
    services: Container,
    once: Once,
    collection_id: Annotated[str, Form()],
    file: Annotated[UploadFile, File()],
    metadata: Annotated[str | None, Form()] = None,
    private: Annotated[bool, Form()] = False,
    external_id: Annotated[wire.ExternalId | None, Form()] = None,
) -> wire.Document | Response:
    values = wire.parse_metadata(metadata)
    name = documents.file_name(file.filename)
    new = NewUpload(file.file.read(), None, name, file.content_type, external_id, private, values)
    return _add_document(services, caller, once, collection_id, new)


@routes.post("/documents/text", status_code=202, response_model=wire.Document)
def write(caller: Writer, services: Container, once: Once, body: wire.NewText) -> wire.Document | Response:
    metadata = body.metadata or {}
    title = documents.title_of(body.title, metadata) or documents.first_words(body.content)
    new = NewUpload(
        documents.encode_text(body.content),
        title,
        content_type="text/plain",
        external_id=body.external_id,
        private=body.private,
        metadata=metadata,
    )
    return _add_document(services, caller, once, body.collection_id, new)


@routes.post("/documents/url", status_code=202, response_model=wire.Document)
def address(
    caller: Writer, services: Container, once: Once, body: wire.NewUrlDocument
) -> wire.Document | Response:
    with error_details(field="url"):
        url = services.networks.require_url(body.url)
    collection = id_of(body.collection_id, "collection")
    page = NewUpload(b"", body.title, private=body.private, metadata=body.metadata or {}, url=url)
    operation = IdempotentRequest(Scope.DOCUMENTS_WRITE, page, collection)
    add = documents.add_from_url
    return once.make(operation, lambda: wire.Document.of(add(services.database, caller, collection, page)))


@routes.post("/documents/upload", status_code=201)
def begin_upload(caller: Writer, services: Container, body: wire.NewUpload) -> wire.Upload:
    fields = body.model_dump(exclude={"collection_id", "size_bytes", "content_hash"}, exclude_none=True)
    collection, new = id_of(body.collection_id, "collection"), NewUpload(b"", **fields)
    return wire.Upload(
        **_uploads(services).begin(caller, collection, body.size_bytes, new, body.content_hash)
    )


@routes.post("/documents/uploaded", status_code=202, response_model=wire.Document)
def finish_upload(
    caller: Writer, services: Container, once: Once, body: wire.UploadTicket
) -> wire.Document | Response:
    uploads = _uploads(services)
    collection, content = uploads.idempotent_content(caller, body.upload)
    operation = IdempotentRequest(Scope.DOCUMENTS_WRITE, content, collection)
    return once.make(operation, lambda: wire.Document.of(uploads.finish(caller, body.upload)))


@routes.get("/documents")
def index(
    caller: Reader,
    services: Container,
    collection_id: str,
    limit: Limit = 20,
    offset: Offset = 0,
    status: wire.Status | None = None,
    sort_by: wire.DocumentOrder = "created_at",
    order: Order = "desc",
    name: wire.NamePart | None = None,
) -> wire.Documents:
    collection = id_of(collection_id, "collection")
    rows, total = documents.list_documents(
        services.database, caller, collection, limit, offset, status, sort_by, order, name
    )
    return wire.Documents.of(readable(rows, wire.Document.of), total, limit, offset)


@routes.get("/documents/{document_id}")
def get(caller: Reader, services: Container, document: Id) -> wire.Document:
    return wire.Document.of(documents.get(services.database, caller, document))


@routes.get("/documents/{document_id}/status")
def status(caller: Reader, services: Container, document: Id) -> wire.ProcessingStatus:
    return wire.ProcessingStatus.of(documents.get(services.database, caller, document))


@routes.get("/documents/{document_id}/url")
def url(
    caller: Reader,
    services: Container,
    document: Id,
    request: Request,
    public_url: PublicUrl,
    expires_in: wire.Lifetime = LIFETIME_SECONDS,
) -> wire.DocumentUrl:
    row = documents.get(services.database, caller, document)
    link = new_link(caller, row, expires_in)
    folder = request.url.path.removesuffix("/url").rpartition("/")[0]
    token = link_to(services.require_signer(), link)
    return wire.DocumentUrl(
        url=f"{public_url}{folder}/{document}/original?token={token}",
        expires_in=expires_in,
        expires_at=datetime.fromtimestamp(link.expires, UTC),
        filename=row["filename"],
    )


@routes.get("/documents/{document_id}/original")
def original(caller: LinkCaller, services: Container, document: Id) -> Response:
    content = documents.original(services.database, caller, document)
    if content.path is not None:
        link = documents.object_link(services.require_storage(), caller, content)
        return RedirectResponse(link, headers=wire.NO_STORE)
    return Response(content.data, headers=wire.download_headers(content.filename, content.content_type))


@routes.patch("/documents/{document_id}")
def update(caller: Writer, services: Container, document: Id, body: wire.DocumentChanges) -> wire.Document:
    row = documents.update(services.database, caller, document, body.title, body.metadata)
    return wire.Document.of({**row, "ignored_fields": ignored_names(body)})


@routes.delete("/documents/{document_id}", status_code=204)
def delete(caller: Writer, services: Container, document: Id) -> Response:
    documents.delete(services.database, caller, document)
    return Response(status_code=204)


@routes.post("/documents/delete")
def delete_several(caller: Writer, services: Container, body: wire.DocumentIds) -> wire.DeletedDocuments:
    ids = [id_of(text, "document") for text in body.document_ids]
    return wire.DeletedDocuments(document_ids=documents.delete_several(services.database, caller, ids))


def _uploads(services: Container) -> Uploads:
    return Uploads(services.database, services.require_storage(), services.require_signer())


def _add_document(
    services: Container, caller: Principal, once: Once, collection_id: str, new: NewUpload
) -> wire.Document | Response:
    collection = id_of(collection_id, "collection")
    operation = IdempotentRequest(Scope.DOCUMENTS_WRITE, new, collection)
    add = documents.add
    return once.make(operation, lambda: wire.Document.of(add(services.database, caller, collection, new)))


handler = lambda_handler(app)
