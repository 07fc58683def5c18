"""rag-search: ranked chunks with snippets, no model call."""

from shared import pipeline
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import Caller
from shared.api.contracts import rag
from shared.api.dependencies import Container

app = create_app(rag, "rag-search", errors=(400, 401, 403, 413, 429, 500, 503))


@app.post("/api/rag/search")
@app.post("/functions/v1/rag-search")
def search(caller: Caller, services: Container, body: rag.Request) -> rag.SearchResponse:
    return rag.SearchResponse.of(body, pipeline.search(services, caller, body.to_query()))


handler = lambda_handler(app)
