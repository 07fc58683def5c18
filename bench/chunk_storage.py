"""Bytes of a chunk in each table and index: documents of one chunk with 120 words and 1,536 dimensions.

The documents are put as in bench/put_documents.py, which leaves their chunks outside of the HNSW index. Then
all chunks are added to it, as the worker does with those of a large org.
"""

from rich.console import Console

from bench.figures import Figure
from bench.put_documents import ORG, bodies, member_call
from bench.tenants import TenantDatabase, tenant_database

DOCUMENTS = 3000
SIZES = """
select tables.relname::text, coalesce(indexes.relname::text, 'rows'),
  coalesce(pg_relation_size(indexes.oid), pg_table_size(tables.oid))
from pg_class as tables
cross join lateral (
  select null::oid as oid, null::name as relname
  union all
  select pg_class.oid, pg_class.relname
  from pg_index join pg_class on pg_class.oid = pg_index.indexrelid
  where pg_index.indrelid = tables.oid) as indexes
where tables.relnamespace = 'rag'::regnamespace and tables.relkind = 'r'
"""
HNSW = "chunks_by_embedding_1536"
# Parts that do not grow with the chunks are smaller.
LEAST = 5
# Of the same documents at commit aee918d4, where each chunk was in the HNSW index at once.
BASELINE = 49_551
ADD_TO_HNSW = "update rag.chunks set in_hnsw = true where not in_hnsw"
Sizes = dict[tuple[str, str], int]


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants:
        tenants.add([ORG])
        tenants.with_index()
        before = sizes_in(tenants)
        with member_call(tenants) as put:
            for body in bodies(DOCUMENTS):
                put(body)
        outside = sizes_in(tenants)
        added = add_to_hnsw(tenants)
        grown = sizes_in(tenants)["chunks", HNSW] - outside["chunks", HNSW]
    console.print(f"{added:,} chunks added to the HNSW index")
    figures = [
        Figure(f"{table}: {part}", (size - before[table, part]) / DOCUMENTS, "B")
        for (table, part), size in outside.items()
        if size - before[table, part] > LEAST * DOCUMENTS and part != HNSW
    ]
    total, entry = sum(figure.value for figure in figures), grown / added
    return [
        *figures,
        Figure(f"chunks: {HNSW}", entry, "B"),
        Figure("all, outside of the HNSW index", total, "B", BASELINE),
        Figure("all, in the HNSW index", total + entry, "B", BASELINE, "<= 0.75"),
    ]


def sizes_in(tenants: TenantDatabase) -> Sizes:
    return {(table, part): size for table, part, size in tenants.connection.execute(SIZES)}


def add_to_hnsw(tenants: TenantDatabase) -> int:
    """Add all chunks, without triggers: the keyword index does not change. Returns their number."""
    tenants.connection.execute("set session_replication_role = replica")
    return tenants.connection.execute(ADD_TO_HNSW).rowcount
