"""Cached health probes of PostgREST, database, embedder and model gateway.

Each ends by its time-out and raises nothing. All callers share its result."""

import logging
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from shared.access.org_administration import list_orgs
from shared.access.token_signer import worker_principal
from shared.clients.http_client import deadline, http_client
from shared.clients.postgrest import DatabaseStatus
from shared.clients.probe_cache import CachedProbe
from shared.config import EmbeddingForms
from shared.errors import ConfigurationError, EmbeddingFailed, RagError
from shared.models.embedding_roles import NO_FORMS, Role
from shared.models.embeddings import requested_dimensions
from shared.models.model_check import error_of
from shared.models.vectors import padded
from shared.services import Services
from shared.types import Principal

log = logging.getLogger("rag")
# The time-out of a probe, and for how long its result is used: callers need no token, and some probes cost.
CHECK_SECONDS = 3.0
FRESH_SECONDS = 30.0
# For a probe that costs nothing, or that failed.
AGAIN_SECONDS = 3.0
# For a request to the answering model, which costs tokens.
ANSWER_SECONDS = 300.0


class State(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"
    # Not probed, for lack of a signing key or of a service in front of it.
    UNKNOWN = "unknown"
    NOT_CONFIGURED = "not_configured"


@dataclass(frozen=True, slots=True)
class Embedding:
    """`dimensions` are its own, None where it does not embed. `forms`: those in which the model receives a
    question and a document. `names`: the models of the documents that searches find. `error`: the code of
    its error."""

    state: State
    model: str | None
    dimensions: int | None
    forms: EmbeddingForms = NO_FORMS
    names: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """Row of rag_health: about an admin's orgs, or all orgs for the worker; else only `functions_secret`,
    `writes` and `orgs`, the number of the caller's orgs.
    `queues`: by kind `waiting`, `running`, `oldest_seconds`. `keyword_tails`: their documents and chunks."""

    version: str | None
    pgvector: str | None
    postgres: str | None
    is_admin: bool
    queues: dict[str, dict[str, Any]] | None
    # ok, unset or wrong: whether the guarded SQL functions accept calls of this deployment.
    functions_secret: str = "ok"  # noqa: S105  # a state
    orgs: int | None = None
    # ok, off_by_default or standby: whether the database takes writes.
    writes: str = "ok"
    newest_function: dict[str, Any] | None = None
    keyword_tails: dict[str, int] | None = None


def database_health(services: Services, caller: Principal | None) -> DatabaseHealth | None:
    """As the caller, or else as the worker, whose role sees all queues; None after a failure, or where there
    is neither."""
    principal = caller or (worker_principal(services.signer) if services.signer else None)
    if principal is None:
        return None
    try:
        with deadline(CHECK_SECONDS):
            (row,) = services.database.call(principal, "rag_health", {}, idempotent=True)
        return DatabaseHealth(**row)
    except (RagError, TypeError, ValueError):
        return None


def models_of_orgs(services: Services, caller: Principal) -> list[str]:
    """The models by which the documents of the caller's orgs are embedded; none after a failure."""
    try:
        with deadline(CHECK_SECONDS):
            return sorted({org["embedding_model"] for org in list_orgs(services.database, caller)})
    except RagError:
        return []


def calibration_source(services: Services, caller: Principal) -> str | None:
    """As Services.calibration_source; None after a failure."""
    try:
        with deadline(CHECK_SECONDS):
            return services.calibration_source(caller)
    except (RagError, ConfigurationError):
        return None


def _database(services: Services) -> DatabaseStatus:
    with deadline(CHECK_SECONDS):
        status = services.database_status()
    if status is not DatabaseStatus.SERVES:
        # In the log, since details are for admins, who cannot be authenticated now.
        log.warning(
            "health: the database does not serve these functions (%s): see docs/operations.md, Health", status
        )
    return status


def _embedding(services: Services) -> Embedding:
    model = None
    try:
        model = services.embedder.model
        with deadline(CHECK_SECONDS):
            (vector,) = services.embedder.embed(["health"], Role.QUESTION)
        padded(vector)
    except (RagError, ConfigurationError, ValueError) as error:
        code = error.code if isinstance(error, RagError) else EmbeddingFailed.code
        return Embedding(State.UNHEALTHY, model, None, error=code)
    expected = requested_dimensions(model, services.settings.rag_embedding_dimensions) or len(vector)
    state = State.HEALTHY if len(vector) == expected else State.UNHEALTHY
    names = tuple(embedder.model for embedder in services.embedders)
    return Embedding(state, model, len(vector), services.embedder.forms, names)


def _gateway(services: Services) -> State:
    """Unknown for an endpoint that lists no models, which may or may not answer chats."""
    settings = services.settings
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


def log_refusals(services: Services) -> None:
    """Log, as a server starts, which of its remote models refuse requests. Raises nothing."""
    if services.embedder.remote and (error := EMBEDDINGS.at(services, time.monotonic).error):
        log.warning(
            "the embedding model did not embed a word as the server started (%s): if searches and ingestion "
            "fail, check RAG_EMBEDDING_URL, RAG_EMBEDDING_MODEL and OPENAI_API_KEY", error,
        )  # fmt: skip
    if GATEWAYS.at(services, time.monotonic) is State.UNHEALTHY:
        log.warning(
            "the gateway of the answering model refuses requests or does not answer: check RAG_LLM_URL and "
            "RAG_LLM_API_KEY"
        )


def _answer(services: Services) -> str | None:
    """The code of the error of a request to the answering model; None for an answer, or without a model."""
    gateway = services.chat_gateway
    error = error_of(gateway, CHECK_SECONDS) if gateway else None
    return error.code if error else None


DATABASE: CachedProbe[Services, DatabaseStatus] = CachedProbe(_database, lambda _: AGAIN_SECONDS)
EMBEDDINGS: CachedProbe[Services, Embedding] = CachedProbe(_embedding, lambda _: FRESH_SECONDS)
GATEWAYS: CachedProbe[Services, State] = CachedProbe(_gateway, lambda _: FRESH_SECONDS)
ANSWERS: CachedProbe[Services, str | None] = CachedProbe(
    _answer, lambda error: FRESH_SECONDS if error else ANSWER_SECONDS
)
WORKERS: CachedProbe[Services, DatabaseHealth | None] = CachedProbe(
    lambda services: database_health(services, None),
    lambda health: FRESH_SECONDS if health else AGAIN_SECONDS,
)
