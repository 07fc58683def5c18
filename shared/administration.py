"""What operators and an org's admins look at: whether each service does what it is there for, and how much an
org has."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from threading import Lock
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx

from shared.embed import DIMENSIONS, SIZED, padded
from shared.errors import ConfigurationError, RagError
from shared.patience import patient_client, within
from shared.pipeline import Pipeline
from shared.postgrest import REFUSED
from shared.sign import the_worker
from shared.types import Principal

VERSION = "0.1.0"
# The newest of supabase/migrations when this was written; rag.version() tells the database's.
SCHEMA_VERSION = "20261127000000"
# What a check may take, and for how long what it found is told again: strangers ask, and some of it costs.
CHECK_SECONDS = 3.0
FRESH_SECONDS = 30.0
# A look that found nothing is tried again sooner.
AGAIN_SECONDS = 3.0
# A document that is due for longer waits for a worker that does not come.
LATE_SECONDS = 900.0


class State(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"
    # Nobody could look: without a key to sign with, or behind what is gone.
    UNKNOWN = "unknown"
    NOT_CONFIGURED = "not_configured"


@dataclass(frozen=True, slots=True)
class Look:
    """What rag_health tells: of an admin's orgs, or, to the worker, of all; nothing to everybody else."""

    version: str | None
    pgvector: str | None
    postgres: str | None
    is_admin: bool
    waiting: int | None
    running: int | None
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class Costly:
    """What is looked at now and then, and when that was. `dimensions` are the embedder's own; None where it
    does not embed."""

    embedder: State
    model: str | None
    dimensions: int | None
    gateway: State
    look: Look | None
    at: float
    looked_at: float


@dataclass(frozen=True, slots=True)
class Report:
    """`details` are an admin's to see, of their own orgs: None for everybody else."""

    version: str
    status: State
    services: dict[str, State]
    at: datetime
    details: dict[str, Any] | None


_lock = Lock()
_costly: WeakKeyDictionary[Pipeline, Costly] = WeakKeyDictionary()


def check(core: Pipeline, caller: Principal | None, clock: Callable[[], float] = time.monotonic) -> Report:
    """What works, as far as the caller may know. Raises nothing."""
    with within(CHECK_SECONDS):
        code = core.database.refusal()
    answers = code == REFUSED
    costly = _seen(core, clock, looks=answers)
    own = _look(core, caller) if caller and answers else None
    own = own if own and own.is_admin else None
    services = {
        "database": State.HEALTHY if answers else State.UNHEALTHY,
        "postgrest": State.UNHEALTHY if code is None else State.HEALTHY,
        **_by_look((costly.look or own) if answers else None, failed=answers and core.signer is not None),
        "embedding_service": costly.embedder,
        "gateway": costly.gateway,
    }
    status = State.HEALTHY
    if not answers:
        status = State.UNHEALTHY
    elif not {State.DEGRADED, State.UNHEALTHY}.isdisjoint(services.values()):
        status = State.DEGRADED
    details = _details(core, costly, own) if own and own.is_admin else None
    return Report(VERSION, status, services, datetime.now(UTC), details)


def stats(core: Pipeline, caller: Principal) -> dict[str, Any]:
    """How much there is in the orgs that the caller administers. Raises Forbidden where that is none."""
    (row,) = core.database.call(caller, "rag_stats", {}, again=True)
    return dict(row)


def source(key: object, address: str) -> str | None:
    """Where a part runs: the host alone, since a path may say more than strangers need."""
    return "local" if key is None else urlsplit(address).hostname


def _details(core: Pipeline, costly: Costly, own: Look) -> dict[str, Any]:
    settings = core.settings
    return {
        "database": {
            "postgres": own.postgres,
            "pgvector": own.pgvector,
            "migration": own.version,
            "expected": SCHEMA_VERSION,
        },
        "embedding": {
            "model": costly.model,
            "dimensions": costly.dimensions,
            "stored_dimensions": DIMENSIONS,
            "source": source(settings.openai_api_key, settings.rag_embedding_url),
        },
        "gateway": {
            "model": settings.rag_gateway_model if settings.lovable_api_key else "extractive",
            "source": source(settings.lovable_api_key, settings.rag_gateway_url),
        },
        "queue": {"waiting": own.waiting, "running": own.running, "oldest_seconds": own.oldest_seconds},
    }


def _seen(core: Pipeline, clock: Callable[[], float], *, looks: bool) -> Costly:
    # One looks. The others are told what was seen before, or, of a process that has just begun, wait.
    if not _lock.acquire(blocking=_costly.get(core) is None):
        return _costly[core]
    try:
        seen, now = _costly.get(core), clock()
        if seen is None or not 0 <= now - seen.at < FRESH_SECONDS:
            seen = replace(_looked_at(core, looks=looks), at=now, looked_at=now)
        elif seen.look is None and looks and not 0 <= now - seen.looked_at < AGAIN_SECONDS:
            # The database may have come back.
            seen = replace(seen, look=_look(core, None), looked_at=now)
        _costly[core] = seen
        return seen
    finally:
        _lock.release()


def _looked_at(core: Pipeline, *, looks: bool) -> Costly:
    state, model, dimensions = _embeds(core)
    return Costly(state, model, dimensions, _gateway(core), _look(core, None) if looks else None, 0, 0)


def _embeds(core: Pipeline) -> tuple[State, str | None, int | None]:
    model = None
    try:
        model = core.embedder.model
        with within(CHECK_SECONDS):
            (vector,) = core.embedder.embed(["health"])
        padded(vector)
    except (RagError, ConfigurationError, ValueError):
        return State.UNHEALTHY, model, None
    expected = DIMENSIONS if model.startswith(SIZED) else len(vector)
    return State.HEALTHY if len(vector) == expected else State.UNHEALTHY, model, len(vector)


def _gateway(core: Pipeline) -> State:
    """An endpoint that lists no models may be one that answers, or another one's address: nobody knows."""
    settings = core.settings
    if settings.lovable_api_key is None:
        return State.NOT_CONFIGURED
    headers = {"Authorization": f"Bearer {settings.lovable_api_key.get_secret_value()}"}
    try:
        with (
            patient_client(CHECK_SECONDS) as client,
            within(CHECK_SECONDS),
            client.stream("GET", f"{settings.rag_gateway_url}/models", headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return State.UNHEALTHY
    if 200 <= status < 300:
        return State.HEALTHY
    return {404: State.UNKNOWN, 405: State.UNKNOWN, 429: State.DEGRADED}.get(status, State.UNHEALTHY)


def _look(core: Pipeline, caller: Principal | None) -> Look | None:
    """As the caller, or else as the worker, whose role sees what waits; None where nobody can."""
    who = caller or (the_worker(core.signer) if core.signer else None)
    if who is None:
        return None
    try:
        with within(CHECK_SECONDS):
            (row,) = core.database.call(who, "rag_health", {}, again=True)
        return Look(**row)
    except (RagError, TypeError, ValueError):
        return None


def _by_look(look: Look | None, *, failed: bool) -> dict[str, State]:
    """`failed`: somebody could have looked. A database that does not know rag_health is behind."""
    if look is None or look.version is None:
        unknown = dict.fromkeys(("migrations", "pgvector", "queue"), State.UNKNOWN)
        return unknown | ({"migrations": State.UNHEALTHY} if failed else {})
    behind = State.UNHEALTHY if look.version < SCHEMA_VERSION else State.DEGRADED
    late = look.oldest_seconds is not None and look.oldest_seconds > LATE_SECONDS
    return {
        "migrations": State.HEALTHY if look.version == SCHEMA_VERSION else behind,
        "pgvector": State.HEALTHY if look.pgvector else State.UNHEALTHY,
        "queue": State.DEGRADED if late else State.HEALTHY,
    }
