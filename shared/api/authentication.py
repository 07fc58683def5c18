"""FastAPI dependencies of authentication: callers, their scopes and rate limits, links, the operator.

Handlers of the rag pair take a `Caller`, those of other functions an `Annotated[Principal, with_scope(...)]`.
A handler runs only for an authenticated caller with the scope who is within the limits.
"""

import hmac
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security import APIKeyHeader
from fastapi.security.base import SecurityBase
from limits import parse
from pydantic import SecretStr

from shared.access.anonymous_index_caller import anonymous_principal
from shared.access.api_key_authenticator import ApiKeyAuthenticator
from shared.access.api_keys import is_key
from shared.access.download_links import principal_of
from shared.access.jwt_verifier import ELEVATED_KEY, bearer, is_token, project_key_refusal
from shared.access.rate_limit import RateLimitCheck, check_rate_limit
from shared.access.token_signer import principal_at_end
from shared.access.token_usage import TokenUsage
from shared.api.dependencies import Container
from shared.errors import (
    ApiKeysOff,
    DatabaseFailed,
    DatabaseTimedOut,
    Forbidden,
    KeysUnavailable,
    NotFound,
    RateLimited,
    Unauthorized,
)
from shared.services import Services
from shared.text.prefixed_ids import id_of
from shared.tracing import step
from shared.types import Principal, Scope


class _Bearer(SecurityBase):
    """The header Authorization as it was sent: `bearer` checks it, with the errors of the contracts. Raises
    Unauthorized for a secret key of the project in another header, where clients of Supabase send keys."""

    model = HTTPBearer(bearerFormat="JWT or API key", description="A user's token, or an API key.")
    scheme_name = "bearer"

    async def __call__(self, request: Request) -> str | None:
        for name in ("apikey", "x-api-key"):
            if project_key_refusal(request.headers.get(name, "")) == ELEVATED_KEY:
                raise Unauthorized(ELEVATED_KEY)
        return request.headers.get("Authorization")


Authorization = Annotated[str | None, Depends(_Bearer())]
_api_key = APIKeyHeader(name="X-Api-Key", scheme_name="api_key", auto_error=False)


def _rag_caller(request: Request, services: Container, authorization: Authorization) -> Principal:
    caller = _user(services, authorization)
    _limit(request, services, caller, "rag", services.settings.rag_rate_limit_rag)
    return caller


# A user: for handlers of the rag pair. Raises Unauthorized, KeysUnavailable, RateLimited, NoOrg.
Caller = Annotated[Principal, Depends(_rag_caller)]


def _invited_caller(request: Request, services: Container, authorization: Authorization) -> Principal:
    caller = _user(services, authorization)
    rate = services.settings.rag_rate_limit_api
    _limit(request, services, caller, "api", rate, needs_org=False)
    return caller


# A user, also one without an org. Raises Unauthorized, KeysUnavailable, RateLimited.
InvitedCaller = Annotated[Principal, Depends(_invited_caller)]


async def in_authorization(authorization: Authorization) -> str | None:
    return authorization


async def in_either_header(
    authorization: Authorization, x_api_key: Annotated[str | None, Depends(_api_key)]
) -> str | None:
    """The credential in Authorization or X-Api-Key, as gateways of agents send it."""
    return authorization or (f"Bearer {x_api_key}" if x_api_key else None)


async def in_bearer_alone(authorization: Authorization) -> str | None:
    """The header Authorization, for a contract with an error of its own for another scheme and none. Raises
    Unauthorized."""
    if not bearer(authorization):
        raise Unauthorized(
            "The header Authorization must be: Bearer <API key>.", code="malformed_authorization"
        )
    return authorization


def with_scope(
    *scopes: Scope, credential: Any = in_authorization, anonymous: bool = False, besides: Scope | None = None
) -> Any:
    """For `Annotated[Principal, with_scope(...)]`: a user, or an API key with one of the scopes and with
    `besides`, within the limit of all functions but the rag pair. `anonymous` also allows requests without a
    credential, if the settings do. Raises Forbidden and the errors of `Caller`."""

    def allowed(
        request: Request, services: Container, credential: Annotated[str | None, Depends(credential)]
    ) -> Principal:
        with step("authenticate"):
            caller = _anonymous(services, request, credential) if anonymous else None
            caller = caller or _key_or_user(services, credential)
        _limit(request, services, caller, "api", services.settings.rag_rate_limit_api)
        require_scope(caller, *scopes)
        if besides:
            require_scope(caller, besides)
        return caller

    return Depends(allowed)


def require_scope(caller: Principal, *scopes: Scope) -> None:
    """Raises Forbidden without one of the scopes."""
    if not caller.may(*scopes):
        raise Forbidden(
            f"The API key lacks the scope {' or '.join(scopes)}. Use a key that has it.", code="missing_scope"
        )


def _anonymous(services: Services, request: Request, credential: str | None) -> Principal | None:
    return anonymous_principal(services.settings, services.signer, credential, request.headers.get("origin"))


def refreshing_caller(credential: Any) -> Any:
    """For requests that may take minutes: `Annotated[PrincipalSource, refreshing_caller(...)]` is a function
    that returns the caller with a valid token, since an API key's token lasts a minute. The function raises
    Unauthorized after the user's token has expired or the key was revoked."""

    async def source(
        request: Request, services: Container, credential: Annotated[str | None, Depends(credential)]
    ) -> Callable[[], Principal]:
        return lambda: _anonymous(services, request, credential) or _key_or_user(services, credential)

    return Depends(source)


# With the credential in Authorization. (`with_scope` refuses anonymous requests before.)
FreshCaller = Annotated[Callable[[], Principal], refreshing_caller(in_authorization)]


def _optional_caller(services: Container, authorization: Authorization) -> Principal | None:
    if authorization is None:
        return None
    try:
        with step("authenticate"):
            return _key_or_user(services, authorization)
    except (DatabaseFailed, DatabaseTimedOut, KeysUnavailable, ApiKeysOff):
        return None


# The caller of a public route; None without a credential, and while it cannot be checked. No limit counts it.
# Raises Unauthorized for an invalid credential.
OptionalCaller = Annotated[Principal | None, Depends(_optional_caller)]


def _link_caller(request: Request, services: Container, document_id: str, token: str) -> Principal:
    if services.signer is None:
        raise NotFound
    with step("authenticate"):
        document = id_of(document_id, "document")
        caller = principal_of(services.signer, token, document)
    _limit(request, services, caller, f"link {document}", services.settings.rag_rate_limit_api)
    return caller


# The user of a download link (download_links.py). Raises Unauthorized, RateLimited and NoOrg.
LinkCaller = Annotated[Principal, Depends(_link_caller)]


async def _operator(services: Container, authorization: Authorization) -> None:
    _require(
        services.settings.rag_metrics_token, authorization, "The bearer token RAG_METRICS_TOKEN is required."
    )


async def _schedule(services: Container, authorization: Authorization) -> None:
    _require(
        services.settings.rag_worker_token, authorization, "The bearer token RAG_WORKER_TOKEN is required."
    )


def _require(expected: SecretStr | None, authorization: str | None, message: str) -> None:
    if expected is None:
        raise NotFound
    bearer = f"Bearer {expected.get_secret_value()}"
    if not hmac.compare_digest((authorization or "").encode(), bearer.encode()):
        raise Unauthorized(message)


# For routes of the operator. Raises NotFound if RAG_METRICS_TOKEN is not set, Unauthorized without it.
operators_only = Depends(_operator)
# For the route that a schedule calls: the same with RAG_WORKER_TOKEN.
worker_only = Depends(_schedule)


async def _registration(request: Request, services: Container) -> None:
    if not services.settings.rag_registration_enabled:
        raise NotFound
    window = services.registrations.count(request.client.host if request.client else "")
    request.state.rate_limit = window
    if not window.admitted:
        raise RateLimited(headers=window.retry_after)
    require_keys(services)


# For the route that registers users, which takes no credential. Raises NotFound unless the settings allow it,
# RateLimited for the client's address, ApiKeysOff.
registration_only = Depends(_registration)


def require_keys(services: Container) -> ApiKeyAuthenticator:
    """Raises ApiKeysOff without a key to sign with."""
    if services.api_key_authenticator is None:
        raise ApiKeysOff
    return services.api_key_authenticator


def _user(services: Services, authorization: str | None) -> Principal:
    with step("authenticate"):
        if is_key(bearer(authorization)):
            raise Unauthorized("This route takes no API keys. Send a signed-in user's token.")
        return services.verifier.principal(authorization)


def _key_or_user(services: Services, authorization: str | None) -> Principal:
    credential = bearer(authorization)
    if is_key(credential):
        return require_keys(services).principal(credential)
    if not is_token(credential):
        raise Unauthorized(
            project_key_refusal(credential)
            or "A valid user token or API key is required: Authorization: Bearer <JWT or API key>."
        )
    return services.verifier.principal(authorization)


def _limit(
    request: Request, services: Services, caller: Principal, bucket: str, rate: str, *, needs_org: bool = True
) -> None:
    usage: TokenUsage = request.state.token_usage
    usage.target = services.database, partial(principal_at_end, services.signer, caller)
    function = request.app.state.function
    check = RateLimitCheck(services.database, caller, function, bucket, parse(rate), needs_org=needs_org)
    with step("limit"):
        check_rate_limit(request, check, services.refusals)
    usage.exceeded = check.exceeded_quotas
