"""v1-answer: an answer with a source for each sentence, as JSON or as a stream of events."""

from functools import partial
from typing import Annotated, Any

from fastapi import Header
from starlette.responses import Response

from shared.access.idempotency_keys import StoredResponse
from shared.answering.cited import answer as cited
from shared.answering.cited.types import AnswerDone, Event
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import FreshCaller, with_scope
from shared.api.contracts.search import answer as wire
from shared.api.contracts.search import error_format
from shared.api.dependencies import Container
from shared.api.idempotent_execution import LEASE_SECONDS, IdempotentRequest, Once
from shared.api.sse import DESCRIBED, last_event, stream_response
from shared.models.chat_gateway import STREAM_SECONDS
from shared.retrieval.workspace_lookup import locate
from shared.types import Principal, Scope

app = create_app(error_format, "v1-answer", more_errors=(409,), headers=("x-workspace-id", "idempotency-key"))

Asker = Annotated[Principal, with_scope(Scope.CHAT_READ)]


@app.post("/v1/answer", response_model=wire.Response, responses={200: DESCRIBED})
async def answer(
    once: Once,
    caller: Asker,
    fresh_caller: FreshCaller,
    services: Container,
    body: wire.Request,
    x_workspace_id: Annotated[str | None, Header()] = None,
) -> Response:
    request = body.to_request(x_workspace_id)

    def operation() -> IdempotentRequest:
        area = locate(services.database, fresh_caller(), request.search.workspace, request.search.org)
        lease = round(STREAM_SECONDS) + LEASE_SECONDS
        content = [area.collection_id, body.fingerprint()]
        return IdempotentRequest(Scope.CHAT_READ, content, org_id=area.org_id, lease_seconds=lease)

    def stored(event: Event) -> tuple[Any, set[str]] | None:
        return (wire.body(body, event), event.chunk_ids) if isinstance(event, AnswerDone) else None

    outcome = await once.stream(operation, cited.answer(services, fresh_caller, request), stored)
    if isinstance(outcome, StoredResponse):
        return wire.replay(outcome, streams=body.stream)
    if not body.stream:
        return wire.response(body, await last_event(outcome, AnswerDone))
    return await stream_response(outcome, partial(wire.encode_event, body), wire.encode_error)


handler = lambda_handler(app)
