"""Models of chat completions: the gateway's, and those that answer over documents."""

import logging
from collections.abc import Iterator
from time import monotonic
from typing import Any, TypeGuard

from shared.answering.chat_completions.openai_request import (
    MODEL_CHARACTERS,
    RAG_MODEL,
    RAG_PREFIX,
    is_grounded,
)
from shared.clients.probe_cache import CachedProbe
from shared.documents import named_collections
from shared.errors import GenerationFailed, InvalidRequest, NotFound
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_stream import Body
from shared.services import Services
from shared.types import Principal

log = logging.getLogger("rag")
# Limit of the gateway's models, and of the caller's collections.
MAX_MODELS = 1000
# Lifetime of the cached list of the gateway's models.
FRESH_SECONDS = 60.0
OWN, GATEWAY = "rag", "gateway"


def models(services: Services, caller: Principal) -> list[Body]:
    """The gateway's models, `rag`, and `rag/<collection>` for each collection that the caller can name."""
    gateway = services.chat_gateway
    ours = [_model(RAG_MODEL), *(_model(RAG_PREFIX + name) for name in _names(services, caller)[:MAX_MODELS])]
    return [*(_LISTS.at(gateway, monotonic) if gateway else []), *ours]


def _names(services: Services, caller: Principal) -> list[str]:
    """The caller's collections; empty unless the caller has one org, because names are unique per org."""
    try:
        return named_collections.names(services.database, caller)
    except (InvalidRequest, NotFound) as error:
        if error.code not in ("org_required", "org_not_found"):
            raise
        return []


def _list(gateway: ChatGateway) -> list[Body]:
    """The gateway's models, its default first, which is the only one if the gateway has no list."""
    try:
        models = list(_readable(gateway.models()))[:MAX_MODELS]
    except GenerationFailed as failed:
        log.info("the gateway's list of models is not available: %s", failed.log_reason)
        models = []
    unlisted = _model(gateway.model, owner=GATEWAY)
    default = next((model for model in models if model["id"] == gateway.model), unlisted)
    return [default, *(model for model in models if model is not default)]


def _readable(entries: list[Any]) -> Iterator[Body]:
    """The entries with a valid name that is not ours."""
    for entry in entries:
        model = entry if isinstance(entry, dict) else {}
        name, created, owner = model.get("id"), model.get("created"), model.get("owned_by")
        if _is_name(name) and not is_grounded(name):
            created_at = created if isinstance(created, int) else 0
            yield _model(name, created_at, owner if _is_name(owner) else GATEWAY)


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MODEL_CHARACTERS and value.isprintable()


def _model(name: str, created: int = 0, owner: str = OWN) -> Body:
    return {"id": name, "object": "model", "created": created, "owned_by": owner}


_LISTS: CachedProbe[ChatGateway, list[Body]] = CachedProbe(_list, lambda _: FRESH_SECONDS)
