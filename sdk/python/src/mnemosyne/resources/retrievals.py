# Generated from aio/ by `make generated`. Do not edit.
"""Retrievals: chunks of documents for a question, in five modes."""

from typing import Any

import httpx

from mnemosyne.models.chunk import GraphQueryResult, RetrievalMode, RetrievalResponse, RetrievalResult
from mnemosyne.names import id_of
from mnemosyne.requests import Request, without_none
from mnemosyne.transport import Transport


class RetrievalsResource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def retrieve(
        self,
        collection_id: str | None,
        query: str,
        *,
        mode: RetrievalMode | None = None,
        top_k: int | None = None,
        document_type: str | None = None,
        rerank: bool | None = None,
        enable_graph: bool | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> RetrievalResult:
        """The best chunks, in order. `collection_id`: an id or a name; None searches all of the caller's
        documents. Omitted arguments have the API's defaults (semantic, 10). `metadata_filter`: values or
        operators ({"year": {"$gte": 2020}}). Raises NotFoundError for a collection that the caller does not
        see."""
        answer = self._post(
            collection_id,
            query=query,
            mode=mode,
            top_k=top_k,
            document_type=document_type,
            rerank=rerank,
            enable_graph=enable_graph,
            metadata_filter=metadata_filter,
        )
        return RetrievalResult(RetrievalResponse.of(answer))

    def graph_query(
        self,
        collection_id: str | None,
        query: str,
        *,
        top_k: int | None = None,
        document_type: str | None = None,
        rerank: bool | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> GraphQueryResult:
        """The graph around the names in the question: entities, edges, and the chunks that state them."""
        answer = self._post(
            collection_id,
            query=query,
            mode="graph",
            top_k=top_k,
            document_type=document_type,
            rerank=rerank,
            metadata_filter=metadata_filter,
        )
        return GraphQueryResult(RetrievalResponse.of(answer))

    def _post(self, collection_id: str | None, **fields: Any) -> httpx.Response:
        if collection_id is not None:
            fields["collection_id"] = id_of(self._transport, "collection", collection_id)
        # A search changes nothing, so that it may be repeated.
        return self._transport.send(Request("POST", "/retrievals", json=without_none(**fields)))
