"""Capacity of a deployment: disk, memory, instance and embedding cost by chunks, words and dimensions.

The part `capacity` measures the bytes of five databases. Three fit the model, two test it:

    python -m bench capacity

From these figures this module estimates a deployment (docs/capacity.md):

    python -m bench.capacity --chunks 1000000 --words 120 --dimensions 1536 --questions 20 ...
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from bench.figures import Figure, values
from bench.put_documents import ORG, bodies, member_call
from bench.tenants import TenantDatabase, tenant_database
from shared.models.vectors import DIMENSIONS

GB = 1e9
HNSW, KEYWORDS = "chunks_by_embedding", "term_blocks"
# Chunks of an org that stay outside of the HNSW index (rag.is_hnsw_tail_full).
OUTSIDE = 3000
# Searches read the two indexes at random: they belong in memory, with the rows of results and connections.
MEMORY_FACTOR, BASE_MEMORY = 1.5, 0.5 * GB
TOKENS_OF_A_WORD = 1.35
# Bytes by table and index.
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
ADD_TO_HNSW = "update rag.chunks set in_hnsw = true where not in_hnsw"
# Supabase's instances: memory in GB and processors, as published in autumn 2025.
INSTANCES = {
    "Micro": (1, 2), "Small": (2, 2), "Medium": (4, 2), "Large": (8, 2), "XL": (16, 4), "2XL": (32, 8),
    "4XL": (64, 16), "8XL": (128, 32), "12XL": (192, 48), "16XL": (256, 64),
}  # fmt: skip


@dataclass(frozen=True)
class Load:
    """Documents of one chunk. `dimensions`: those of the model."""

    chunks: int
    words: int
    dimensions: int

    @property
    def row(self) -> list[float]:
        """The terms of the model, for one chunk."""
        return [1.0, self.words, self.dimensions]

    def __str__(self) -> str:
        return f"{self.chunks:,} chunks of {self.words} words, {self.dimensions:,} dimensions"


FITTED = (Load(8000, 60, 384), Load(8000, 180, 384), Load(8000, 120, 1536))
TESTED = (Load(20_000, 120, 384), Load(4000, 90, 768))
TERMS = ("a chunk", "a word", "a dimension")
PARTS = ("HNSW index", "keyword index", "rows and other indexes")


def measure(console: Console) -> list[Figure]:
    fitted = [_bytes(load, console) for load in FITTED]
    models: dict[str, list[float]] = {
        part: np.linalg.solve([load.row for load in FITTED], [sizes[part] for sizes in fitted]).tolist()
        for part in PARTS
    }
    figures = [
        Figure(f"{part}, {term}", value, "B")
        for part, values in models.items()
        for term, value in zip(TERMS, values, strict=True)
    ]
    for load in TESTED:
        sizes = _bytes(load, console)
        predicted = {part: float(np.dot(models[part], load.row)) for part in PARTS}
        for name, parts in (("disk", PARTS), ("both indexes", PARTS[:2])):
            size, expected = (sum(values[part] for part in parts) for values in (sizes, predicted))
            error = 100 * abs(expected / size - 1)
            figures += [
                Figure(f"{name}, {load}", size, "B", expected),
                Figure(f"error of the estimate, {name}, {load}", error, "%", None, "<= 20"),
            ]
    return figures


def _bytes(load: Load, console: Console) -> dict[str, float]:
    """Bytes of a chunk by part, all chunks in the HNSW index."""
    index = f"{HNSW}_{load.dimensions}"
    with tenant_database() as tenants:
        tenants.add([ORG])
        # The number of dimensions is set before the first embedding.
        tenants.connection.execute("truncate rag.chunks cascade")
        tenants.connection.execute("select rag.set_dimensions(%s, %s)", [tenants.model, load.dimensions])
        tenants.without_index(load.dimensions)
        before = _sizes_in(tenants)
        with member_call(tenants) as put:
            for body in bodies(load.chunks, load.words, load.dimensions):
                put(body)
        after = _sizes_in(tenants)
        # Without triggers: the keyword index does not change.
        tenants.connection.execute("set session_replication_role = replica")
        tenants.connection.execute(ADD_TO_HNSW)
        tenants.with_index(load.dimensions)
        after["chunks", index] = _sizes_in(tenants)["chunks", index]
    sizes = dict.fromkeys(PARTS, 0.0)
    for (table, name), size in after.items():
        part = PARTS[0] if name == index else PARTS[1] if table == KEYWORDS else PARTS[2]
        sizes[part] += (size - before.get((table, name), 0)) / load.chunks
    console.print(f"{load}: {sum(sizes.values()):,.0f} B a chunk")
    return sizes


def _sizes_in(tenants: TenantDatabase) -> dict[tuple[str, str], int]:
    return {(table, part): size for table, part, size in tenants.connection.execute(SIZES)}


@dataclass(frozen=True)
class Estimate:
    """`disk` and `memory` in GB; `instance`: the smallest of INSTANCES with that memory and the processors
    for the questions, or None; `embedding_cost` in the currency of the price."""

    disk: float
    memory: float
    instance: str | None
    embedding_cost: float


def estimate(
    load: Load, orgs: int, questions: float, price: float, figures: Mapping[str, float], rate: float
) -> Estimate:
    """`orgs` of equal size; `questions` a second at the peak, of which one processor answers `rate`; `price`
    of a million tokens; `figures` of the model, by name."""
    sizes = {
        part: float(np.dot([figures[f"{part}, {term}"] for term in TERMS], load.row)) * load.chunks
        for part in PARTS
    }
    if load.chunks <= OUTSIDE * orgs:
        sizes[PARTS[0]] = 0.0
    memory = BASE_MEMORY + MEMORY_FACTOR * sum(sizes[part] for part in PARTS[:2])
    suitable = [
        name
        for name, (gigabytes, processors) in INSTANCES.items()
        if gigabytes * GB >= memory and processors * rate >= questions
    ]
    tokens = load.chunks * load.words * TOKENS_OF_A_WORD
    return Estimate(
        sum(sizes.values()) / GB, memory / GB, suitable[0] if suitable else None, tokens / 1e6 * price
    )


def questions_a_second() -> float:
    """The searches that one of two processors answers, functions included: the least measured."""
    rows = values("request")
    return min(rows[f"throughput, {chunks} chunks, ours"] for chunks in ("50,000", "3,000", "100")) / 2


def measured() -> dict[str, float]:
    """The figures of the latest measurement, by name."""
    return values("capacity")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__)
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--words", type=int, default=120, help="of a chunk; default 120")
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS, help="of the model; default 1,536")
    parser.add_argument("--orgs", type=int, default=1, help="of equal size; default 1")
    parser.add_argument("--questions", type=float, default=1, help="a second at the peak; default 1")
    parser.add_argument("--price", type=float, default=0, help="of a million tokens of the embedding model")
    given = parser.parse_args()
    load = Load(given.chunks, given.words, given.dimensions)
    need = estimate(load, given.orgs, given.questions, given.price, measured(), questions_a_second())
    print(f"{load}, {given.orgs:,} orgs, {given.questions:g} questions a second")
    print(f"disk       {need.disk:,.1f} GB")
    print(f"memory     {need.memory:,.1f} GB")
    print(f"instance   {need.instance or 'larger than any in the list'}")
    print(f"embedding  {need.embedding_cost:,.2f}")


if __name__ == "__main__":
    main()
