"""metrics: Prometheus counters of all instances together, read from the database; for the operator alone."""

from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from shared.app import create_app, lambda_handler
from shared.callers import Core
from shared.dialects import rag
from shared.metrics import CONTENT_TYPE, admit_operator, exposition

app = create_app(rag, "metrics", searches=False, errors=(404,))


@app.get("/metrics")
def metrics(core: Core, authorization: Annotated[str | None, Header()] = None) -> Response:
    admit_operator(core.settings, authorization)
    return Response(exposition(core), media_type=CONTENT_TYPE)


handler = lambda_handler(app)
