"""Storage of 1,536 dimensions: half or single precision, in the row or in TOAST (pgvector's default), and an
index of one bit per dimension with re-ordering.

The same 100,000 chunks in a table of each kind, without row security. Each question goes to every table in
turn, in SQL, exactly and through its HNSW index with iterative scan.
"""

from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID

import psycopg
from rich.console import Console

from bench.figures import Figure
from bench.interleaved import TOP_K, vector_literal
from bench.match_by_tenant_size import REST, SMALL_ORGS
from bench.tenants import LARGE, MEDIUM, SMALL, TenantDatabase, small_orgs, tenant_database

QUESTIONS = 30
BIT_FETCH = 200


@dataclass(frozen=True)
class Kind:
    """A way to keep embeddings, and to index them."""

    name: str
    table: str
    type: str = "halfvec"
    storage: str = "plain"
    bits: bool = False

    @property
    def cast(self) -> str:
        return f"extensions.{self.type}(1536)"

    @property
    def index(self) -> str:
        return f"{self.table}_bits" if self.bits else f"{self.table}_index"


KINDS = (
    Kind("halfvec, plain", "half_plain"),
    Kind("halfvec, external (default)", "half_external", storage="external"),
    Kind("vector, plain", "single_plain", "vector"),
    Kind("vector, external (default)", "single_external", "vector", "external"),
    Kind("halfvec, plain, one bit a dimension indexed", "half_plain", bits=True),
)
BIT_OF = "(extensions.binary_quantize({})::bit(1536))"
EXACT = """
select id from (select id, (embedding operator(extensions.<=>) %(query)s::{cast}) + 0 as distance
  from {table} where org_id = %(org)s order by distance limit {top_k}) as nearest order by distance"""
INDEXED = """
select id from (select id, embedding operator(extensions.<=>) %(query)s::{cast} as distance
  from {table} where org_id = %(org)s order by distance limit {fetch}) as nearest
order by distance limit {top_k}"""
BY_BITS = """
select id from (select id, embedding from {table} where org_id = %(org)s
  order by {stored} operator(extensions.<~>) {asked} limit {fetch}) as nearest
order by embedding operator(extensions.<=>) %(query)s::{cast} limit {top_k}"""


@dataclass
class Timings:
    seconds: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        return median(self.seconds) * 1000


def measure(console: Console) -> list[Figure]:
    figures: list[Figure] = []
    with tenant_database() as tenants:
        tenants.add([LARGE, MEDIUM, SMALL, *small_orgs(REST, SMALL_ORGS)])
        for kind in KINDS:
            figures += make(tenants, kind)
            console.print(
                "; ".join(f"{figure.name} {figure.value:.4g} {figure.unit}" for figure in figures[-3:])
            )
        tenants.connection.execute("vacuum analyze")
        figures += time_all(tenants.connection)
    return figures


def make(tenants: TenantDatabase, kind: Kind) -> list[Figure]:
    """Its table, unless it is there, and its index."""
    execute = tenants.connection.execute
    if not kind.bits:
        execute(
            f"create table {kind.table} (org_id uuid, id uuid, content text, embedding {kind.cast} not null)"
        )
        execute(f"alter table {kind.table} alter column embedding set storage {kind.storage}")
        execute(
            f"insert into {kind.table} select org_id, id, content, embedding::{kind.cast} "  # noqa: S608
            "from rag.chunks order by ctid"
        )
        execute(f"create index on {kind.table} (org_id)")
    indexed = f"embedding extensions.{kind.type}_cosine_ops"
    if kind.bits:
        indexed = f"{BIT_OF.format('embedding')} extensions.bit_hamming_ops"
    started = perf_counter()
    execute(f"create index {kind.index} on {kind.table} using hnsw ({indexed})")
    seconds = perf_counter() - started
    table = tenants.number(f"select pg_table_size('{kind.table}')") / 2**20
    index = tenants.number(f"select pg_relation_size('{kind.index}')") / 2**20
    return [
        Figure(f"{kind.name}: table", table, "MiB"),
        Figure(f"{kind.name}: HNSW size", index, "MiB"),
        Figure(f"{kind.name}: HNSW build", seconds, "s"),
    ]


def time_all(connection: psycopg.Connection[Any]) -> list[Figure]:
    """Exactly over the middling org and the large one, and through each index over the large one."""
    # No plan without a sort is made dearer by this; those that could use the index then do.
    for setting in ("enable_sort = off", "hnsw.iterative_scan = relaxed_order", "hnsw.ef_search = 100"):
        connection.execute(f"set {setting}")
    visible: dict[tuple[Kind, str], Timings] = {}
    for org, method in ((MEDIUM, "exact"), (LARGE, "exact"), (LARGE, "HNSW")):
        for query in org.queries(QUESTIONS):
            arguments = {"query": vector_literal(query), "org": org.id}
            truth = (
                ask(connection, EXACT, KINDS[0], Timings(), arguments) if method == "HNSW" else set[UUID]()
            )
            for kind in KINDS:
                if method == "exact" and kind.bits:
                    continue
                timed = visible.setdefault((kind, f"{method}, {org.chunks:,} rows"), Timings())
                template = EXACT if method == "exact" else BY_BITS if kind.bits else INDEXED
                results = ask(connection, template, kind, timed, arguments)
                if method == "HNSW":
                    timed.recalls.append(len(results & truth) / TOP_K)
    figures = []
    for (kind, method), timed in visible.items():
        recall = sum(timed.recalls) / len(timed.recalls) if timed.recalls else None
        note = None if recall is None else f"recall {recall:.3f}"
        figures.append(Figure(f"{kind.name}: {method}", timed.ms, "ms", note=note))
    return figures


def ask(
    connection: psycopg.Connection[Any], template: str, kind: Kind, timed: Timings, arguments: dict[str, Any]
) -> set[UUID]:
    query = template.format(
        table=kind.table,
        cast=kind.cast,
        top_k=TOP_K,
        fetch=BIT_FETCH if kind.bits else 2 * TOP_K,
        stored=BIT_OF.format("embedding"),
        asked=BIT_OF.format(f"%(query)s::{kind.cast}"),
    )
    started = perf_counter()
    rows = connection.execute(query.encode(), arguments, prepare=False).fetchall()
    timed.seconds.append(perf_counter() - started)
    return {row[0] for row in rows}
