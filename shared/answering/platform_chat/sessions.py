"""Stored chat sessions and their messages. Row security limits each session to its user."""

from collections.abc import Sequence

from shared.answering.platform_chat.types import Message, Session
from shared.clients.postgrest import Database
from shared.text.normalize import clean_line, storable
from shared.text.prefixed_ids import NIL, id_of
from shared.types import Match, Principal, PrincipalSource, Row

TITLE_CHARACTERS, MESSAGE_CHARACTERS = 200, 100_000
# The details of a message have at most 64 KB.
MAX_SOURCES = 50


def open_session(
    database: Database, caller: PrincipalSource, session_id: str | None, collection_id: str | None
) -> Session:
    """The session with its last hundred messages; without an id, or with NIL, a new one in the collection or
    the caller's only org, which is not saved yet. Ids are as clients write them. Raises NotFound; Conflict
    for a session of another collection; InvalidRequest for a caller of several orgs without an id."""
    session_id = id_of(session_id, "session") if session_id and session_id != NIL else None
    collection_id = id_of(collection_id, "collection") if collection_id else None
    arguments = {"session_id": session_id, "collection_id": collection_id}
    row = database.call(caller, "rag_open_session", arguments, idempotent=True)
    messages = tuple(Message(**message) for message in row["messages"])
    return Session(row["session_id"], row["org_id"], row["collection_id"], messages)


def save_turn(
    database: Database, caller: PrincipalSource, session: Session, messages: Sequence[Message]
) -> str:
    """Add a turn's messages to the session, which may be new; its id.

    Raises NotFound if the session or collection was deleted.
    """
    arguments = {
        "session_id": session.session_id,
        "org_id": session.org_id,
        "collection_id": session.collection_id,
    }
    row = database.call(caller, "rag_save_turn", {**arguments, **_turn(messages)})
    return str(row["session_id"])


def add_messages(database: Database, caller: Principal, session_id: str, messages: Sequence[Message]) -> None:
    """Add messages to a session. Raises NotFound."""
    arguments = {"session_id": session_id, "org_id": None, "collection_id": None}
    database.call(caller, "rag_save_turn", {**arguments, **_turn(messages)})


def list_sessions(database: Database, caller: Principal, limit: int, offset: int) -> list[Row]:
    """A page of the caller's sessions, the latest message first."""
    return database.rows(caller, "rag_list_sessions", {"limit": limit, "offset": offset}, idempotent=True)


def messages(database: Database, caller: Principal, session_id: str, limit: int, offset: int) -> list[Row]:
    """A page of the session's messages, in order. Raises NotFound."""
    arguments = {"session_id": session_id, "limit": limit, "offset": offset}
    return database.rows(caller, "rag_list_session_messages", arguments, idempotent=True)


def delete(database: Database, caller: Principal, session_id: str) -> None:
    """Delete the session with its messages. Raises NotFound."""
    database.call(caller, "rag_delete_session", {"session_id": session_id})


def stored_source(match: Match) -> Row:
    """The stored form of an answer's source, without its text: access to it may change."""
    return {
        "document_id": match.document_id,
        "chunk_id": match.chunk_id,
        "title": match.title[:TITLE_CHARACTERS],
        "filename": match.filename and match.filename[:TITLE_CHARACTERS],
        "ordinal": match.ordinal,
        "score": round(min(1.0, max(0.0, match.score)), 6),
    }


def _turn(messages: Sequence[Message]) -> Row:
    """The messages, and the first question as the title of a session that has none."""
    question = next((message.content for message in messages if message.role == "user"), "")
    return {
        "title": clean_line(storable(question[:MESSAGE_CHARACTERS]))[:TITLE_CHARACTERS].rstrip(),
        "messages": [
            {
                "role": message.role,
                "content": storable(message.content)[:MESSAGE_CHARACTERS],
                "details": dict(message.details),
            }
            for message in messages
        ],
    }
