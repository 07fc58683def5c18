"""LlamaIndex's PGVectorStore behind FastAPI, for bench/peers.py.

The org is in the metadata. All else has the defaults of llama-index-vector-stores-postgres, and HNSW the
parameters of its documentation. The package itself creates the table and its HNSW index: python -m
bench.served_llama_index table, python -m bench.served_llama_index index. Each prints the metadata of a row.
"""

import json
import os
import sys
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from llama_index.vector_stores.postgres import PGVectorStore
from pydantic import PrivateAttr

from bench.served_peer import DIMENSIONS, EmbeddingsClient, serve

TABLE = "llama_index_chunks"
HNSW = {
    "hnsw_m": 16,
    "hnsw_ef_construction": 64,
    "hnsw_ef_search": 40,
    "hnsw_dist_method": "vector_cosine_ops",
}


class EndpointEmbedding(BaseEmbedding):
    """Embeddings of the stand-in. Only the asynchronous methods are used."""

    _client: EmbeddingsClient = PrivateAttr(default_factory=EmbeddingsClient)

    def _get_query_embedding(self, query: str) -> list[float]:
        raise NotImplementedError

    def _get_text_embedding(self, text: str) -> list[float]:
        raise NotImplementedError

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._client.embed([query]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._client.embed(texts)


class LlamaIndexStore:
    def __init__(self, index: VectorStoreIndex) -> None:
        self._index = index

    async def search(self, org_id: str, text: str, top_k: int) -> list[dict[str, Any]]:
        filters = MetadataFilters(filters=[MetadataFilter(key="org_id", value=org_id)])
        retriever = self._index.as_retriever(similarity_top_k=top_k, filters=filters)
        return [
            {
                "id": match.node.node_id,
                "content": match.node.get_content(),
                "metadata": match.node.metadata,
                "score": match.score,
            }
            for match in await retriever.aretrieve(text)
        ]

    async def add(self, org_id: str, texts: list[str]) -> list[str]:
        nodes = [TextNode(text=text, metadata={"org_id": org_id}) for text in texts]
        await self._index.ainsert_nodes(nodes)
        return [node.node_id for node in nodes]


def vector_store(hnsw: dict[str, Any] | None) -> PGVectorStore:
    address = os.environ["BENCH_DATABASE"]
    return PGVectorStore.from_params(
        connection_string=f"postgresql+psycopg2://{address}",
        async_connection_string=f"postgresql+asyncpg://{address}",
        table_name=TABLE,
        embed_dim=DIMENSIONS,
        hnsw_kwargs=hnsw,
    )


async def open_store() -> LlamaIndexStore:
    # The store removes two of the values.
    store = vector_store(dict(HNSW))
    # As many as OpenAIEmbedding embeds in a request.
    embedding = EndpointEmbedding(model_name="stand-in", embed_batch_size=100)
    return LlamaIndexStore(VectorStoreIndex.from_vector_store(store, embed_model=embedding))


def set_up(part: str) -> None:
    # Any use of the store creates its table, and with these parameters its index.
    vector_store(dict(HNSW) if part == "index" else None).add([])
    node = TextNode(id_="$id", text="", metadata={"org_id": "$org_id"})
    print(json.dumps(node_to_metadata_dict(node, remove_text=True)))


app = serve(open_store)

if __name__ == "__main__":
    set_up(sys.argv[1])
