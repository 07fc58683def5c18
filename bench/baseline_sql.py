"""Baselines for rag_match: SQL that an expert would write for one tenant, with its ids, size and filter
known, and the function of Supabase's guides. All run as the caller, under row security."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from bench.interleaved import Candidate
from bench.tenant_rows import Org
from bench.tenants import IN_INDEX

COLUMNS = """
    chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
    span_start integer, span_end integer, similarity double precision,
    source_type text, title text, uri text, lang text, occurred_at timestamptz, metadata jsonb"""
# The nearest chunks first, their distances computed once; then their documents.
HAND_WRITTEN = """
create function public.{name}(query_vector extensions.halfvec(1536), top_k integer)
returns table ({columns})
language sql stable security invoker set search_path = '' {settings}
as $$
  select nearest.id, nearest.document_id, nearest.org_id, nearest.ordinal, nearest.content,
    nearest.span_start, nearest.span_end, 1 - nearest.distance,
    documents.source_type, documents.title, documents.uri, documents.lang, documents.occurred_at,
    documents.metadata
  from (
    select id, document_id, org_id, ordinal, content, span_start, span_end,
      {distance} as distance
    from rag.chunks
    where {where}
    order by distance
    limit top_k
  ) as nearest
  join rag.documents on documents.org_id = nearest.org_id and documents.id = nearest.document_id
  order by nearest.distance;
$$"""
# As in Supabase's guides, but for the names, and the expression and condition of the index.
TEXTBOOK = """
create or replace function public.{name}(query_embedding extensions.halfvec(1536), match_count int)
returns table (chunk_id uuid, content text, similarity float)
language sql stable
as $$
  select chunks.id, chunks.content,
    1 - (chunks.embedding operator(extensions.<=>) query_embedding) as similarity
  from rag.chunks
  where {where}
  order by chunks.embedding::extensions.halfvec(1536) operator(extensions.<=>) query_embedding
  limit match_count;
$$"""
DISTANCE = "embedding::extensions.halfvec(1536) operator(extensions.<=>) query_vector"
INDEXED_ROWS = IN_INDEX.format(1536)
# "+ 0" keeps the HNSW index out of it.
EXACT = "(embedding operator(extensions.<=>) query_vector) + 0"
# Without the last, Postgres takes the policies for far more selective than they are, and sorts all rows.
ITERATIVE = "set hnsw.iterative_scan = '{order}' set hnsw.ef_search = '{ef_search}' set enable_sort = off"
INDEXED = (("strict_order", 40), ("relaxed_order", 40), ("relaxed_order", 100), ("relaxed_order", 400))
RARE = "source_type = 'faq'"


def expert_candidates(
    connection: psycopg.Connection[Any], cell: str, orgs: Sequence[Org], *, rare: bool, indexed: bool
) -> Mapping[str, Candidate]:
    """The expert's attempts at one cell, made in the database: exact scans, with `indexed` HNSW too."""
    ids = ", ".join(f"'{org.id}'" for org in orgs)
    scope = f"org_id = {ids}" if len(orgs) == 1 else f"org_id in ({ids})"
    rows = f"{scope} and {RARE}" if rare else scope
    model = f"{rows} and embedding_model = (select embedding_model from rag.settings)"  # noqa: S608
    attempts = {"exact": (rows, EXACT, ""), "exact, model too": (model, EXACT, "")}
    if indexed:
        for order, ef_search in INDEXED:
            settings = ITERATIVE.format(order=order, ef_search=ef_search)
            attempts[f"HNSW, {order}, ef_search {ef_search}"] = (
                f"{rows} and {INDEXED_ROWS}",
                DISTANCE,
                settings,
            )
    candidates = {}
    for number, (attempt, (where, distance, settings)) in enumerate(attempts.items()):
        name = f"hand_written_{cell}_{number}"
        statement = HAND_WRITTEN.format(
            name=name, columns=COLUMNS, settings=settings, where=where, distance=distance
        )
        connection.execute(statement.encode())
        candidates[attempt] = Candidate(name)
    return candidates


# Who reads the same table under the policy of Supabase's guides alone, instead of ours.
TEXTBOOK_ROLE = """
create role textbook nologin;
grant textbook to authenticator;
grant usage on schema rag, auth, extensions, public to textbook;
grant select on rag.chunks, rag.members to textbook;
create policy "textbook: own memberships" on rag.members for select to textbook
  using (user_id = (select auth.uid()));
create policy "textbook: own orgs" on rag.chunks for select to textbook
  using (org_id in (select org_id from rag.members where user_id = (select auth.uid())));
"""


def textbook_candidate(connection: psycopg.Connection[Any], token: str, *, rare: bool) -> Candidate:
    name = "match_documents_faq" if rare else "match_documents"
    # The planner uses no index for so few rows.
    where = RARE if rare else INDEXED_ROWS
    connection.execute(TEXTBOOK.format(name=name, where=where).encode())
    return Candidate(name, "query_embedding", "match_count", token=token)
