"""rag_match in a large table of chunks: as it is, and divided into 16 hash partitions by org.

A million chunks of 384 dimensions, and 300,000 of 1,536: recall and time for orgs of 100, 3,000 and 50,000
chunks and of half of all, build time and size of the HNSW indexes. The schema has no partitions. This module
makes them, with the policies, and changes the searches of one org so that they read only its partition.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from bench import synthetic_vectors
from bench.figures import Figure
from bench.interleaved import Candidate, Score, Workload, run_interleaved
from bench.match_by_tenant_size import OURS
from bench.tenant_rows import Org
from bench.tenants import LARGE, MEDIUM, SMALL, TenantDatabase, small_orgs, tenant_database

TABLES = ((384, 1_000_000), (1536, 300_000))
SMALL_ORGS, QUESTIONS, PARTITIONS = 200, 120, 16
WHOLE, DIVIDED = "one table", f"{PARTITIONS} partitions"
SIZE = """
select coalesce(sum(pg_relation_size(indexrelid)), 0) from pg_index
join pg_class on pg_class.oid = indexrelid
join pg_am on pg_am.oid = relam and amname = 'hnsw'
"""
DIVIDE = """
alter table rag.chunks rename to undivided_chunks;
create table rag.chunks (like rag.undivided_chunks including all) partition by hash (org_id);
do $$
declare
  policy record;
begin
  for number in 0..{last} loop
    execute format('create table rag.chunks_%s partition of rag.chunks '
      'for values with (modulus {count}, remainder %s)', number, number);
  end loop;
  execute 'grant select, insert, update, delete on rag.chunks to authenticated';
  execute 'alter table rag.chunks enable row level security';
  execute 'alter table rag.chunks force row level security';
  for policy in
    select * from pg_policies
    where schemaname = 'rag' and tablename = 'undivided_chunks' and roles = '{{authenticated}}'
  loop
    execute format('create policy %I on rag.chunks as %s for %s to authenticated %s %s', policy.policyname,
      policy.permissive, policy.cmd, 'using (' || policy.qual || ')',
      'with check (' || policy.with_check || ')');
  end loop;
end $$;
insert into rag.chunks select * from rag.undivided_chunks;
truncate rag.undivided_chunks cascade;
"""
# The rows of the index of each org's partition.
COUNT_ROWS = """
insert into rag.partition_rows
select org_id, reltuples from (select distinct org_id, tableoid as partition from rag.chunks) as found
join pg_class on pg_class.oid = partition
"""
# The searches of one org: the planner finds the partition of one id, not those of an array.
FUNCTIONS = """
create table rag.partition_rows (org_id uuid primary key, rows real not null);
grant select on rag.partition_rows to authenticated;
do $$
declare
  definition text;
begin
  for definition in
    select pg_get_functiondef(oid) from pg_proc
    where oid = any (array[
      'rag.exact_scan', 'rag.hnsw_scan', 'rag.where_clause', 'rag.nearest_chunks']::regproc[])
  loop
    definition := replace(definition, 'org_id = any (scope.org_ids)', 'org_id = scope.org_ids[1]');
    definition := replace(definition, 'org_id = one_org', 'org_id = scope.org_ids[1]');
    definition := replace(definition, 'org_id = any (($1).org_ids)', 'org_id = ($1).org_ids[1]');
    definition := replace(definition, 'rag.indexed_rows(extensions.vector_dims(query_embedding))',
      '(select rows from rag.partition_rows where org_id = scope.org_ids[1])');
    execute definition;
  end loop;
end $$;
"""


def measure(console: Console) -> list[Figure]:
    figures: list[Figure] = []
    for dimensions, chunks in TABLES:
        figures += measure_table(console, dimensions, chunks)
    return figures


def asking_orgs(chunks: int) -> dict[str, Org]:
    """The orgs that ask, by their size; the last one has half of the table."""
    half = Org(4, chunks // 2, synthetic_vectors.TOPICS)
    return {f"{org.chunks:,} chunks": org for org in (SMALL, MEDIUM, LARGE, half)}


def table_name(dimensions: int, chunks: int) -> str:
    return f"{chunks:,} chunks of {dimensions:,} dimensions"


def measure_table(console: Console, dimensions: int, chunks: int) -> list[Figure]:
    asking = asking_orgs(chunks)
    rest = chunks - sum(org.chunks for org in asking.values())
    table = table_name(dimensions, chunks)
    figures: list[Figure] = []
    with vectors_of(dimensions), tenant_database() as tenants:
        tenants.connection.execute("select rag.set_dimensions(%s, %s)", [tenants.model, dimensions])
        tenants.without_index(dimensions)
        tenants.add([*asking.values(), *small_orgs(rest, SMALL_ORGS)])
        tokens = {
            name: tenants.token(tenants.user(f"org-{org.number}", [org])) for name, org in asking.items()
        }
        scores: dict[str, dict[str, Score]] = {}
        built: dict[str, tuple[float, float]] = {}
        for shape in (WHOLE, DIVIDED):
            if shape == DIVIDED:
                tenants.without_index(dimensions)
                divide(tenants)
            built[shape] = tenants.with_index(dimensions), tenants.number(SIZE) / 2**20
            if shape == DIVIDED:
                tenants.connection.execute(COUNT_ROWS)
            scores[shape] = {
                name: run_interleaved(
                    tenants.postgrest,
                    Workload.of(tokens[name], [org], QUESTIONS, rare=False),
                    {OURS: Candidate(OURS)},
                )[OURS]
                for name, org in asking.items()
            }
            for name, score in scores[shape].items():
                console.print(
                    f"{table}, {shape}, {name}: {score.p50_ms:.2f} ms, p95 {score.p95_ms:.2f}, recall "
                    f"{score.recall:.3f}, full {score.full_pages:.2f}, exact {score.last.get('exact')}",
                    highlight=False,
                )
    for name in asking:
        whole, divided = scores[WHOLE][name], scores[DIVIDED][name]
        where = f"{name} of {table}"
        figures += [
            Figure(f"recall, {where}", whole.recall, "", divided.recall, ">= 0.95"),
            Figure(f"p50, {where}", whole.p50_ms, "ms", divided.p50_ms),
            Figure(f"p95, {where}", whole.p95_ms, "ms", divided.p95_ms),
        ]
    seconds, size = built[WHOLE]
    return [
        *figures,
        Figure(f"HNSW build, {table}", seconds, "s", built[DIVIDED][0]),
        Figure(f"HNSW size, {table}", size, "MiB", built[DIVIDED][1]),
    ]


@contextmanager
def vectors_of(dimensions: int) -> Iterator[None]:
    """With synthetic vectors of that number of dimensions."""
    before = synthetic_vectors.DIMENSIONS
    synthetic_vectors.DIMENSIONS = dimensions
    try:
        yield
    finally:
        synthetic_vectors.DIMENSIONS = before


def divide(tenants: TenantDatabase) -> None:
    with tenants.connection.transaction():
        tenants.connection.execute(DIVIDE.format(last=PARTITIONS - 1, count=PARTITIONS).encode())
        tenants.connection.execute(FUNCTIONS.encode())
    tenants.show_functions()
