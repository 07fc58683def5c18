"""Function health: the state of the database and the parts of this deployment, without a token."""

from starlette.responses import JSONResponse

from shared.api.app import create_app, lambda_handler
from shared.api.contracts import rag
from shared.api.dependencies import Container
from shared.api.health import deployment

app = create_app(rag, "health", errors=(500,))


@app.get("/health", responses={503: {"description": "The same report, of a database that is gone"}})
def health(services: Container) -> JSONResponse:
    reachable, body = deployment(services)
    return JSONResponse(body, 200 if reachable else 503)


handler = lambda_handler(app)
