"""Where an exact scan stops being the faster way: both ways, by the number of rows that the caller may find.

In one table of 100,000 rows, as members of one org of some size, and of many small ones: searched exactly and
through the HNSW index (iterative scan, re-ordered), under row security, in SQL on one connection, in turns.
rag.settings.exact_rows belongs where the index is the faster way and finds enough.
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

from bench.contest import TOP_K, asked, literal
from bench.figures import Figure
from bench.rows import Org
from bench.tenants import Tenants, others, tenants

SIZES = (100, 1_000, 3_000, 5_000, 10_000, 50_000)
ROWS = 100_000
SMALL_ORG = 250
# So many small orgs whose rows lie among everybody's, which is hardest for the index.
MEMBERSHIPS = (20, 40, 100)
QUESTIONS = 40
# More than was asked for finds no more: what the index misses it never reached (measured up to eightfold).
FETCH = TOP_K
EF_SEARCH = (40, 100, 200, 400)
EXACT = "exact"
NEAREST = """
select id from (
  select id, (embedding operator(extensions.<=>) %(query)s::extensions.halfvec(1536)) {exactly} as distance
  from rag.chunks where org_id = any (%(orgs)s::uuid[])
  order by distance limit {limit}
) as nearest order by distance"""


@dataclass
class Way:
    seconds: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        return median(self.seconds) * 1000

    @property
    def recall(self) -> float:
        return sum(self.recalls) / len(self.recalls)


def measure(console: Console) -> list[Figure]:
    orgs = [Org(number, size, min(1000, size)) for number, size in enumerate(SIZES, 1)]
    rest = ROWS - sum(SIZES)
    figures: list[Figure] = []
    with tenants() as made:
        small = others(rest, rest // SMALL_ORG)
        made.add([*orgs, *small])
        made.with_index()
        for asking in [*([org] for org in orgs), *(small[:number] for number in MEMBERSHIPS)]:
            chunks = sum(org.chunks for org in asking)
            where = f"{chunks:,} in {len(asking)} org{'s' if len(asking) > 1 else ''}"
            found = both_ways(made, asking)
            figures += figures_of(where, found)
            told = (f"{name} {way.ms:.2f} ms, recall {way.recall:.3f}" for name, way in found.items())
            console.print(f"{where}: " + "; ".join(told))
    return figures


def figures_of(where: str, found: dict[str, Way]) -> list[Figure]:
    """The index's time beside the exact scan's, its recall as a note."""
    return [
        Figure(f"{name}, {where}", way.ms, "ms", found[EXACT].ms, note=f"recall {way.recall:.3f}")
        for name, way in found.items()
        if name != EXACT
    ]


def both_ways(made: Tenants, orgs: Sequence[Org]) -> dict[str, Way]:
    user = made.user(f"cutover-{orgs[0].number}-{len(orgs)}", orgs)
    ways: dict[str, Way] = {EXACT: Way(), **{f"ef_search {size}": Way() for size in EF_SEARCH}}
    with psycopg.connect(made.stack.database_url()) as connection:
        impersonate(connection, user)
        for query in asked(orgs, QUESTIONS):
            arguments = {"query": literal(query), "orgs": [org.id for org in orgs]}
            truth = ask(connection, ways[EXACT], arguments, None)
            for size in EF_SEARCH:
                way = ways[f"ef_search {size}"]
                found = ask(connection, way, arguments, size)
                way.recalls.append(len(truth & found) / len(truth))
            ways[EXACT].recalls.append(1)
        connection.rollback()
    return ways


def impersonate(connection: psycopg.Connection[Any], user: UUID) -> None:
    """For this transaction, as PostgREST does."""
    claims = json.dumps({"sub": str(user), "role": "authenticated"})
    connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
    connection.execute("set local role authenticated")
    connection.execute("set local statement_timeout = 0")


def ask(
    connection: psycopg.Connection[Any], way: Way, arguments: dict[str, Any], ef_search: int | None
) -> set[UUID]:
    """The nearest TOP_K, through the index where ef_search says how."""
    connection.execute(f"set local enable_sort = {'on' if ef_search is None else 'off'}")
    connection.execute(f"set local hnsw.ef_search = {ef_search or 40}")
    connection.execute("set local hnsw.iterative_scan = relaxed_order")
    query = NEAREST.format(
        exactly="+ 0" if ef_search is None else "", limit=TOP_K if ef_search is None else FETCH
    )
    started = perf_counter()
    # Not prepared: rag_match's choices are planned for their values too.
    rows: Sequence[tuple[UUID]] = connection.execute(query.encode(), arguments, prepare=False).fetchall()
    way.seconds.append(perf_counter() - started)
    return {row[0] for row in rows[:TOP_K]}
