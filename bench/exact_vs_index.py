"""Number of rows above which the HNSW index beats an exact scan.

One table of 100,000 rows is searched by members of one org of several sizes, and of many small orgs: exactly
and through the HNSW index (iterative scan, re-ordered), under row security, in SQL on one connection,
alternately. rag.settings.exact_rows should be the size from which the index is faster and has enough recall.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID

import psycopg
from rich.console import Console

from bench.figures import Figure
from bench.interleaved import TOP_K, sample_queries, vector_literal
from bench.tenant_rows import Org
from bench.tenants import IN_INDEX, TenantDatabase, small_orgs, tenant_database

SIZES = (100, 1_000, 3_000, 5_000, 10_000, 50_000)
ROWS = 100_000
SMALL_ORG = 250
# So many small orgs with rows scattered among all others, the hardest case for the index.
MEMBERSHIPS = (20, 40, 100)
QUESTIONS = 40
# More than was asked for finds no more: what the index misses it never reached (measured up to eightfold).
FETCH = TOP_K
EF_SEARCH = (40, 100, 200, 400)
EXACT = "exact"
NEAREST = """
select id from (
  select id, (embedding::extensions.halfvec(1536)
    operator(extensions.<=>) %(query)s::extensions.halfvec(1536)) {exactly} as distance
  from rag.chunks
  where org_id = any (%(orgs)s::uuid[]) and {rows}
  order by distance limit {limit}
) as nearest order by distance"""


@dataclass
class Timings:
    seconds: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        return median(self.seconds) * 1000

    @property
    def recall(self) -> float:
        return sum(self.recalls) / len(self.recalls)


def measure(console: Console) -> list[Figure]:
    single = [Org(number, size, min(1000, size)) for number, size in enumerate(SIZES, 1)]
    remaining = ROWS - sum(SIZES)
    figures: list[Figure] = []
    with tenant_database() as tenants:
        small = small_orgs(remaining, remaining // SMALL_ORG)
        tenants.add([*single, *small])
        tenants.with_index()
        for orgs in [*([org] for org in single), *(small[:number] for number in MEMBERSHIPS)]:
            chunks = sum(org.chunks for org in orgs)
            label = f"{chunks:,} in {len(orgs)} org{'s' if len(orgs) > 1 else ''}"
            timings = compare_scans(tenants, orgs)
            figures += figures_of(label, timings)
            summaries = (
                f"{name} {method.ms:.2f} ms, recall {method.recall:.3f}" for name, method in timings.items()
            )
            console.print(f"{label}: " + "; ".join(summaries))
    return figures


def figures_of(label: str, timings: dict[str, Timings]) -> list[Figure]:
    """The index's time beside the exact scan's, its recall as a note."""
    return [
        Figure(f"{name}, {label}", method.ms, "ms", timings[EXACT].ms, note=f"recall {method.recall:.3f}")
        for name, method in timings.items()
        if name != EXACT
    ]


def compare_scans(tenants: TenantDatabase, orgs: Sequence[Org]) -> dict[str, Timings]:
    user = tenants.user(f"cutover-{orgs[0].number}-{len(orgs)}", orgs)
    methods: dict[str, Timings] = {EXACT: Timings(), **{f"ef_search {size}": Timings() for size in EF_SEARCH}}
    with psycopg.connect(tenants.stack.database_url()) as connection:
        impersonate(connection, user)
        for query in sample_queries(orgs, QUESTIONS):
            arguments = {"query": vector_literal(query), "orgs": [org.id for org in orgs]}
            truth = ask(connection, methods[EXACT], arguments, None)
            for size in EF_SEARCH:
                method = methods[f"ef_search {size}"]
                timings = ask(connection, method, arguments, size)
                method.recalls.append(len(truth & timings) / len(truth))
            methods[EXACT].recalls.append(1)
        connection.rollback()
    return methods


def impersonate(connection: psycopg.Connection[Any], user: UUID) -> None:
    """For this transaction, as PostgREST does."""
    claims = json.dumps({"sub": str(user), "role": "authenticated"})
    connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
    connection.execute("set local role authenticated")
    connection.execute("set local statement_timeout = 0")


def ask(
    connection: psycopg.Connection[Any], method: Timings, arguments: dict[str, Any], ef_search: int | None
) -> set[UUID]:
    """The nearest TOP_K, through the index where ef_search says how."""
    connection.execute(f"set local enable_sort = {'on' if ef_search is None else 'off'}")
    connection.execute(f"set local hnsw.ef_search = {ef_search or 40}")
    connection.execute("set local hnsw.iterative_scan = relaxed_order")
    if ef_search is None:
        query = NEAREST.format(exactly="+ 0", rows="true", limit=TOP_K)
    else:
        query = NEAREST.format(exactly="", rows=IN_INDEX.format(1536), limit=FETCH)
    started = perf_counter()
    # Not prepared: rag_match's choices are planned for their values too.
    rows: Sequence[tuple[UUID]] = connection.execute(query.encode(), arguments, prepare=False).fetchall()
    method.seconds.append(perf_counter() - started)
    return {row[0] for row in rows[:TOP_K]}
