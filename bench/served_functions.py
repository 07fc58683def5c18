"""The functions without a cache of embeddings, for a server of its own."""

from starlette.routing import Router

from functions import server
from shared import pipeline


def create() -> Router:
    vars(pipeline)["CACHE_SECONDS"] = 0
    return server.create()
