"""Conversations that are kept: opened for a turn, added to when it is done, listed, read, deleted. A session
is its user's alone; row security says so."""

from collections.abc import Sequence
from typing import Any

from shared.answering.platform_chat.types import Message, Session
from shared.clients.postgrest import Database
from shared.errors import error_details
from shared.text.ids import NIL, id_of
from shared.text.normalize import clean_line
from shared.types import Match, Principal, PrincipalSource

Row = dict[str, Any]
TITLE_CHARACTERS, MESSAGE_CHARACTERS = 200, 100_000
# Of an answer's: the row takes 64 KB.
MAX_SOURCES = 50


def open_session(
    database: Database, caller: PrincipalSource, session_id: str | None, collection_id: str | None
) -> Session:
    """The session with its last messages, at most a hundred; without an id, or with NIL, the place of a new
    one, in the collection or else in the caller's only org. Ids are as clients write them. Raises NotFound;
    Conflict for a session about another collection; InvalidRequest for a caller of several orgs who
    names neither."""
    session_id = id_of(session_id, "session") if session_id and session_id != NIL else None
    collection_id = id_of(collection_id, "collection") if collection_id else None
    with error_details(session_id=session_id, collection_id=collection_id):
        arguments = {"session_id": session_id, "collection_id": collection_id}
        found = database.call(caller, "rag_open_session", arguments, again=True)
    messages = tuple(Message(**said) for said in found["messages"])
    return Session(found["session_id"], found["org_id"], found["collection_id"], messages)


def keep_turn(
    database: Database, caller: PrincipalSource, session: Session, messages: Sequence[Message]
) -> str:
    """Add what was said in a turn, in order, and make the session where there is none yet; its id.

    A new one is called by the first thing that the user says. Raises NotFound for a session or a collection
    that has gone meanwhile.
    """
    asked = next((message.content for message in messages if message.role == "user"), "")
    arguments = {
        "session_id": session.session_id,
        "org_id": session.org_id,
        "collection_id": session.collection_id,
        "title": clean_line(_storable(asked))[:TITLE_CHARACTERS].rstrip(),
        "messages": [
            {"role": said.role, "content": _storable(said.content), "details": dict(said.details)}
            for said in messages
        ],
    }
    with error_details(session_id=session.session_id):
        kept = database.call(caller, "rag_save_turn", arguments)
    return str(kept["session_id"])


def list_sessions(database: Database, caller: Principal, limit: int, offset: int) -> list[Row]:
    """A page of the caller's own, those first where something was said last."""
    rows: list[Row] = database.call(
        caller, "rag_list_sessions", {"limit": limit, "offset": offset}, again=True
    )
    return rows


def messages(database: Database, caller: Principal, session_id: str, limit: int, offset: int) -> list[Row]:
    """A page of what was said in one, in order. Raises NotFound."""
    arguments = {"session_id": session_id, "limit": limit, "offset": offset}
    with error_details(session_id=session_id):
        rows: list[Row] = database.call(caller, "rag_list_session_messages", arguments, again=True)
    return rows


def delete(database: Database, caller: Principal, session_id: str) -> None:
    """With all that was said. Raises NotFound."""
    with error_details(session_id=session_id):
        database.call(caller, "rag_delete_session", {"session_id": session_id})


def source(match: Match) -> Row:
    """What is kept of a passage that an answer was written from. Its text stays where it is: who may read it
    may change."""
    return {
        "document_id": match.document_id,
        "chunk_id": match.chunk_id,
        "title": match.title[:TITLE_CHARACTERS],
        "filename": match.filename and match.filename[:TITLE_CHARACTERS],
        "ordinal": match.ordinal,
        "score": round(min(1.0, max(0.0, match.score)), 6),
    }


def _storable(text: str) -> str:
    """What a model says may hold what Postgres does not store, or go on for ever: the turn is kept all the
    same."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")[:MESSAGE_CHARACTERS]
