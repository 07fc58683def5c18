"""api-keys: users create, list, rotate and revoke API keys; admins list and revoke their org's."""

from typing import Annotated
from uuid import UUID

from fastapi import Body, Depends
from starlette.responses import Response

from shared.access import api_keys
from shared.access.api_key_authenticator import ApiKeyAuthenticator
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import require_keys, with_scope
from shared.api.contracts import api_keys as wire
from shared.api.contracts import rag
from shared.api.dependencies import Container
from shared.types import Principal, Scope

app = create_app(rag, "api-keys", searches=False)

Manager = Annotated[Principal, with_scope(Scope.ADMIN)]
# FastAPI resolves parameters in order, so this follows the caller.
KeysOn = Annotated[ApiKeyAuthenticator, Depends(require_keys)]


@app.post("/api/keys", status_code=201)
def create(caller: Manager, _: KeysOn, services: Container, body: wire.NewKeyRequest) -> wire.CreatedKey:
    return wire.CreatedKey(**api_keys.create(services.database, caller, body.kind, body.to_request()))


@app.get("/api/keys")
def index(caller: Manager, services: Container) -> wire.Keys:
    return wire.Keys.of({"keys": api_keys.list_keys(services.database, caller)})


@app.post("/api/keys/{key_id}/rotate", status_code=201)
def rotate(
    caller: Manager,
    _: KeysOn,
    services: Container,
    key_id: UUID,
    body: Annotated[wire.RotateRequest | None, Body()] = None,
) -> wire.CreatedKey:
    overlap = body.overlap_seconds if body else 0
    return wire.CreatedKey(**api_keys.rotate(services.database, caller, str(key_id), overlap))


@app.delete("/api/keys/{key_id}", status_code=204)
def revoke(caller: Manager, services: Container, key_id: UUID) -> Response:
    api_keys.revoke(services.database, caller, str(key_id))
    return Response(status_code=204)


@app.get("/api/keys/health")
def health(services: Container) -> dict[str, str]:
    """Whether API keys are enabled, and their signing method. Needs no token."""
    return {"api_keys": services.api_key_authenticator.algorithm if services.api_key_authenticator else "off"}


handler = lambda_handler(app)
