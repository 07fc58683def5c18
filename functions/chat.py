"""chat: conversations over one's own documents, and the sessions that remember them."""

from typing import Annotated

from fastapi import Depends
from starlette.responses import Response

from shared import sessions
from shared.app import create_app, lambda_handler
from shared.callers import Core, with_scope
from shared.dialects import chat_sessions as kept
from shared.dialects import platform as wire
from shared.ids import id_of
from shared.types import Principal, Scope

app = create_app(wire, "chat", errors=(400, 401, 403, 404, 409, 413, 429, 500, 503))

Reader = Annotated[Principal, with_scope(Scope.CHAT_READ)]


async def _id_of_path(session_id: str) -> str:
    return id_of(session_id, "session")


Id = Annotated[str, Depends(_id_of_path)]


@app.get("/api/v1/chat/sessions")
@app.get("/v1/chat/sessions")
def index(caller: Reader, core: Core, limit: wire.Limit = 20, offset: wire.Offset = 0) -> list[kept.Session]:
    return [kept.Session.of(row) for row in sessions.listed(core.database, caller, limit, offset)]


@app.get("/api/v1/chat/sessions/{session_id}/messages", response_model_exclude_none=True)
@app.get("/v1/chat/sessions/{session_id}/messages", response_model_exclude_none=True)
def messages(
    caller: Reader, core: Core, session: Id, limit: kept.MessageLimit = 1000, offset: wire.Offset = 0
) -> list[kept.SaidMessage]:
    rows = sessions.messages(core.database, caller, session, limit, offset)
    return [kept.SaidMessage.of(row) for row in rows]


@app.delete("/api/v1/chat/sessions/{session_id}", status_code=204)
@app.delete("/v1/chat/sessions/{session_id}", status_code=204)
def delete(caller: Reader, core: Core, session: Id) -> Response:
    sessions.delete(core.database, caller, session)
    return Response(status_code=204)


handler = lambda_handler(app)
