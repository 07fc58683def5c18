"""chat: conversations over documents, and their stored sessions."""

from functools import partial
from typing import Annotated

from starlette.responses import Response

from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.turn import converse
from shared.answering.platform_chat.turn_state import TurnDone
from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import FreshCaller, with_scope
from shared.api.contracts.platform import chat_request as wire
from shared.api.contracts.platform import chat_response, chat_sessions, error_format
from shared.api.contracts.platform.pagination import Limit
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Container, id_in_path
from shared.api.idempotent_execution import IdempotentRequest, Once
from shared.api.sse import DESCRIBED, last_event, stream_response
from shared.text.prefixed_ids import id_of
from shared.types import Principal, Scope

# A request may have the whole conversation.
MAX_BYTES = 1024 * 1024

app = create_app(
    error_format, "chat", more_errors=(409,), max_body_bytes=MAX_BYTES, headers=["idempotency-key"]
)
routes = PlatformRoutes(app)

Asker = Annotated[Principal, with_scope(Scope.CHAT_READ)]
Id = Annotated[str, id_in_path("session")]


@routes.post("/chat", response_model=chat_response.Response, responses={200: DESCRIBED})
async def chat(caller: Asker, fresh_caller: FreshCaller, services: Container, body: wire.Request) -> Response:
    turn = converse(services, fresh_caller, body.to_turn())
    if not body.stream:
        return chat_response.response(body, caller.user_id, await last_event(turn, TurnDone))
    encode = partial(chat_response.encode_event, body, caller.user_id)
    return await stream_response(turn, encode, chat_response.encode_error)


@routes.get("/chat/sessions")
def index(
    caller: Asker, services: Container, limit: Limit = 20, offset: Offset = 0
) -> list[chat_sessions.Session]:
    return [
        chat_sessions.Session.of(row)
        for row in sessions.list_sessions(services.database, caller, limit, offset)
    ]


@routes.get("/chat/sessions/{session_id}/messages", response_model_exclude_none=True)
def messages(
    caller: Asker,
    services: Container,
    session: Id,
    limit: chat_sessions.MessageLimit = 1000,
    offset: Offset = 0,
) -> list[chat_sessions.SessionMessage]:
    rows = sessions.messages(services.database, caller, session, limit, offset)
    return [chat_sessions.SessionMessage.of(row) for row in rows]


@routes.post("/chat/sessions", status_code=201, response_model=chat_sessions.SessionReference)
def create(
    caller: Asker, services: Container, once: Once, body: chat_sessions.NewSession
) -> chat_sessions.SessionReference | Response:
    def make() -> chat_sessions.SessionReference:
        session = sessions.open_session(services.database, caller, None, body.collection_id)
        session_id = sessions.save_turn(services.database, caller, session, body.stored())
        return chat_sessions.SessionReference(session_id=session_id)

    collection = body.collection_id and id_of(body.collection_id, "collection")
    content = {**body.model_dump(mode="json"), "collection_id": collection}
    return once.make(IdempotentRequest(Scope.CHAT_READ, content, collection), make)


@routes.post(
    "/chat/sessions/{session_id}/messages", status_code=201, response_model=chat_sessions.SessionReference
)
def add_messages(
    caller: Asker, services: Container, session: Id, once: Once, body: chat_sessions.NewMessages
) -> chat_sessions.SessionReference | Response:
    def make() -> chat_sessions.SessionReference:
        sessions.add_messages(services.database, caller, session, body.stored())
        return chat_sessions.SessionReference(session_id=session)

    return once.make(IdempotentRequest(Scope.CHAT_READ, [session, body.model_dump(mode="json")]), make)


@routes.delete("/chat/sessions/{session_id}", status_code=204)
def delete(caller: Asker, services: Container, session: Id) -> Response:
    sessions.delete(services.database, caller, session)
    return Response(status_code=204)


handler = lambda_handler(app)
