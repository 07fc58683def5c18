"""Gateway with Supabase's URL layout: /rest/v1 is PostgREST, / the playground, every other route a function.

Like a hosted project's gateway, it rejects /rest/v1 without one of the project's keys in `apikey`.
Preflights need no key. A bearer that is a key must be the same key. Requests and responses are unchanged.
"""

import hmac
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from functions.server import SLUGS, Functions
from local import playground_server
from shared.access.jwt_verifier import bearer
from shared.api.dependencies import get_services

FUNCTIONS = Functions(SLUGS)
# Headers that belong to one connection.
HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "host",
    "content-length",
}
# Headers that aiohttp would add to a request without them.
AUTOMATIC_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
REST_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


async def rest(request: Request) -> Response:
    """Forward a request to PostgREST."""
    if request.method != "OPTIONS":
        key = request.headers.get("apikey") or request.query_params.get("apikey")
        if not key:
            return JSONResponse({"message": "No API key found in request"}, status_code=401)
        keys = os.environ["LOCAL_PROJECT_KEYS"].split()
        is_known = any(hmac.compare_digest(key.encode(), each.encode()) for each in keys)
        credential = bearer(request.headers.get("authorization"))
        # A publishable or secret key is no JWT: as a bearer it is refused, unless it equals `apikey`. Then
        # PostgREST refuses it.
        if not is_known or (credential.startswith("sb_") and credential != key):
            return JSONResponse({"message": "Invalid authentication credentials"}, status_code=401)
    session: aiohttp.ClientSession = request.app.state.postgrest
    params = [item for item in request.query_params.multi_items() if item[0] != "apikey"]
    headers = [(name, value) for name, value in request.headers.items() if name not in HOP_BY_HOP]
    try:
        response = await session.request(
            request.method,
            f"{os.environ['LOCAL_POSTGREST_URL']}/{request.path_params['path']}",
            params=params,
            headers=headers,
            data=await request.body() or None,
            skip_auto_headers=AUTOMATIC_HEADERS,
            allow_redirects=False,
        )
    except aiohttp.ClientConnectionError:
        return JSONResponse({"message": "name resolution failed"}, status_code=503)
    forwarded = {name: value for name, value in response.headers.items() if name.lower() not in HOP_BY_HOP}
    return StreamingResponse(
        response.content.iter_any(), response.status, forwarded, background=BackgroundTask(response.release)
    )


async def jwks(request: Request) -> Response:
    """The project's public keys, cacheable for ten minutes, as Supabase Auth publishes them."""
    headers = {"Cache-Control": "public, max-age=600"}
    return JSONResponse(json.loads(os.environ["LOCAL_JWKS"]), headers=headers)


async def no_edge_function(request: Request) -> Response:
    """The response of Supabase's runtime: the stack has no edge functions of the project."""
    body = {"code": "NOT_FOUND", "message": "Requested function was not found"}
    return JSONResponse(body, status_code=404)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        session = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_read=30),
            connector=aiohttp.TCPConnector(limit=0),
        )
        app.state.postgrest = await stack.enter_async_context(session)
        # Not through this process, which would serve each of their calls as a second request.
        get_services().database.address = os.environ["LOCAL_POSTGREST_URL"]
        await stack.enter_async_context(FUNCTIONS.started(check_embedder=False))
        yield


app = Starlette(
    routes=[
        Route("/rest/v1/{path:path}", rest, methods=REST_METHODS),
        Route("/auth/v1/.well-known/jwks.json", jwks),
        Route("/functions/v1/rag/{path:path}", no_edge_function, methods=["POST"]),
        *playground_server.routes(),
    ],
    lifespan=lifespan,
)
app.router.default = FUNCTIONS
