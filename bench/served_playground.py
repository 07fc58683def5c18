"""Server for bench/playground.py: the playground and all functions."""

from starlette.applications import Starlette

from functions.server import SLUGS, Functions
from local import playground_server

_functions = Functions(SLUGS)
app = Starlette(routes=list(playground_server.routes()), lifespan=lambda _: _functions.started())
app.router.default = _functions
