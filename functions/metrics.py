"""metrics: Prometheus counters of all instances together, read from the database; for the operator alone."""

from starlette.responses import Response

from shared.api.app import create_app, lambda_handler
from shared.api.authentication import operators_only
from shared.api.contracts import rag
from shared.api.dependencies import Container
from shared.api.prometheus import exposition

app = create_app(rag, "metrics", searches=False, errors=(401, 404, 500, 503))


@app.get("/metrics", dependencies=[operators_only])
def metrics(services: Container) -> Response:
    content, media_type = exposition(services)
    return Response(content, media_type=media_type)


handler = lambda_handler(app)
