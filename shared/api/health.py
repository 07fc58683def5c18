"""Whether each service does what it is there for: for anybody, and with details for an org's admins."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from shared.api import probes
from shared.api.probes import Embedding, Look, State
from shared.clients.postgrest import DatabaseStatus
from shared.models.embeddings import DIMENSIONS
from shared.services import Services
from shared.types import Principal

VERSION = "0.1.0"
# The newest of supabase/migrations when this was written; rag.version() tells the database's.
SCHEMA_VERSION = "20261124000000"
# A worker is missing when work has been due for so many of its intervals, and for at least so long.
MISSED_INTERVALS, MISSED_SECONDS = 3, 180.0
# Through these a user's call comes.
OPEN = {DatabaseStatus.SERVES, DatabaseStatus.KEY_REFUSED}


@dataclass(frozen=True, slots=True)
class Report:
    """`details` are an admin's to see, of their own orgs: None for everybody else."""

    version: str
    status: State
    services: dict[str, State]
    at: datetime
    details: dict[str, Any] | None


def check(core: Services, caller: Principal | None, clock: Callable[[], float] = time.monotonic) -> Report:
    """What works, as far as the caller may know. Raises nothing."""
    reach = probes.REACHES.at(core, clock)
    embedding, gateway = probes.EMBEDDINGS.at(core, clock), probes.GATEWAYS.at(core, clock)
    seen = probes.WORKERS.at(core, clock) if reach in OPEN else None
    own = probes.probe(core, caller) if caller and reach in OPEN else None
    own = own if own and own.is_admin else None
    known = seen or own
    services = {
        **_by_reach(reach, is_seen=known is not None),
        **_by_functions_secret(known),
        **_by_look(core, known, reach),
        "embedding_service": embedding.state,
        "gateway": gateway,
    }
    details = _details(core, reach, embedding, own) if own else None
    return Report(VERSION, _status(reach, services, core), services, datetime.now(UTC), details)


def queue_state(core: Services, clock: Callable[[], float] = time.monotonic) -> State:
    """Whether a worker takes the work that is due. Unknown without a key to sign with, or while the database
    is gone."""
    return _queue(core, probes.WORKERS.at(core, clock))


def overdue_seconds(core: Services) -> float:
    """For how long work may be due while a worker runs."""
    return max(MISSED_SECONDS, MISSED_INTERVALS * core.settings.rag_worker_interval_seconds)


def source(key: object, address: str) -> str | None:
    """Where a part runs: the host alone, since a path may say more than strangers need."""
    return "local" if key is None else urlsplit(address).hostname


def _status(reach: DatabaseStatus, services: dict[str, State], core: Services) -> State:
    """Unhealthy is where no user's call comes through. PostgREST may refuse the project's own key and take
    users' tokens: where there is a key to sign with, it is seen whether it does."""
    if reach not in OPEN:
        return State.UNHEALTHY
    if services["database"] is not State.HEALTHY and core.signer:
        return State.UNHEALTHY
    wrong = {State.DEGRADED, State.UNHEALTHY}
    return State.HEALTHY if wrong.isdisjoint(services.values()) else State.DEGRADED


def _by_reach(reach: DatabaseStatus, *, is_seen: bool) -> dict[str, State]:
    database, postgrest = {
        DatabaseStatus.SERVES: (State.HEALTHY, State.HEALTHY),
        DatabaseStatus.NO_SCHEMA: (State.HEALTHY, State.HEALTHY),
        DatabaseStatus.KEY_REFUSED: (State.HEALTHY if is_seen else State.UNKNOWN, State.DEGRADED),
        # Somebody before PostgREST does not know the key.
        DatabaseStatus.TURNED_AWAY: (State.UNKNOWN, State.UNKNOWN),
        DatabaseStatus.NO_DATABASE: (State.UNHEALTHY, State.HEALTHY),
        DatabaseStatus.SILENT: (State.UNHEALTHY, State.UNHEALTHY),
    }[reach]
    return {"database": database, "postgrest": postgrest}


def _by_functions_secret(look: Look | None) -> dict[str, State]:
    """The guarded SQL functions refuse every call without the right secret."""
    return {} if look is None or look.functions_secret == "ok" else {"database": State.UNHEALTHY}  # noqa: S105  # a state


def _by_look(core: Services, look: Look | None, reach: DatabaseStatus) -> dict[str, State]:
    """A database that does not know rag_health is behind, or has nothing of ours at all."""
    if look is None or look.version is None:
        unknown = dict.fromkeys(("migrations", "pgvector", "queue"), State.UNKNOWN)
        missing = reach is DatabaseStatus.NO_SCHEMA or (
            reach is DatabaseStatus.SERVES and core.signer is not None
        )
        return unknown | ({"migrations": State.UNHEALTHY} if missing else {})
    behind = State.UNHEALTHY if look.version < SCHEMA_VERSION else State.DEGRADED
    return {
        "migrations": State.HEALTHY if look.version == SCHEMA_VERSION else behind,
        "pgvector": State.HEALTHY if look.pgvector else State.UNHEALTHY,
        "queue": _queue(core, look),
    }


def _queue(core: Services, look: Look | None) -> State:
    """Unhealthy where work has been due for longer than a worker that runs leaves it."""
    if look is None or look.queues is None:
        return State.UNKNOWN
    oldest = max((queue["oldest_seconds"] or 0 for queue in look.queues.values()), default=0)
    return State.UNHEALTHY if oldest > overdue_seconds(core) else State.HEALTHY


def _details(core: Services, reach: DatabaseStatus, embedding: Embedding, own: Look) -> dict[str, Any]:
    settings = core.settings
    return {
        "database": {
            "reach": reach.value,
            "postgres": own.postgres,
            "pgvector": own.pgvector,
            "migration": own.version,
            "expected": SCHEMA_VERSION,
            "functions_secret": own.functions_secret,
        },
        "embedding": {
            "model": embedding.model,
            "dimensions": embedding.dimensions,
            "stored_dimensions": DIMENSIONS,
            "source": source(settings.openai_api_key, settings.rag_embedding_url),
        },
        "gateway": {
            "model": settings.rag_llm_model if settings.rag_llm_api_key else "extractive",
            "source": source(settings.rag_llm_api_key, settings.rag_llm_url),
        },
        "queue": own.queues,
    }
