"""FastAPI dependencies: the services of the process, ids in paths, the base URL of links."""

import logging
from functools import cache
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from shared.access.download_links import public_url
from shared.config import read_settings, unknown_settings
from shared.observability import opentelemetry
from shared.services import Services
from shared.text.prefixed_ids import id_of

log = logging.getLogger("rag")


@cache
def get_services() -> Services:
    """The services of this process, created once from the environment. Raises ConfigurationError."""
    settings = read_settings()
    if unknown := unknown_settings():
        log.warning("ignored, since no setting has this name: %s", ", ".join(unknown))
    opentelemetry.start(settings.otel_exporter_otlp_endpoint)
    return Services(settings)


async def services_dependency() -> Services:
    """Async, since FastAPI calls other dependencies in a thread."""
    return get_services()


Container = Annotated[Services, Depends(services_dependency)]


async def public_url_of(request: Request, services: Container) -> str:
    """Raises PublicUrlUnset."""
    # Mangum passes the event of API Gateway or of a function URL.
    context = request.scope.get("aws.event", {}).get("requestContext", {})
    host = request.headers.get("host", "")
    return public_url(services.settings, request.url.scheme, host, context.get("domainName"))


# The base URL of links. Raises PublicUrlUnset.
PublicUrl = Annotated[str, Depends(public_url_of)]


def id_in_path(kind: str) -> Any:
    """For `Annotated[str, id_in_path("document")]`: the path's `document_id`. Raises NotFound for no id."""

    async def parse(text: Annotated[str, Path(alias=f"{kind}_id")]) -> str:
        return id_of(text, kind)

    return Depends(parse)
