"""v1-answer: an answer of which every sentence can be traced, whole or as a stream."""

from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from shared.access.idempotency_store import StoredResponse
from shared.answering.cited.idempotent import IdempotencyKey, answer_once
from shared.answering.cited.types import AnswerDone
from shared.api.app import create_app, lambda_handler
from shared.api.contracts.search import answer as wire
from shared.api.contracts.search import common
from shared.api.dependencies import Core, FreshCaller, with_scope
from shared.api.sse import DESCRIBED, EventStream, events, last_event, peek_first
from shared.types import Principal, Scope

app = create_app(
    common,
    "v1-answer",
    errors=(400, 401, 403, 404, 409, 413, 429, 500, 503),
    headers=("x-workspace-id", "idempotency-key"),
)

Asker = Annotated[Principal, with_scope(Scope.CHAT_READ)]


@app.post("/v1/answer", response_model=wire.Response, responses={200: DESCRIBED})
async def answer(
    caller: Asker,
    renewed: FreshCaller,
    core: Core,
    body: wire.Request,
    x_workspace_id: Annotated[str | None, Header()] = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    question = body.to_request(x_workspace_id)
    # (An empty key is none, as proxies send it.)
    key = (
        IdempotencyKey(idempotency_key, body.fingerprint(), partial(wire.body, body))
        if idempotency_key
        else None
    )
    outcome = await answer_once(core, renewed, question, key)
    if isinstance(outcome, StoredResponse):
        return wire.replay(outcome, streams=body.stream)
    if not body.stream:
        return wire.response(body, await last_event(outcome, AnswerDone))
    async with AsyncExitStack() as until:
        answer_events = await until.enter_async_context(aclosing(await peek_first(outcome)))
        return EventStream(
            events(answer_events, partial(wire.encode_event, body), wire.broken), until.pop_all()
        )


handler = lambda_handler(app)
