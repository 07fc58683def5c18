"""Server for bench/index_api.py: the index functions with an embedder and a model that answer at once. Calls
PostgREST directly."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from starlette.applications import Starlette

from functions.server import Functions
from shared.api.dependencies import get_services
from shared.generation.generators import Generation, GenerationRequest
from shared.models.embedding_roles import NO_FORMS, Roles
from shared.types import GeneratedText

DIMENSIONS = 384


class HashEmbedder:
    """An embedder that takes no time: of each word a direction, of a text their sum. So a text is near what
    it shares words with, as it is with a real one."""

    model, forms, remote, is_fast, window, passage_tokens = "hashed", NO_FORMS, False, True, 8191, 512

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray[Any, Any]] = {}

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        return [np.sum([self._direction(word) for word in text.split()], axis=0).tolist() for text in texts]

    def _direction(self, word: str) -> np.ndarray[Any, Any]:
        if word not in self._known:
            draw = np.random.default_rng(list(word.encode()))
            self._known[word] = draw.normal(size=DIMENSIONS)
        return self._known[word]

    def count_tokens(self, text: str) -> int:
        return len(text) // 4


class InstantModel:
    """A model that answers at once."""

    model = "instant"

    async def write(self, request: GenerationRequest) -> Generation:
        yield GeneratedText("An answer.", self.model)


functions = Functions(["indexes", "index-query"])


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    services = get_services()
    services.embedder = HashEmbedder()
    vars(services)["extractive"] = InstantModel()
    services.database._address = os.environ["BENCH_POSTGREST"]
    yield
    services.close()


app = Starlette(lifespan=_lifespan)
app.router.default = functions
