"""v1-contents: whole documents and chunks by their ids."""

from typing import Annotated

from fastapi import Header

from shared.api.app import create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.search import contents as wire
from shared.api.contracts.search import error_format
from shared.api.dependencies import Container
from shared.documents.contents_by_id import hydrate
from shared.retrieval.query.types import SearchScope
from shared.retrieval.workspace_lookup import locate
from shared.types import Principal, Scope

app = create_app(error_format, "v1-contents", searches=False, headers=("x-workspace-id",))

Reader = Annotated[Principal, with_scope(Scope.RETRIEVALS_READ, Scope.CHAT_READ, Scope.DOCUMENTS_READ)]


@app.post("/v1/contents")
def contents(
    caller: Reader,
    services: Container,
    body: wire.Request,
    x_workspace_id: Annotated[str | None, Header()] = None,
) -> wire.Response:
    area = locate(services.database, caller, body.workspace(x_workspace_id), body.organization_id)
    result = hydrate(
        services.database,
        caller,
        area,
        body.references(),
        chunks=body.expand.chunks,
        text=body.include_raw,
        # A search with fallback may return chunks of the whole org.
        whole_org=body.search_scope is not SearchScope.WORKSPACE,
        hops=body.hops,
    )
    return wire.Response.of(body, result)


handler = lambda_handler(app)
