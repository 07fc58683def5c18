"""python -m bench [PART ...]: measure, print a table, write bench/results.jsonl. Without a part, all."""

import argparse
import sys
from collections.abc import Callable

from rich.console import Console

from bench import cold_start, endurance, figures, http_path
from bench.figures import Figure
from bench.stage import Stage, staged

PARTS: dict[str, Callable[[Stage], list[Figure]]] = {
    "http": http_path.measure,
    "cold": cold_start.measure,
    "memory": endurance.memory,
    "load": endurance.mixed_load,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    console = Console()
    short = False
    with staged(console) as stage:
        for part in chosen:
            about = figures.machine()
            measured = PARTS[part](stage)
            figures.record(part, about, measured)
            figures.table(part, measured, console)
            short = short or any(figure.holds is False for figure in measured)
    if short:
        console.print("Some figures fall short of their goals; they are written down as they are.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
