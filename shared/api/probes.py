"""Looks at what the functions stand on: PostgREST, the embedder, the gateway, and, through PostgREST, at the
database. Each takes its time at most, raises nothing, and is one for all who ask."""

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from shared.access.token_signer import worker_principal
from shared.clients.http import deadline, http_client
from shared.clients.postgrest import DatabaseStatus
from shared.clients.probe_cache import CachedProbe
from shared.errors import ConfigurationError, RagError
from shared.models.embeddings import DIMENSIONS, SIZED, padded
from shared.services import Services
from shared.types import Principal

log = logging.getLogger("rag")
# What a look may take, and for how long what it saw is told again: strangers ask, and some of it costs.
CHECK_SECONDS = 3.0
FRESH_SECONDS = 30.0
# The way to the database is cheap to look at, and a look that found nothing is tried again as soon.
AGAIN_SECONDS = 3.0


class State(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"
    # Nobody could look: without a key to sign with, or behind what is gone.
    UNKNOWN = "unknown"
    NOT_CONFIGURED = "not_configured"


@dataclass(frozen=True, slots=True)
class Embedding:
    """`dimensions` are the embedder's own; None where it does not embed."""

    state: State
    model: str | None
    dimensions: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """Row of rag_health: about an admin's orgs, or all orgs for the worker; else only `functions_secret`.
    `queues`: by kind `waiting`, `running`, `oldest_seconds`."""

    version: str | None
    pgvector: str | None
    postgres: str | None
    is_admin: bool
    queues: dict[str, dict[str, Any]] | None
    # ok, unset or wrong: whether the guarded SQL functions accept calls of this deployment.
    functions_secret: str = "ok"  # noqa: S105  # a state


def probe(core: Services, caller: Principal | None) -> Look | None:
    """As the caller, or else as the worker, whose role sees what waits; None where nobody can."""
    who = caller or (worker_principal(core.signer) if core.signer else None)
    if who is None:
        return None
    try:
        with deadline(CHECK_SECONDS):
            (row,) = core.database.call(who, "rag_health", {}, again=True)
        return Look(**row)
    except (RagError, TypeError, ValueError):
        return None


def _reach(core: Services) -> DatabaseStatus:
    with deadline(CHECK_SECONDS):
        reach = core.reach()
    if reach is not DatabaseStatus.SERVES:
        # Where nobody can be known for an admin, this is where it is told.
        log.warning("health: the database is not reached as it should be (%s)", reach)
    return reach


def _embedding(core: Services) -> Embedding:
    model = None
    try:
        model = core.embedder.model
        with deadline(CHECK_SECONDS):
            (vector,) = core.embedder.embed(["health"])
        padded(vector)
    except (RagError, ConfigurationError, ValueError):
        return Embedding(State.UNHEALTHY, model, None)
    expected = DIMENSIONS if model.startswith(SIZED) else len(vector)
    state = State.HEALTHY if len(vector) == expected else State.UNHEALTHY
    return Embedding(state, model, len(vector))


def _gateway(core: Services) -> State:
    """An endpoint that lists no models may be one that answers, or another one's address: nobody knows."""
    settings = core.settings
    if settings.rag_llm_api_key is None:
        return State.NOT_CONFIGURED
    headers = {"Authorization": f"Bearer {settings.rag_llm_api_key.get_secret_value()}"}
    try:
        with (
            http_client(CHECK_SECONDS) as client,
            deadline(CHECK_SECONDS),
            client.stream("GET", f"{settings.rag_llm_url}/models", headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return State.UNHEALTHY
    if 200 <= status < 300:
        return State.HEALTHY
    return {404: State.UNKNOWN, 405: State.UNKNOWN, 429: State.DEGRADED}.get(status, State.UNHEALTHY)


def _rarely(_: Any) -> float:
    return FRESH_SECONDS


def _soon(_: Any) -> float:
    return AGAIN_SECONDS


REACHES: CachedProbe[Services, DatabaseStatus] = CachedProbe(_reach, _soon)
EMBEDDINGS: CachedProbe[Services, Embedding] = CachedProbe(_embedding, _rarely)
GATEWAYS: CachedProbe[Services, State] = CachedProbe(_gateway, _rarely)
# The database may have come back.
WORKERS: CachedProbe[Services, Look | None] = CachedProbe(
    lambda core: probe(core, None), lambda seen: FRESH_SECONDS if seen else AGAIN_SECONDS
)
