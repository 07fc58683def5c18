"""Collections: named sets of documents."""

from typing import Any, Literal

from mnemosyne.aio.names import id_of
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.transport import AsyncTransport
from mnemosyne.models.collection import Collection, CollectionConfigParam, Collections, GraphQueued
from mnemosyne.requests import Request, creation, path, query, without_none


class AsyncCollectionsResource:
    """`collection_id` and `org_id` may also be names. Raises NotFoundError for an unknown name, and
    ConflictError for a name of several."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        *,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
        config: CollectionConfigParam | None = None,
        org_id: str | None = None,
        private: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Collection:
        """Create a collection. Members of one org may omit `org_id`; only its creator sees a private
        collection. With an `idempotency_key` a repeated call within a day creates nothing. Raises
        ConflictError for an existing name."""
        fields = without_none(
            name=name,
            description=description,
            metadata=metadata,
            config=config,
            org_id=org_id and await id_of(self._transport, "org", org_id),
            private=private,
        )
        request = creation("/collections", idempotency_key, json=fields)
        return Collection.of(await self._transport.send(request))

    async def list(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        sort_by: Literal["created_at", "name", "document_count"] | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncPage[Collection]:
        """A page of at most 100 collections."""

        async def fetch(offset: int) -> AsyncPage[Collection]:
            parameters = query(limit=limit, offset=offset, sort_by=sort_by, order=order)
            answer = await self._transport.send(Request("GET", "/collections", parameters))
            page = Collections.of(answer)
            return AsyncPage.of(page.data, page.pagination, fetch)

        return await fetch(offset)

    async def get(self, collection_id: str) -> Collection:
        """The collection. Raises NotFoundError."""
        return Collection.of(await self._transport.send(Request("GET", await self._path(collection_id))))

    async def update(
        self,
        collection_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
        config: CollectionConfigParam | None = None,
    ) -> Collection:
        """Change the collection; omitted fields stay unchanged. Raises NotFoundError, ConflictError."""
        fields = without_none(name=name, description=description, metadata=metadata, config=config)
        request = Request("PATCH", await self._path(collection_id), json=fields)
        return Collection.of(await self._transport.send(request))

    async def delete(self, collection_id: str, *, cascade: bool = False) -> None:
        """Delete the collection, with `cascade` also its documents. Raises ConflictError if it has documents
        and `cascade` is false."""
        await self._transport.send(Request("DELETE", await self._path(collection_id), query(cascade=cascade)))

    async def build_graph(self, collection_id: str, *, again: bool = False) -> GraphQueued:
        """Queue the documents without a graph, or whose extraction was given up, for the graph; with `again`
        all documents. Raises NotFoundError, and ConflictError if the collection has no graph."""
        request = Request("POST", await self._path(collection_id, "graph"), json={"again": again})
        return GraphQueued.of(await self._transport.send(request))

    async def _path(self, collection_id: str, *more: str) -> str:
        return path("collections", await id_of(self._transport, "collection", collection_id), *more)
