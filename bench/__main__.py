"""python -m bench [PART ...]: measure, print a table, write bench/results.jsonl. Without a part, all."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from rich.console import Console

from bench import (
    chat,
    cold_start,
    cutover,
    endurance,
    figures,
    graph,
    growth,
    http_path,
    hybrid,
    indexes,
    ingest,
    match,
    picture,
    playground,
    sdk,
    sdk_typescript,
    searching,
    storage,
    work,
)
from bench.figures import Figure
from bench.stage import Stage, staged

# What plays on the demo's documents, and what makes a stack of its own, with documents made up.
STAGED: dict[str, Callable[[Stage], list[Figure]]] = {
    "http": http_path.measure,
    "cold": cold_start.measure,
    "memory": endurance.memory,
    "load": endurance.mixed_load,
    "chat": chat.measure,
    "sdk": lambda stage: [*sdk.measure(stage), *sdk_typescript.measure(stage)],
    "playground": playground.measure,
}
ALONE: dict[str, Callable[[Console], list[Figure]]] = {
    "match": match.measure,
    "growth": growth.measure,
    "storage": storage.measure,
    "cutover": cutover.measure,
    "hybrid": hybrid.measure,
    "ingest": ingest.measure,
    "work": work.measure,
    "index": indexes.measure,
    "search": searching.measure,
    "graph": graph.measure,
}
PARTS = [*STAGED, *ALONE]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args().parts or PARTS
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    console = Console()
    short = False
    for part, measure in measures(chosen, console):
        about = figures.machine()
        measured = measure()
        figures.record(part, about, measured)
        figures.table(part, measured, console)
        short = short or any(figure.holds is False for figure in measured)
    picture.write()
    if short:
        console.print("Some figures fall short of their goals; they are written down as they are.")
    return 0


def measures(chosen: list[str], console: Console) -> Iterator[tuple[str, Callable[[], list[Figure]]]]:
    """Those that share a stack first, and their stack gone before the others' come."""
    with ExitStack() as held:
        if together := [part for part in chosen if part in STAGED]:
            stage = held.enter_context(staged(console))
            yield from ((part, partial(STAGED[part], stage)) for part in together)
    yield from ((part, partial(ALONE[part], console)) for part in chosen if part in ALONE)


if __name__ == "__main__":
    sys.exit(main())
