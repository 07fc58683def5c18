# Generated from aio/ by `make generated`. Do not edit.
"""Collections: named sets of documents."""

from typing import Any, Literal

from mnemosyne.models.collection import Collection, CollectionConfigParam, Collections, GraphQueued
from mnemosyne.names import id_of
from mnemosyne.pages import Page
from mnemosyne.requests import Request, creation, path, query, without_none
from mnemosyne.transport import Transport


class CollectionsResource:
    """`collection_id` and `org_id` may also be names. Raises NotFoundError for an unknown name, and
    ConflictError for a name of several."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
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
            org_id=org_id and id_of(self._transport, "org", org_id),
            private=private,
        )
        request = creation("/collections", idempotency_key, json=fields)
        return Collection.of(self._transport.send(request))

    def list(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        sort_by: Literal["created_at", "name", "document_count"] | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> Page[Collection]:
        """A page of at most 100 collections."""

        def fetch(offset: int) -> Page[Collection]:
            parameters = query(limit=limit, offset=offset, sort_by=sort_by, order=order)
            answer = self._transport.send(Request("GET", "/collections", parameters))
            page = Collections.of(answer)
            return Page.of(page.data, page.pagination, fetch)

        return fetch(offset)

    def get(self, collection_id: str) -> Collection:
        """The collection. Raises NotFoundError."""
        return Collection.of(self._transport.send(Request("GET", self._path(collection_id))))

    def update(
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
        request = Request("PATCH", self._path(collection_id), json=fields)
        return Collection.of(self._transport.send(request))

    def delete(self, collection_id: str, *, cascade: bool = False) -> None:
        """Delete the collection, with `cascade` also its documents. Raises ConflictError if it has documents
        and `cascade` is false."""
        self._transport.send(Request("DELETE", self._path(collection_id), query(cascade=cascade)))

    def build_graph(self, collection_id: str, *, again: bool = False) -> GraphQueued:
        """Queue the documents without a graph, or whose extraction was given up, for the graph; with `again`
        all documents. Raises NotFoundError, and ConflictError if the collection has no graph."""
        request = Request("POST", self._path(collection_id, "graph"), json={"again": again})
        return GraphQueued.of(self._transport.send(request))

    def _path(self, collection_id: str, *more: str) -> str:
        return path("collections", id_of(self._transport, "collection", collection_id), *more)
