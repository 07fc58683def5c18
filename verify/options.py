"""Options of `verify`, without the modules that it runs: these import all functions."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--catalogue", action="store_true", help="only the part that reads: catalogue and recall"
    )
    part.add_argument(
        "--dry-run", action="store_true", help="check the settings and list what a run would create"
    )
    part.add_argument("--clean", action="store_true", help="only remove the rows of killed runs")
    parser.add_argument(
        "--members",
        type=Path,
        metavar="FILE",
        help="SQL that adds members to your own tables (docs/verify.md)",
    )
    parser.add_argument(
        "--in-use", action="store_true", help="rows that others change during the run are no difference"
    )
    parser.add_argument(
        "--report", type=Path, default=Path("verify-report"), metavar="PATH",
        help="files of the report, PATH.html and PATH.json; default %(default)s",
    )  # fmt: skip
