"""The functions with constants of a measurement, for a server of its own."""

import os

from starlette.routing import Router

from functions import server
from shared import pipeline
from shared.text import history_trimming


def create() -> Router:
    """BENCH_HISTORY_TOKENS and BENCH_CACHE_SECONDS replace constants of the functions."""
    if tokens := os.environ.get("BENCH_HISTORY_TOKENS"):
        history_trimming.HISTORY_TOKENS = int(tokens)
    if seconds := os.environ.get("BENCH_CACHE_SECONDS"):
        vars(pipeline)["CACHE_SECONDS"] = int(seconds)
    return server.create()
