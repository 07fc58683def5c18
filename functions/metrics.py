"""metrics: Prometheus counters of all instances together, read from the database; for the operator alone."""

from starlette.responses import Response

from shared.app import create_app, lambda_handler
from shared.callers import Core, operators_only
from shared.dialects import rag
from shared.metrics import CONTENT_TYPE, exposition

app = create_app(rag, "metrics", searches=False, errors=(401, 404, 500, 503))


@app.get("/metrics", dependencies=[operators_only])
def metrics(core: Core) -> Response:
    return Response(exposition(core), media_type=CONTENT_TYPE)


handler = lambda_handler(app)
