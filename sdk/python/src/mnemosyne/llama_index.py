"""LlamaIndex: a retriever, a node postprocessor and a query engine. Needs `mnemosyne-ai[llama-index]`."""

import asyncio
from collections.abc import Iterable
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from pydantic import Field

from mnemosyne.aio import AsyncMnemosyne
from mnemosyne.client import Mnemosyne
from mnemosyne.models.chat import ChatCompletion, ChatMessageParam
from mnemosyne.models.chunk import Chunk, RetrievalMode


class MnemosyneRetriever(BaseRetriever):
    """Passages that the client's key may read, best first.

    `collection_id`: None searches all of the caller's documents. `similarity_top_k`: the number of passages,
    1 to 100. `metadata_filter`: values or operators ({"year": {"$gte": 2020}}). Without `async_client`,
    `aretrieve` uses `client` in a thread. Raises MnemosyneError.
    """

    def __init__(
        self,
        client: Mnemosyne,
        collection_id: str | None = None,
        *,
        similarity_top_k: int = 5,
        mode: RetrievalMode = "hybrid",
        rerank: bool | None = None,
        metadata_filter: dict[str, Any] | None = None,
        async_client: AsyncMnemosyne | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._client, self._async_client = client, async_client
        self._collection_id = collection_id
        self._arguments: dict[str, Any] = {
            "top_k": similarity_top_k,
            "mode": mode,
            "rerank": rerank,
            "metadata_filter": metadata_filter,
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        return _nodes(self._client.retrievals.retrieve(self._collection_id, query, **self._arguments))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._async_client is None:
            return await asyncio.to_thread(self._retrieve, query_bundle)
        retrievals = self._async_client.retrievals
        return _nodes(
            await retrievals.retrieve(self._collection_id, query_bundle.query_str, **self._arguments)
        )


class MnemosyneSimilarityPostprocessor(BaseNodePostprocessor):
    """Removes the retriever's passages that are less similar to the question than `similarity_cutoff`.

    The framework's own SimilarityPostprocessor compares the score, which most modes compute from ranks or
    words. This one compares the cosine in the metadata, in every mode. A passage without one was found by its
    words alone, and remains.
    """

    similarity_cutoff: float = Field(ge=0, le=1)

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [
            node
            for node in nodes
            if (similarity := node.metadata.get("similarity")) is None or similarity >= self.similarity_cutoff
        ]


class MnemosyneQueryEngine(BaseQueryEngine):
    """Grounded answers of the API's chat.

    The response's metadata has `confidence` (0 to 1), `level`, `withheld` and `session_id`: each query is
    stored as a chat session. A source node has the title, not the text, of a document. Without
    `async_client`, `aquery` uses `client` in a thread. Raises MnemosyneError.
    """

    def __init__(
        self,
        client: Mnemosyne,
        collection_id: str | None = None,
        *,
        async_client: AsyncMnemosyne | None = None,
    ) -> None:
        super().__init__(callback_manager=None)
        self._client, self._async_client = client, async_client
        self._collection_id = collection_id

    def _query(self, query_bundle: QueryBundle) -> Response:
        messages = _messages(query_bundle)
        return _response(self._client.chat.completions.create(self._collection_id, messages))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        if self._async_client is None:
            return await asyncio.to_thread(self._query, query_bundle)
        messages = _messages(query_bundle)
        completions = self._async_client.chat.completions
        return _response(await completions.create(self._collection_id, messages))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def _messages(query_bundle: QueryBundle) -> list[ChatMessageParam]:
    return [{"role": "user", "content": query_bundle.query_str}]


def _nodes(chunks: Iterable[Chunk]) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(
                id_=chunk.chunk_id,
                text=chunk.content,
                metadata=chunk.all_metadata,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=chunk.document_id)},
            ),
            score=chunk.score,
        )
        for chunk in chunks
    ]


def _response(answer: ChatCompletion) -> Response:
    sources = [
        NodeWithScore(
            node=TextNode(
                id_=source.chunk_id or source.document_id,
                text=source.title or "",
                metadata={"document_id": source.document_id, "filename": source.filename},
            ),
            score=source.score,
        )
        for source in answer.sources
    ]
    metadata = {
        "confidence": answer.confidence,
        "level": answer.confidence_detail.level if answer.confidence_detail else None,
        "withheld": answer.metadata.withheld if answer.metadata else None,
        "session_id": answer.session_id,
    }
    return Response(response=answer.response, source_nodes=sources, metadata=metadata)
