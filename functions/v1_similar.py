"""v1-similar: chunks or documents most similar to a text, chunk or document."""

from typing import Annotated

from fastapi import Header

from shared.answering.similarity_search import find_similar
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.search import error_format
from shared.api.contracts.search import similar as wire
from shared.api.dependencies import Container
from shared.types import Principal, Scope

app = create_app(error_format, "v1-similar", headers=("x-workspace-id",))

Searcher = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, Scope.CHAT_READ)]


@app.post("/v1/similar")
def similar(
    caller: Searcher,
    services: Container,
    body: wire.Request,
    x_workspace_id: Annotated[str | None, Header()] = None,
) -> wire.Response:
    request = body.to_request(x_workspace_id)
    return wire.Response.of(body, find_similar(services, caller, request, body.to_subject(), body.by))


handler = lambda_handler(app)
