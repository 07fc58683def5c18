"""Models that chat completions take: the gateway's, and those that answer over documents."""

import logging
from collections.abc import Iterator
from time import monotonic
from typing import Any, TypeGuard

from shared.answering.chat_completions.request import GROUNDED, GROUNDED_IN, MODEL_CHARACTERS, is_grounded
from shared.clients.probe_cache import CachedProbe
from shared.documents import named_collections
from shared.errors import GenerationFailed, InvalidRequest, NotFound
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_stream import Body
from shared.services import Services
from shared.types import Principal

log = logging.getLogger("rag")
# Of the gateway's models, and of the caller's collections, in one answer.
MOST = 1000
# How long a gateway's list is reused, in seconds, so that callers do not cause a request each.
FRESH_SECONDS = 60.0
# Owners of models.
OWN, GATEWAY = "rag", "gateway"


def models(core: Services, caller: Principal) -> list[Body]:
    """The gateway's models, `rag`, and `rag/<collection>` for each collection that the caller can name."""
    gateway = core.chat_gateway
    ours = [_model(GROUNDED), *(_model(GROUNDED_IN + name) for name in _names(core, caller)[:MOST])]
    return [*(_LISTS.at(gateway, monotonic) if gateway else []), *ours]


def _names(core: Services, caller: Principal) -> list[str]:
    """None without an org, and of several orgs: a name does not say which is meant."""
    try:
        return named_collections.names(core.database, caller)
    except (InvalidRequest, NotFound) as error:
        if error.code not in ("org_required", "org_not_found"):
            raise
        return []


def _list(gateway: ChatGateway) -> list[Body]:
    """The gateway's models with its default one first: alone, where the gateway does not list them."""
    try:
        models = list(_readable(gateway.models()))[:MOST]
    except GenerationFailed as failed:
        log.info("the gateway's list of models is not available: %s", failed.because)
        models = []
    unlisted = _model(gateway.model, owner=GATEWAY)
    default = next((model for model in models if model["id"] == gateway.model), unlisted)
    return [default, *(model for model in models if model is not default)]


def _readable(entries: list[Any]) -> Iterator[Body]:
    """Models whose name a request may have and is none of ours."""
    for entry in entries:
        model = entry if isinstance(entry, dict) else {}
        name, created, owner = model.get("id"), model.get("created"), model.get("owned_by")
        if _is_name(name) and not is_grounded(name):
            when = created if isinstance(created, int) else 0
            yield _model(name, when, owner if _is_name(owner) else GATEWAY)


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MODEL_CHARACTERS and value.isprintable()


def _model(name: str, created: int = 0, owner: str = OWN) -> Body:
    return {"id": name, "object": "model", "created": created, "owned_by": owner}


_LISTS: CachedProbe[ChatGateway, list[Body]] = CachedProbe(_list, lambda _: FRESH_SECONDS)
