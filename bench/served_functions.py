"""The functions without a cache of embeddings, for a server of its own."""

from starlette.routing import Router

from functions import server
from shared.models import query_embedding_cache


def create() -> Router:
    vars(query_embedding_cache)["CACHE_SECONDS"] = 0
    return server.create()
