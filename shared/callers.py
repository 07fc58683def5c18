"""The first two steps, authenticate and limit, as what a handler's signature asks for.

A handler of the rag pair takes a `Caller`, one of any other function an `Annotated[Principal,
with_scope(...)]`. Whoever arrives in a handler is somebody, is within the limits, and may do this.
"""

from functools import cache
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from limits import parse

from shared import spans
from shared.config import read_settings
from shared.errors import ApiKeysOff, Forbidden
from shared.keyring import KeyRing
from shared.keys import is_key
from shared.limit import Spending, spend
from shared.pipeline import Pipeline
from shared.trace import step
from shared.types import Principal, Scope


@cache
def pipeline() -> Pipeline:
    """This process's pipeline, made at start-up from the environment. Raises ConfigurationError."""
    settings = read_settings()
    spans.start(settings.otel_exporter_otlp_endpoint)
    return Pipeline(settings)


Core = Annotated[Pipeline, Depends(pipeline)]
Authorization = Annotated[str | None, Header()]


def _user(core: Core, authorization: Authorization = None) -> Principal:
    """A user by their own token. Raises Unauthorized."""
    with step("authenticate"):
        return core.verifier.principal(authorization)


def _key_or_user(core: Core, authorization: Authorization = None) -> Principal:
    """An API key's principal, or a user. Raises Unauthorized."""
    scheme, _, credential = (authorization or "").strip().partition(" ")
    with step("authenticate"):
        if scheme.lower() != "bearer" or not is_key(credential.strip()):
            return core.verifier.principal(authorization)
        return require_keys(core).principal(credential.strip())


def require_keys(core: Core) -> KeyRing:
    """Raises ApiKeysOff where there is nothing to sign with."""
    if core.key_ring is None:
        raise ApiKeysOff
    return core.key_ring


def _limited(request: Request, core: Core, caller: Principal, bucket: str, rate: str) -> Principal:
    """Raises RateLimited."""
    function: str = request.app.state.function
    with step("limit"):
        spend(request, Spending(core.database, caller, function, bucket, parse(rate)))
    return caller


def _of_the_rag_pair(request: Request, core: Core, caller: Annotated[Principal, Depends(_user)]) -> Principal:
    return _limited(request, core, caller, "rag", core.settings.rag_rate_limit)


# A signed-in user within the limit: the first parameter of every handler of the rag pair.
Caller = Annotated[Principal, Depends(_of_the_rag_pair)]


def with_scope(*scopes: Scope) -> Any:
    """For `Annotated[Principal, with_scope(...)]`: a user, or an API key with one of the scopes, within the
    limit of all functions but the rag pair."""

    def allowed(
        request: Request, core: Core, caller: Annotated[Principal, Depends(_key_or_user)]
    ) -> Principal:
        _limited(request, core, caller, "api", core.settings.rag_api_rate_limit)
        if not caller.may(*scopes):
            raise Forbidden(f"The API key lacks the scope {' or '.join(scopes)}.", code="missing_scope")
        return caller

    return Depends(allowed)
