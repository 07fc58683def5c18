"""match_documents of Supabase's guides behind FastAPI, for bench/peers.py.

PostgREST runs the function with the service key. The org is in the metadata, which the function's filter
reads.
"""

import os
from typing import Any

import httpx

from bench.served_peer import EmbeddingsClient, serve

# As in the guides, but for the schema of the operator.
SCHEMA = """
create table public.documents (
  id uuid primary key default gen_random_uuid(),
  content text,
  metadata jsonb,
  embedding extensions.vector(1536)
);
create function public.match_documents(
  query_embedding extensions.vector(1536), match_count int default null, filter jsonb default '{}')
returns table (id uuid, content text, metadata jsonb, similarity float)
language plpgsql
as $$
#variable_conflict use_column
begin
  return query
  select id, content, metadata,
    1 - (documents.embedding operator(extensions.<=>) query_embedding) as similarity
  from public.documents
  where metadata @> filter
  order by documents.embedding operator(extensions.<=>) query_embedding
  limit match_count;
end;
$$;
grant all on public.documents to service_role;
"""
INDEX = "create index on public.documents using hnsw (embedding extensions.vector_cosine_ops)"


class MatchDocuments:
    def __init__(self) -> None:
        key = os.environ["BENCH_SERVICE_KEY"]
        self._embeddings = EmbeddingsClient()
        self._client = httpx.AsyncClient(
            base_url=f"{os.environ['SUPABASE_URL']}/rest/v1",
            headers={"apikey": key, "Authorization": f"Bearer {key}"},
            timeout=60,
        )

    async def search(self, org_id: str, text: str, top_k: int) -> list[dict[str, Any]]:
        (embedding,) = await self._embeddings.embed([text])
        arguments = {"query_embedding": embedding, "match_count": top_k, "filter": {"org_id": org_id}}
        response = await self._client.post("/rpc/match_documents", json=arguments)
        response.raise_for_status()
        rows: list[dict[str, Any]] = response.json()
        return rows

    async def add(self, org_id: str, texts: list[str]) -> list[str]:
        embeddings = await self._embeddings.embed(texts)
        rows = [
            {"content": text, "metadata": {"org_id": org_id}, "embedding": embedding}
            for text, embedding in zip(texts, embeddings, strict=True)
        ]
        response = await self._client.post(
            "/documents", json=rows, params={"select": "id"}, headers={"Prefer": "return=representation"}
        )
        response.raise_for_status()
        return [row["id"] for row in response.json()]


async def open_store() -> MatchDocuments:
    return MatchDocuments()


app = serve(open_store)
