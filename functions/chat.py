"""chat: conversations over documents, and their stored sessions."""

from functools import partial
from typing import Annotated

from fastapi import Depends
from starlette.responses import Response

from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.turn import converse
from shared.answering.platform_chat.types import TurnDone
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import FreshCaller, with_scope
from shared.api.contracts.platform import chat_request as wire
from shared.api.contracts.platform import chat_response, chat_sessions, error_format
from shared.api.contracts.platform.pagination import Limit
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Core
from shared.api.idempotent_execution import IdempotentRequest, Once
from shared.api.sse import DESCRIBED, last_event, stream_response
from shared.text.prefixed_ids import id_of
from shared.types import Principal, Scope

# A request may have the whole conversation.
MAX_BYTES = 1024 * 1024

app = create_app(
    error_format,
    "chat",
    errors=(400, 401, 403, 404, 409, 413, 429, 500, 503),
    max_body_bytes=MAX_BYTES,
    headers=["idempotency-key"],
)

Asker = Annotated[Principal, with_scope(Scope.CHAT_READ)]


async def _id_of_path(session_id: str) -> str:
    return id_of(session_id, "session")


Id = Annotated[str, Depends(_id_of_path)]


@app.post("/api/v1/chat", response_model=chat_response.Response, responses={200: DESCRIBED})
@app.post("/v1/chat", response_model=chat_response.Response, responses={200: DESCRIBED})
async def chat(caller: Asker, fresh_caller: FreshCaller, services: Core, body: wire.Request) -> Response:
    turn = converse(services, fresh_caller, body.turn())
    if not body.stream:
        return chat_response.response(body, caller.user_id, await last_event(turn, TurnDone))
    encode = partial(chat_response.encode_event, body, caller.user_id)
    return await stream_response(turn, encode, chat_response.encode_error)


@app.get("/api/v1/chat/sessions")
@app.get("/v1/chat/sessions")
def index(
    caller: Asker, services: Core, limit: Limit = 20, offset: Offset = 0
) -> list[chat_sessions.Session]:
    return [
        chat_sessions.Session.of(row)
        for row in sessions.list_sessions(services.database, caller, limit, offset)
    ]


@app.get("/api/v1/chat/sessions/{session_id}/messages", response_model_exclude_none=True)
@app.get("/v1/chat/sessions/{session_id}/messages", response_model_exclude_none=True)
def messages(
    caller: Asker,
    services: Core,
    session: Id,
    limit: chat_sessions.MessageLimit = 1000,
    offset: Offset = 0,
) -> list[chat_sessions.SessionMessage]:
    rows = sessions.messages(services.database, caller, session, limit, offset)
    return [chat_sessions.SessionMessage.of(row) for row in rows]


@app.post("/api/v1/chat/sessions", status_code=201, response_model=chat_sessions.SessionReference)
@app.post("/v1/chat/sessions", status_code=201, response_model=chat_sessions.SessionReference)
def create(
    caller: Asker, services: Core, once: Once, body: chat_sessions.NewSession
) -> chat_sessions.SessionReference | Response:
    def make() -> chat_sessions.SessionReference:
        session = sessions.open_session(services.database, caller, None, body.collection_id)
        session_id = sessions.save_turn(services.database, caller, session, body.stored())
        return chat_sessions.SessionReference(session_id=session_id)

    content = body.model_dump(mode="json")
    return once.make(IdempotentRequest(Scope.CHAT_READ, content, body.collection_id), make)


@app.post(
    "/api/v1/chat/sessions/{session_id}/messages",
    status_code=201,
    response_model=chat_sessions.SessionReference,
)
@app.post(
    "/v1/chat/sessions/{session_id}/messages", status_code=201, response_model=chat_sessions.SessionReference
)
def add_messages(
    caller: Asker, services: Core, session: Id, once: Once, body: chat_sessions.NewMessages
) -> chat_sessions.SessionReference | Response:
    def make() -> chat_sessions.SessionReference:
        sessions.add_messages(services.database, caller, session, body.stored())
        return chat_sessions.SessionReference(session_id=session)

    return once.make(IdempotentRequest(Scope.CHAT_READ, [session, body.model_dump(mode="json")]), make)


@app.delete("/api/v1/chat/sessions/{session_id}", status_code=204)
@app.delete("/v1/chat/sessions/{session_id}", status_code=204)
def delete(caller: Asker, services: Core, session: Id) -> Response:
    sessions.delete(services.database, caller, session)
    return Response(status_code=204)


handler = lambda_handler(app)
