"""Documents: uploaded as files, texts or addresses, listed, changed, deleted."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing  # asynchronous only
from typing import Any, Literal

from mnemosyne.aio.names import id_of
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.realtime import Changes, Realtime  # asynchronous only
from mnemosyne.aio.transport import AsyncTransport
from mnemosyne.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    DocumentFailedError,
    masked,
    secret_of,
)
from mnemosyne.models.document import Document, DocumentLink, Documents, DocumentStatus, UploadTicket
from mnemosyne.requests import Request, creation, path, query, without_none
from mnemosyne.retries import Waiting, is_passing
from mnemosyne.uploads import MAX_REQUEST_BYTES, File, Progress, Upload, upload_of

TIMEOUT_SECONDS = 30.0


class AsyncDocumentsResource:
    """`collection_id` may also be a name. With an `external_id`, the caller's own name for a document in its
    collection, a new upload replaces the document. With an `idempotency_key` a repeated call within a day
    creates nothing; without, each call generates a key, so that it can be repeated after a lost
    connection."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        collection_id: str,
        file: File,
        *,
        filename: str | None = None,
        metadata: dict[str, Any] | None = None,
        private: bool | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
        on_progress: Progress | None = None,
    ) -> Document:
        """Upload a file: a path, open in binary mode, bytes, or (name, file or bytes). A `str` is a path,
        never the content. A file above 6 MB goes to the project's storage; `on_progress` then gets the number
        of bytes sent and the size. Raises ConflictError for bytes that the collection has already,
        PayloadTooLargeError, UploadFailedError, and NotFoundError (storage_off) for a deployment without
        storage for large files."""
        collection_id = await id_of(self._transport, "collection", collection_id)
        fields = json.dumps(metadata, allow_nan=False) if metadata is not None else None
        upload = upload_of(file, filename)
        try:
            if upload.size > MAX_REQUEST_BYTES:
                described = without_none(
                    collection_id=collection_id, metadata=metadata, private=private, external_id=external_id
                )
                return await self._create_large(upload, described, idempotency_key, on_progress)
            request = creation(
                "/documents",
                idempotency_key,
                form=query(
                    collection_id=collection_id, metadata=fields, private=private, external_id=external_id
                ),
                file=upload,
                repeatable=external_id is not None,
            )
            return Document.of(await self._transport.send(request))
        finally:
            upload.close()

    async def _create_large(
        self,
        upload: Upload,
        fields: dict[str, Any],
        idempotency_key: str | None,
        on_progress: Progress | None,
    ) -> Document:
        """Upload the file to a signed URL of the project's storage, then add it."""
        described = {**fields, "filename": upload.name, "size_bytes": upload.size}
        if idempotency_key is not None:
            described["content_hash"] = await asyncio.to_thread(upload.content_hash)
        begun = await self._transport.send(Request("POST", "/documents/upload", json=described))
        ticket = UploadTicket.of(begun)
        await self._transport.put(ticket.upload_url, upload, on_progress)
        request = creation("/documents/uploaded", idempotency_key, json={"upload": ticket.upload})
        return Document.of(await self._transport.send(request))

    async def create_from_text(
        self,
        collection_id: str,
        content: str,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        private: bool | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Document:
        """Add a text. Without a title its first words are the title. Raises ConflictError as create does."""
        collection_id = await id_of(self._transport, "collection", collection_id)
        fields = without_none(
            collection_id=collection_id,
            content=content,
            title=title,
            metadata=metadata,
            private=private,
            external_id=external_id,
        )
        request = creation(
            "/documents/text", idempotency_key, json=fields, repeatable=external_id is not None
        )
        return Document.of(await self._transport.send(request))

    async def create_from_url(
        self,
        collection_id: str,
        url: str,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        private: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Document:
        """Add a page or a file of the public internet. An address that the collection has already is fetched
        again and replaces its document."""
        collection_id = await id_of(self._transport, "collection", collection_id)
        fields = without_none(
            collection_id=collection_id, url=url, title=title, metadata=metadata, private=private
        )
        request = creation("/documents/url", idempotency_key, json=fields, repeatable=True)
        return Document.of(await self._transport.send(request))

    async def list(
        self,
        collection_id: str,
        *,
        limit: int = 20,
        offset: int = 0,
        status: Literal["processing", "completed", "failed"] | None = None,
        sort_by: Literal["created_at", "title", "size_bytes"] | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncPage[Document]:
        """A page of at most 100 documents. Raises NotFoundError for a collection that the caller does not
        see."""
        collection_id = await id_of(self._transport, "collection", collection_id)

        async def fetch(offset: int) -> AsyncPage[Document]:
            parameters = query(
                collection_id=collection_id,
                limit=limit,
                offset=offset,
                status=status,
                sort_by=sort_by,
                order=order,
            )
            page = Documents.of(await self._transport.send(Request("GET", "/documents", parameters)))
            return AsyncPage.of(page.data, page.pagination, fetch)

        return await fetch(offset)

    async def get(self, document_id: str) -> Document:
        """The document. Raises NotFoundError."""
        return Document.of(await self._transport.send(Request("GET", path("documents", document_id))))

    async def status(self, document_id: str) -> DocumentStatus:
        """The progress of the document's processing. Raises NotFoundError."""
        request = Request("GET", path("documents", document_id, "status"))
        return DocumentStatus.of(await self._transport.send(request))

    async def url(self, document_id: str, expires_in: int | None = None) -> DocumentLink:
        """A link to the original, valid for so many seconds without a key. Raises NotFoundError."""
        request = Request("GET", path("documents", document_id, "url"), query(expires_in=expires_in))
        return DocumentLink.of(await self._transport.send(request))

    async def update(
        self, document_id: str, *, title: str | None = None, metadata: dict[str, Any] | None = None
    ) -> Document:
        """Change the document. New metadata replace the previous ones; omitted fields stay unchanged. Raises
        NotFoundError."""
        fields = without_none(title=title, metadata=metadata)
        request = Request("PATCH", path("documents", document_id), json=fields)
        return Document.of(await self._transport.send(request))

    async def wait_until_ready(
        self,
        document_id: str,
        timeout: float = 300,
        realtime: Realtime | None = None,  # asynchronous only
    ) -> Document:
        """The document when it can be searched. Continues through temporary failures of the server.

        Raises DocumentFailedError with the document's own error; APITimeoutError with its progress after
        `timeout` seconds; permanent errors, such as NotFoundError, at once.
        """
        waiting = Waiting(timeout)
        if realtime is not None:  # asynchronous only
            async with aclosing(Changes(realtime, waiting)) as changes:  # asynchronous only
                return await self._ready(document_id, waiting, changes.pause)  # asynchronous only
        return await self._ready(document_id, waiting, _pause)

    async def _ready(
        self,
        document_id: str,
        waiting: Waiting,
        sleep: Callable[[float, Document | None], Awaitable[None]],
    ) -> Document:
        last, retry_after_seconds = "nothing was known of it yet", None
        while True:
            document: Document | None = None
            # One short attempt: the next poll repeats it.
            seconds = min(max(waiting.left, 1.0), TIMEOUT_SECONDS)
            request = Request("GET", path("documents", document_id), seconds=seconds, tries=1)
            try:
                answer = await self._transport.send(request)
            except APIConnectionError as fault:
                last, retry_after_seconds = str(fault), None
            except APIError as fault:
                if not is_passing(fault.status_code):
                    raise
                last, retry_after_seconds = str(fault), fault.retry_after
            else:
                document = Document.of(answer)
                if document.status == "completed":
                    return document
                fields = document.error
                why = masked([fields.code, fields.message] if fields else ["", ""], secret_of(answer))
                if document.status == "failed":
                    raise DocumentFailedError(document.id, *why)
                last, retry_after_seconds = f"it is {document.status}", None
                if fields:
                    last += " ({}: {})".format(*why)
            pause = waiting.pause(retry_after_seconds)
            if pause is None:
                raise APITimeoutError(
                    f"Document {document_id} is not ready after {waiting.seconds} s: {last.rstrip('.')}. "
                    "Wait again, or raise timeout."
                )
            await sleep(pause, document)

    async def delete(self, document_id: str) -> None:
        """Delete the document with its chunks, original and graph. Raises NotFoundError."""
        await self._transport.send(Request("DELETE", path("documents", document_id)))


async def _pause(seconds: float, _: Document | None) -> None:
    await asyncio.sleep(seconds)
