"""The first two steps, authenticate and limit, as what a handler's signature asks for.

A handler of the rag pair takes a `Caller`, one of any other function an `Annotated[Principal,
with_scope(...)]`. Whoever arrives in a handler is somebody, is within the limits, and may do this.
"""

import hmac
import math
from collections.abc import AsyncIterator, Callable
from functools import cache
from time import monotonic
from typing import Annotated, Any

from anyio import from_thread
from fastapi import Depends, Header, Request
from limits import parse
from pydantic import SecretStr

from shared.access.api_key_authenticator import ApiKeyAuthenticator
from shared.access.api_keys import is_key
from shared.access.download_links import principal_of, public_url
from shared.access.jwt_verifier import bearer
from shared.access.rate_limit import RateLimitCheck, check_rate_limit, check_text_limit
from shared.config import read_settings
from shared.errors import (
    ApiKeysOff,
    ClientLeft,
    DatabaseFailed,
    DatabaseTimedOut,
    Forbidden,
    KeysUnavailable,
    NotFound,
    Unauthorized,
)
from shared.ingestion.ingest import Guard
from shared.observability import opentelemetry
from shared.observability.tracing import step
from shared.services import Services
from shared.text.ids import id_of
from shared.types import Principal, Scope

# The shortest time between two polls of an ingestion's client, and the longest wait for other ingestions of
# the user.
POLL_CLIENT_SECONDS = 0.25
INGESTION_WAIT_SECONDS = 30.0


@cache
def get_services() -> Services:
    """Made once, at start-up, from the environment. Raises ConfigurationError."""
    settings = read_settings()
    opentelemetry.start(settings.otel_exporter_otlp_endpoint)
    return Services(settings)


async def services_dependency() -> Services:
    """What handlers ask for as `Core`. Async, since FastAPI would send it through a thread otherwise."""
    return get_services()


Core = Annotated[Services, Depends(services_dependency)]
Authorization = Annotated[str | None, Header()]


def _of_the_rag_pair(request: Request, core: Core, authorization: Authorization = None) -> Principal:
    with step("authenticate"):
        caller = core.verifier.principal(authorization)
    _limit(request, core, caller, "rag", core.settings.rag_rate_limit_rag)
    return caller


# A signed-in user within the limit: the first parameter of every handler of the rag pair.
# Raises Unauthorized, KeysUnavailable, RateLimited.
Caller = Annotated[Principal, Depends(_of_the_rag_pair)]


async def in_authorization(authorization: Authorization = None) -> str | None:
    """The credential where all APIs take it."""
    return authorization


async def in_either_header(
    authorization: Authorization = None, x_api_key: Annotated[str | None, Header()] = None
) -> str | None:
    """The credential where gateways of agents put it: there, or in a header of its own."""
    return authorization or (f"Bearer {x_api_key}" if x_api_key else None)


def with_scope(
    *scopes: Scope,
    credential: Any = in_authorization,
    anonymous: bool = False,
    besides: Scope | None = None,
) -> Any:
    """For `Annotated[Principal, with_scope(...)]`: a user, or an API key with one of the scopes, and with
    `besides`, within the limit of all functions but the rag pair; with `anonymous`, and where the settings
    allow it, whoever asks without a credential too. Raises Forbidden too."""

    def allowed(
        request: Request, core: Core, credential: Annotated[str | None, Depends(credential)]
    ) -> Principal:
        with step("authenticate"):
            caller = _anonymous(core, request, credential) if anonymous else None
            caller = caller or _key_or_user(core, credential)
        _limit(request, core, caller, "api", core.settings.rag_rate_limit_api)
        require_scope(caller, *scopes)
        if besides:
            require_scope(caller, besides)
        return caller

    return Depends(allowed)


def require_scope(caller: Principal, *scopes: Scope) -> None:
    """Raises Forbidden without one of them."""
    if not caller.may(*scopes):
        raise Forbidden(f"The API key lacks the scope {' or '.join(scopes)}.", code="missing_scope")


def _anonymous(core: Services, request: Request, credential: str | None) -> Principal | None:
    """Whom the settings make of a request without a credential. Not of a page's, wherever its reader found
    it, unless its origin is listed: who is in a private network may open pages that are not of it."""
    origin = request.headers.get("origin")
    if credential is not None or (origin is not None and origin not in core.settings.cors_origins):
        return None
    return core.anonymous_principal()


def refreshing_caller(credential: Any) -> Any:
    """For requests that may take minutes, beside the principal: `Annotated[PrincipalSource,
    refreshing_caller(...)]` returns the caller with a token that is still valid; that of an API key lasts a
    minute. When called it raises Unauthorized after a user's token has expired, or the key was revoked."""

    def renewed(
        request: Request, core: Core, credential: Annotated[str | None, Depends(credential)]
    ) -> Callable[[], Principal]:
        return lambda: _anonymous(core, request, credential) or _key_or_user(core, credential)

    return Depends(renewed)


# With the credential where all APIs take it. (Who may not be anonymous was refused before.)
FreshCaller = Annotated[Callable[[], Principal], refreshing_caller(in_authorization)]


def guard_from(credential: Any, writer: Any) -> Any:
    """For a handler, not async, that stores texts before it answers: `Annotated[Guard, guard_from(...)]`.
    `writer` is a dependency that `with_scope` made. Raises IngestionBusy."""

    async def guard(
        request: Request,
        core: Core,
        renewed: Annotated[Callable[[], Principal], refreshing_caller(credential)],
        principal: Annotated[Principal, writer],
    ) -> AsyncIterator[Guard]:
        def admit(text_bytes: int) -> None:
            function, limit = request.app.state.function, core.settings.rag_ingest_bytes_per_minute
            check_text_limit(core.database, renewed, function, text_bytes, limit)

        async def require_client() -> None:
            # On Lambda no disconnection is ever reported.
            if await request.is_disconnected():
                raise ClientLeft

        asked_at = -math.inf

        def poll_client() -> None:
            nonlocal asked_at
            if monotonic() >= asked_at + POLL_CLIENT_SECONDS:
                from_thread.run(require_client)
                asked_at = monotonic()

        async with core.ingestions.slot(principal.user_id, INGESTION_WAIT_SECONDS, require_client):
            yield Guard(admit, lambda: from_thread.run(require_client), poll_client)

    # The slot ends with the handler, not with a client that reads the response slowly.
    return Depends(guard, scope="function")


def _visitor(core: Core, authorization: Authorization = None) -> Principal | None:
    if authorization is None:
        return None
    try:
        with step("authenticate"):
            return _key_or_user(core, authorization)
    except (DatabaseFailed, DatabaseTimedOut, KeysUnavailable, ApiKeysOff):
        return None


# Whoever asks, for what anybody may: None without a credential, and while nobody can tell whose it is.
# Nothing is counted. Raises Unauthorized for one that is not good.
OptionalCaller = Annotated[Principal | None, Depends(_visitor)]


def _by_link(request: Request, core: Core, document_id: str, token: str) -> Principal:
    if core.signer is None:
        raise NotFound
    with step("authenticate"):
        caller = principal_of(core.signer, token, id_of(document_id, "document"))
    _limit(request, core, caller, "api", core.settings.rag_rate_limit_api)
    return caller


# The holder of a link to the original of the path's document (download_links.py). Raises Unauthorized and
# RateLimited.
LinkCaller = Annotated[Principal, Depends(_by_link)]


async def _public_url(request: Request, core: Core) -> str:
    # The event of API Gateway or of a function URL, which Mangum passes on.
    context = request.scope.get("aws.event", {}).get("requestContext", {})
    host = request.headers.get("host", "")
    return public_url(core.settings, request.url.scheme, host, context.get("domainName"))


# The address that links begin with. Raises PublicUrlUnset.
PublicUrl = Annotated[str, Depends(_public_url)]


def _operator(core: Core, authorization: Authorization = None) -> None:
    _require(core.settings.rag_metrics_token, authorization, "The token of the metrics is required.")


def _schedule(core: Core, authorization: Authorization = None) -> None:
    _require(core.settings.rag_worker_token, authorization, "The token of the worker is required.")


def _require(expected: SecretStr | None, authorization: str | None, message: str) -> None:
    if expected is None:
        raise NotFound
    bearer = f"Bearer {expected.get_secret_value()}"
    if not hmac.compare_digest((authorization or "").encode(), bearer.encode()):
        raise Unauthorized(message)


# For a route of the operator's: raises NotFound where no RAG_METRICS_TOKEN is set, Unauthorized without it.
operators_only = Depends(_operator)
# For the worker's, which a schedule calls: the same with RAG_WORKER_TOKEN.
worker_only = Depends(_schedule)


def require_keys(core: Core) -> ApiKeyAuthenticator:
    """Raises ApiKeysOff where there is nothing to sign with."""
    if core.api_key_authenticator is None:
        raise ApiKeysOff
    return core.api_key_authenticator


def _key_or_user(core: Services, authorization: str | None) -> Principal:
    credential = bearer(authorization)
    if is_key(credential):
        return require_keys(core).principal(credential)
    return core.verifier.principal(authorization)


def _limit(request: Request, core: Services, caller: Principal, bucket: str, rate: str) -> None:
    function: str = request.app.state.function
    with step("limit"):
        check = RateLimitCheck(core.database, caller, function, bucket, parse(rate))
        check_rate_limit(request, check, core.refusals)
