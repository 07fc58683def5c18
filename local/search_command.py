"""Command `search`: a search as a user, in any mode."""

import argparse
from contextlib import closing

from rich.console import Console
from rich.markup import escape

from local.seed_demo import make_services, principals_of
from local.stack import Stack
from shared import pipeline
from shared.generation.cited_documents import snippet
from shared.graph.graph_as_text import graph_context
from shared.types import Filters, Mode, Query, SearchResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text")
    parser.add_argument("--user", required=True, metavar="EMAIL")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.HYBRID, metavar="MODE",
                        help=f"{', '.join(Mode)}; default hybrid")  # fmt: skip
    parser.add_argument("--top-k", type=int, default=5, metavar="N")
    parser.add_argument("--source-type", action="append", default=[], metavar="TYPE")
    parser.add_argument("--neighbours", type=int, default=0, metavar="N", help="adjacent chunks in each text")
    parser.add_argument("--half-life", type=float, metavar="DAYS", help="rank older documents lower")
    parser.add_argument("--graph", action="store_true",
                        help="also rank by the entity graph")  # fmt: skip
    parser.add_argument("--rerank", action="store_true", help="rerank with the configured reranker")


def run(stack: Stack, options: argparse.Namespace) -> None:
    stack.require_up()
    query = Query(
        options.text,
        options.top_k,
        Filters(source_types=tuple(options.source_type)),
        options.mode,
        rerank=options.rerank,
        neighbours=options.neighbours,
        half_life_days=options.half_life,
        graph=options.graph,
    )
    with closing(make_services(stack)) as services:
        show(pipeline.search(services, principals_of(stack)(options.user), query), Console())


def show(result: SearchResult, console: Console) -> None:
    """Print each match with its scores and the start of its text."""
    for rank, match in enumerate(result.matches, start=1):
        similarity = "" if match.similarity is None else f", similarity {match.similarity:.3f}"
        date = f", {match.occurred_at:%Y-%m-%d}" if match.occurred_at else ""
        console.print(f"[bold]{rank}. {escape(match.title)}[/] ({match.source_type}{date})", highlight=False)
        console.print(f"   score {match.score:.3f}{similarity}", style="dim", highlight=False)
        console.print(f"   {escape(' '.join(snippet(match.text).split()))}\n", highlight=False)
    scope = "all" if result.exact else "the nearest"
    comparison = f", {scope} {result.considered} compared by meaning" if result.considered else ""
    if result.graph and (context := graph_context(result.graph)):
        console.print(f"{escape(context)}\n", highlight=False)
    order = f"; reranked by {result.reranked_by}" if result.reranked_by else ""
    order = "; not reranked: the reranker failed or is not configured" if result.rerank_failed else order
    console.print(
        f"{len(result.matches)} found in {result.milliseconds} ms{comparison}{order}",
        style="dim",
        highlight=False,
    )
