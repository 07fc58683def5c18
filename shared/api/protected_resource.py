"""OAuth 2.0 protected resource: the metadata's address in refusals (RFC 9728), and the origin check."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Header, Request

from shared.api.dependencies import Container, public_url_of
from shared.errors import Forbidden, PublicUrlUnset, Unauthorized

WELL_KNOWN = "/.well-known/oauth-protected-resource"


async def _challenge(request: Request, services: Container) -> AsyncIterator[None]:
    try:
        yield
    except Unauthorized as refusal:
        try:
            address = await public_url_of(request, services)
        except PublicUrlUnset:
            raise refusal from None
        metadata = f"{address}{WELL_KNOWN}{request.scope['route'].path}"
        refusal.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{metadata}"'
        raise


async def _check_origin(services: Container, origin: Annotated[str | None, Header()] = None) -> None:
    allowed = services.settings.rag_cors_origins
    if origin is not None and "*" not in allowed and origin not in allowed:
        raise Forbidden(
            "Web pages of this origin may not call this route. Add the origin to RAG_CORS_ORIGINS."
        )


# Dependencies of a route, before its others: a refusal names the address of the metadata; a web page needs an
# allowed origin.
CHALLENGE = [Depends(_challenge), Depends(_check_origin)]
