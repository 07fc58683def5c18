"""v1-search: the search contract's ranked chunks, with the router's reasons."""

from typing import Annotated

from fastapi import Header

from shared.answering.routed_search import retrieve
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.search import error_format
from shared.api.contracts.search import search as wire
from shared.api.dependencies import Container
from shared.types import Principal, Scope

app = create_app(error_format, "v1-search", headers=("x-workspace-id",))

Searcher = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, Scope.CHAT_READ)]


@app.post("/v1/search")
def search(
    caller: Searcher,
    services: Container,
    body: wire.Request,
    x_workspace_id: Annotated[str | None, Header()] = None,
) -> wire.Response:
    return wire.Response.of(body, retrieve(services, caller, body.to_request(x_workspace_id)))


handler = lambda_handler(app)
