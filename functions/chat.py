"""chat: conversations over documents, with memory; and the sessions that they are kept in."""

from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Annotated

from starlette.responses import Response

from shared.app import create_app, lambda_handler
from shared.callers import Core, Renewed, with_scope
from shared.conversations.turn import converse, whole
from shared.dialects import conversations as wire
from shared.sse import EventStream, begun, events
from shared.types import Principal, Scope

# As long a conversation as chat completions take.
MAX_BYTES = 1024 * 1024

app = create_app(wire, "chat", errors=(400, 401, 403, 404, 409, 413, 429, 500, 503), max_body_bytes=MAX_BYTES)

Asker = Annotated[Principal, with_scope(Scope.CHAT_READ)]
STREAM = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


@app.post("/api/v1/chat", response_model=wire.Response, responses={200: STREAM})
@app.post("/v1/chat", response_model=wire.Response, responses={200: STREAM})
async def chat(caller: Asker, renewed: Renewed, core: Core, body: wire.Request) -> Response:
    happening = converse(core, renewed, body.turn())
    if not body.stream:
        return wire.response(body, caller.user_id, await whole(happening))
    async with AsyncExitStack() as until:
        happened = await until.enter_async_context(aclosing(await begun(happening)))
        said = partial(wire.said, body, caller.user_id)
        return EventStream(events(happened, said, wire.broken), until.pop_all())


handler = lambda_handler(app)
