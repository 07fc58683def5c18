"""Health of a deployment and its services, with details for admins."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from shared.api import health_probes as probes
from shared.api.health_probes import DatabaseHealth, Embedding, State
from shared.clients.postgrest import DatabaseStatus
from shared.config import Settings
from shared.errors import GenerationBusy, GenerationTimedOut
from shared.models.reranking import reranker_details
from shared.services import Services
from shared.types import Principal

VERSION = "0.1.0"
# The newest of supabase/migrations; rag.version() returns the database's.
SCHEMA_VERSION = "20261124000000"
# The queue is unhealthy when work has been due for this long.
MISSED_SECONDS = 180.0
# With these, calls of users reach the database.
REACHABLE = {DatabaseStatus.SERVES, DatabaseStatus.OLD_CACHE, DatabaseStatus.KEY_REFUSED}
# Public: while the database fails, no admin can be authenticated. The sentences of _problem are for admins.
PROBLEMS = {
    DatabaseStatus.KEY_REFUSED: "PostgREST refuses SUPABASE_PUBLISHABLE_KEY, or without it "
    "SUPABASE_ANON_KEY: set it to the project's key.",
    DatabaseStatus.GATEWAY_REFUSED: "The project refuses SUPABASE_PUBLISHABLE_KEY, or without it "
    "SUPABASE_ANON_KEY: set it to the project's key.",
    DatabaseStatus.NO_SCHEMA: "PostgREST does not know the functions of this schema: apply the migrations; "
    "if they are applied, reload its schema cache (notify pgrst, 'reload schema').",
    DatabaseStatus.OLD_CACHE: "PostgREST does not know the newest functions of this schema: reload its "
    "schema cache (notify pgrst, 'reload schema').",
    DatabaseStatus.NOT_EXPOSED: "PostgREST does not serve the schema public: add it to the exposed schemas.",
    DatabaseStatus.NO_WRITES: "The database is a standby and takes no writes: promote it, or set "
    "SUPABASE_URL to the project of the primary.",
    DatabaseStatus.NO_DATABASE: "PostgREST does not reach its database: start it, or check PostgREST's "
    "connection.",
    DatabaseStatus.NO_RESPONSE: "The database does not answer: start PostgREST, or check SUPABASE_URL.",
}


@dataclass(frozen=True, slots=True)
class Report:
    """`problem`: of the database, with the way out. `orgs` is the number of the caller's orgs, None without a
    caller or without the database. `details` are about an admin's own orgs, None for all other callers."""

    version: str
    status: State
    services: dict[str, State]
    problem: str | None
    at: datetime
    orgs: int | None
    details: dict[str, Any] | None


def check(
    services: Services, caller: Principal | None, clock: Callable[[], float] = time.monotonic
) -> Report:
    """The state of each service, with details for admins. Raises nothing."""
    status = probes.DATABASE.at(services, clock)
    embedding, gateway = probes.EMBEDDINGS.at(services, clock), probes.GATEWAYS.at(services, clock)
    of_worker = probes.WORKERS.at(services, clock) if status in REACHABLE else None
    of_caller = probes.database_health(services, caller) if caller and status in REACHABLE else None
    of_admin = of_caller if of_caller and of_caller.is_admin else None
    health = of_worker or of_admin
    own_health = health or of_caller
    states = {
        **_by_status(status, has_health=health is not None),
        **_by_health(services, health, status),
        "embedding_service": embedding.state,
        "gateway": gateway,
    }
    if own_health and own_health.writes != "ok":
        states["database"] = State.DEGRADED
    # The guarded SQL functions refuse every call without the right secret.
    if health and health.functions_secret != "ok":  # noqa: S105  # a state
        states["database"] = State.UNHEALTHY
    models = probes.models_of_orgs(services, caller) if caller and of_admin else []
    if embedding.state is State.HEALTHY and not set(models) <= set(embedding.names):
        # Searches find nothing of the documents of another model.
        states["embedding_service"] = State.DEGRADED
    calibration = probes.calibration_source(services, caller) if caller and of_admin else None
    if embedding.state is State.HEALTHY and calibration == "none":
        states["embedding_service"] = State.DEGRADED
    answer_error = probes.ANSWERS.at(services, clock) if of_admin else None
    # Many models need longer than a probe.
    if answer_error and answer_error != GenerationTimedOut.code:
        is_busy = answer_error == GenerationBusy.code
        states["gateway"] = State.DEGRADED if is_busy else State.UNHEALTHY
    details = None
    if of_admin:
        details = _details(services, status, embedding, of_admin, models, calibration, answer_error)
    orgs = of_caller.orgs if of_caller else None
    problem, at = PROBLEMS.get(status) or _problem(of_admin), datetime.now(UTC)
    return Report(VERSION, _overall(status, states, services), states, problem, at, orgs, details)


def deployment(services: Services) -> tuple[bool, dict[str, Any]]:
    """Whether the database is reachable, and the body of GET /health, which lists the deployment's parts."""
    status, settings = probes.DATABASE.at(services, time.monotonic), services.settings
    reachable = status.is_serving
    of_worker = probes.WORKERS.at(services, time.monotonic) if reachable else None
    return reachable, {
        # KAITO's values; its clients expect `detail` too.
        "status": "Healthy" if reachable else "Unhealthy",
        "detail": PROBLEMS.get(status),
        "database": "reachable" if reachable else "unreachable",
        "embedder": _embedder(settings, services.embedder.model),
        "generator": _generator(settings),
        "reranker": {**reranker_details(settings), "enabled": settings.rag_rerank_enabled},
        # Deployed by itself, this function has no signing key. Then /api/v1/health reports the queue, and
        # /api/keys/health the keys.
        "queue": _queue(services, of_worker),
        "api_keys": services.api_key_authenticator.algorithm
        if services.api_key_authenticator
        else "not in this process",
    }


def _source(key: object, address: str) -> str | None:
    """The host alone: a path may contain details that are not for the public."""
    return "local" if key is None else urlsplit(address).hostname


def _embedder(settings: Settings, model: str | None) -> dict[str, Any]:
    source = _source(settings.openai_api_key, settings.rag_embedding_url)
    return {"model": model, "source": source}


def _generator(settings: Settings) -> dict[str, Any]:
    model = settings.rag_llm_model if settings.rag_llm_api_key else "extractive"
    return {"model": model, "source": _source(settings.rag_llm_api_key, settings.rag_llm_url)}


def _overall(status: DatabaseStatus, states: dict[str, State], services: Services) -> State:
    """Unhealthy where calls of users do not reach the database. PostgREST may refuse the project's own key
    and accept users' tokens: with a signing key, a call as the worker shows whether it does."""
    if status not in REACHABLE:
        return State.UNHEALTHY
    if states["database"] not in (State.HEALTHY, State.DEGRADED) and services.signer:
        return State.UNHEALTHY
    faults = {State.DEGRADED, State.UNHEALTHY}
    return State.HEALTHY if faults.isdisjoint(states.values()) else State.DEGRADED


def _by_status(status: DatabaseStatus, *, has_health: bool) -> dict[str, State]:
    database, postgrest = {
        DatabaseStatus.SERVES: (State.HEALTHY, State.HEALTHY),
        DatabaseStatus.OLD_CACHE: (State.HEALTHY, State.DEGRADED),
        DatabaseStatus.NO_SCHEMA: (State.HEALTHY, State.HEALTHY),
        DatabaseStatus.NOT_EXPOSED: (State.UNKNOWN, State.UNHEALTHY),
        DatabaseStatus.NO_WRITES: (State.UNHEALTHY, State.HEALTHY),
        DatabaseStatus.KEY_REFUSED: (State.HEALTHY if has_health else State.UNKNOWN, State.DEGRADED),
        # A gateway in front of PostgREST does not know the key.
        DatabaseStatus.GATEWAY_REFUSED: (State.UNKNOWN, State.UNKNOWN),
        DatabaseStatus.NO_DATABASE: (State.UNHEALTHY, State.HEALTHY),
        DatabaseStatus.NO_RESPONSE: (State.UNHEALTHY, State.UNHEALTHY),
    }[status]
    return {"database": database, "postgrest": postgrest}


def _problem(health: DatabaseHealth | None) -> str | None:
    if health and health.functions_secret != "ok":  # noqa: S105  # a state
        return "The database does not accept RAG_FUNCTIONS_SECRET: set it as docs/install.md says in step 2."
    if health and health.writes != "ok":
        return (
            "Transactions of the database are read-only by default. Supabase sets this for a nearly full "
            "disk: make space, then set default_transaction_read_only = off."
        )
    if health and health.version and health.version < SCHEMA_VERSION:
        return (
            f"The database is at migration {health.version}, and these functions need {SCHEMA_VERSION}: "
            "apply the migrations."
        )
    if health and health.version and health.version > SCHEMA_VERSION:
        return (
            f"The database is at migration {health.version}, and these functions are of {SCHEMA_VERSION}: "
            "deploy the functions of the database's version. Until then calls succeed."
        )
    return None


def _by_health(services: Services, health: DatabaseHealth | None, status: DatabaseStatus) -> dict[str, State]:
    """A database without rag_health has an older schema, or none of ours."""
    if health is None or health.version is None:
        unknown = dict.fromkeys(("migrations", "pgvector", "queue"), State.UNKNOWN)
        missing = status is DatabaseStatus.NO_SCHEMA or (
            status is DatabaseStatus.SERVES and services.signer is not None
        )
        return unknown | ({"migrations": State.UNHEALTHY} if missing else {})
    behind = State.UNHEALTHY if health.version < SCHEMA_VERSION else State.DEGRADED
    return {
        "migrations": State.HEALTHY if health.version == SCHEMA_VERSION else behind,
        "pgvector": State.HEALTHY if health.pgvector else State.UNHEALTHY,
        "queue": _queue(services, health),
    }


def _queue(services: Services, health: DatabaseHealth | None) -> State:
    """Unhealthy where work has been due for longer than a running worker leaves it. Unknown without a signing
    key, or while the database does not answer."""
    if health is None or health.queues is None:
        return State.UNKNOWN
    oldest = max((queue["oldest_seconds"] or 0 for queue in health.queues.values()), default=0)
    return State.UNHEALTHY if oldest > MISSED_SECONDS else State.HEALTHY


def _details(
    services: Services,
    status: DatabaseStatus,
    embedding: Embedding,
    health: DatabaseHealth,
    models: list[str],
    calibration: str | None,
    answer_error: str | None,
) -> dict[str, Any]:
    return {
        "database": {
            "reach": status.value,
            "postgres": health.postgres,
            "pgvector": health.pgvector,
            "migration": health.version,
            "expected": SCHEMA_VERSION,
            "functions_secret": health.functions_secret,
        },
        "embedding": {
            **_embedder(services.settings, embedding.model),
            "dimensions": embedding.dimensions,
            "roles": embedding.forms.model_dump(),
            "models_of_orgs": models,
            "calibration": calibration,
            "error": embedding.error,
        },
        "gateway": {**_generator(services.settings), "error": answer_error},
        "queue": health.queues,
        "keyword_tails": health.keyword_tails,
    }
