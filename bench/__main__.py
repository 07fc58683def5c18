"""python -m bench [PART ...]: measure, print a table, write bench/results.jsonl. Without a part, all."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from rich.console import Console

from bench import (
    capacity,
    cold_start,
    cost,
    costly_requests,
    figures,
    http_path,
    index_ingestion,
    keyword_search,
    match_by_tenant_size,
    peers,
    platform_chat,
    put_documents,
    request_path,
    worker_throughput,
)
from bench.bench_stack import BenchStack, start_bench_stack
from bench.figures import Figure
from local.npm_tools import npm_path

# Measurements on the demo's documents, and those with a stack and synthetic documents of their own.
STAGED: dict[str, Callable[[BenchStack], list[Figure]]] = {
    "http": http_path.measure,
    "cold": cold_start.measure,
    "chat": platform_chat.measure,
    "cost": cost.measure,
}
ALONE: dict[str, Callable[[Console], list[Figure]]] = {
    "match": match_by_tenant_size.measure,
    "hybrid": keyword_search.measure,
    "costly": costly_requests.measure,
    "work": worker_throughput.measure,
    "put": put_documents.measure,
    "post": index_ingestion.measure,
    "capacity": capacity.measure,
    "request": request_path.measure,
    "peers": peers.measure,
}
PARTS = [*STAGED, *ALONE]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parts = parser.parse_args().parts or PARTS
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    os.environ["PATH"] = npm_path()
    console = Console()
    missed = False
    for part, measure in measures(parts, console):
        machine = figures.machine()
        figures_of_part = measure()
        figures.record(part, machine, figures_of_part)
        figures.print_table(part, figures_of_part, console)
        missed = missed or any(figure.holds is False for figure in figures_of_part)
    if missed:
        console.print("Some figures fall short of their goals; they are written down as they are.")
    return 0


def measures(parts: list[str], console: Console) -> Iterator[tuple[str, Callable[[], list[Figure]]]]:
    """Those that share a stack first, and their stack gone before the others' come."""
    with ExitStack() as stack:
        if shared := [part for part in parts if part in STAGED]:
            bench = stack.enter_context(start_bench_stack(console))
            yield from ((part, partial(STAGED[part], bench)) for part in shared)
    yield from ((part, partial(ALONE[part], console)) for part in parts if part in ALONE)


if __name__ == "__main__":
    sys.exit(main())
