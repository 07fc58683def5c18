"""LangChain's PGVectorStore behind FastAPI, for bench/peers.py.

The org is a metadata column. All else has the defaults of langchain-postgres. The package's own helpers
create the table and its HNSW index: python -m bench.served_langchain table, python -m
bench.served_langchain index.
"""

import asyncio
import os
import sys
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_postgres import Column, PGEngine, PGVectorStore
from langchain_postgres.v2.indexes import HNSWIndex

from bench.served_peer import DIMENSIONS, EmbeddingsClient, serve

TABLE = "langchain_chunks"


class EndpointEmbeddings(Embeddings):
    """Embeddings of the stand-in. Only the asynchronous methods are used."""

    def __init__(self) -> None:
        self._client = EmbeddingsClient()

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return await self._client.embed(texts)


class LangChainStore:
    def __init__(self, store: PGVectorStore) -> None:
        self._store = store

    async def search(self, org_id: str, text: str, top_k: int) -> list[dict[str, Any]]:
        documents = await self._store.asimilarity_search_with_score(text, k=top_k, filter={"org_id": org_id})
        return [
            {
                "id": document.id,
                "content": document.page_content,
                "metadata": document.metadata,
                "score": 1 - distance,
            }
            for document, distance in documents
        ]

    async def add(self, org_id: str, texts: list[str]) -> list[str]:
        return await self._store.aadd_documents(
            [Document(page_content=text, metadata={"org_id": org_id}) for text in texts]
        )


def engine() -> PGEngine:
    return PGEngine.from_connection_string(f"postgresql+asyncpg://{os.environ['BENCH_DATABASE']}")


async def open_store() -> LangChainStore:
    store = await PGVectorStore.create(engine(), EndpointEmbeddings(), TABLE, metadata_columns=["org_id"])
    return LangChainStore(store)


async def create_table() -> None:
    await engine().ainit_vectorstore_table(TABLE, DIMENSIONS, metadata_columns=[Column("org_id", "UUID")])


async def create_index() -> None:
    store = await PGVectorStore.create(engine(), EndpointEmbeddings(), TABLE, metadata_columns=["org_id"])
    await store.aapply_vector_index(HNSWIndex())


app = serve(open_store)

if __name__ == "__main__":
    asyncio.run({"table": create_table, "index": create_index}[sys.argv[1]]())
