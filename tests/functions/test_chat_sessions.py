"""chat's sessions over HTTP, on the real stack: listed, read, deleted, as the platform contract has them."""

from typing import Any
from uuid import UUID

from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.types import Message, Session
from shared.services import Services
from tests.actors import NOBODYS, Actor
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.app_server import platform_error as error

PATH = "/api/v1/chat/sessions"
SOURCES = [{"document_id": NOBODYS, "title": "The kiln", "score": 0.5}]
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
USER_MESSAGE = Message("user", "  How hot\nis the\u200b kiln? ")
ANSWER_MESSAGE = Message("assistant", "1,200 degrees.", {"sources": SOURCES, "usage": USAGE, "model": "m"})
Row = dict[str, Any]


def save_session(services: Services, actor: Actor, *messages: Message, session_id: str | None = None) -> str:
    assert actor.org is not None
    place = Session(session_id, actor.org.id, None)
    turn = messages or (USER_MESSAGE, ANSWER_MESSAGE)
    return sessions.save_turn(services.database, actor.principal, place, turn)


def get_rows(actor: Actor, path: str = PATH, **more: Any) -> list[Row]:
    response = actor.request("GET", path, **more)
    assert response.status_code == 200, response.text
    rows: list[Row] = response.json()
    return rows


def test_sessions_are_listed_in_the_contract_s_form(services: Services, people: People):
    first, second = save_session(services, people.ann), save_session(services, people.ann)
    save_session(services, people.ann, Message("user", "And now?"), session_id=first)
    rows = get_rows(people.ann)
    assert rows == get_rows(people.ann, "/v1/chat/sessions")
    assert [(row["id"], row["message_count"]) for row in rows] == [(first, 3), (second, 2)]
    assert [row["id"] for row in get_rows(people.ann, f"{PATH}?limit=1&offset=1")] == [second]
    row = rows[1]
    assert row.pop("created_at") <= row.pop("last_message_at")
    # Of the first question, on one line, what shows.
    title = "How hot is the kiln?"
    assert row == {
        "id": second, "org_id": people.acme.id, "user_id": people.ann.id, "collection_id": None,
        "title": title, "message_count": 2,
    }  # fmt: skip
    assert get_rows(people.bob) == []


def test_messages_are_read_with_their_sources(services: Services, people: People):
    session = save_session(services, people.ann)
    question, answer = rows = get_rows(people.ann, f"{PATH}/{session}/messages")
    assert rows == get_rows(people.ann, f"/v1/chat/sessions/{session}/messages")
    assert set(question) == {"id", "session_id", "role", "content", "created_at"}
    assert (question["role"], question["content"]) == ("user", USER_MESSAGE.content)
    assert (answer["role"], answer["content"]) == ("assistant", ANSWER_MESSAGE.content)
    assert (answer["sources"], answer["usage"]) == (SOURCES, USAGE)
    assert UUID(question["id"]) != UUID(answer["id"])
    assert question["session_id"] == answer["session_id"] == session
    (second,) = get_rows(people.ann, f"{PATH}/{session}/messages?limit=1&offset=1")
    assert second["id"] == answer["id"]


ANSWER = {"role": "assistant", "content": "1,200 degrees."}
QUESTION = {"role": "user", "content": "How hot is the kiln?"}


def test_messages_are_stored_without_a_search(services: Services, people: People):
    (home,) = people.ann.rpc("rag_create_collection", {"name": "kilns"}).json()
    body = {"messages": [QUESTION, ANSWER], "collection_id": home["id"]}
    session = json_of(people.ann.post(PATH, body), 201)["session_id"]
    added = people.ann.post(f"/v1/chat/sessions/{session}/messages", {"messages": [QUESTION]})
    assert (added.status_code, added.json()) == (201, {"session_id": session})
    rows = get_rows(people.ann, f"{PATH}/{session}/messages")
    assert [{"role": row["role"], "content": row["content"]} for row in rows] == [QUESTION, ANSWER, QUESTION]
    assert "sources" not in rows[1]
    (listed,) = get_rows(people.ann)
    assert (listed["title"], listed["message_count"]) == ("How hot is the kiln?", 3)
    assert listed["collection_id"] == home["id"]
    # A turn of the chat continues the session.
    place = sessions.open_session(services.database, people.ann.principal, session, None)
    assert [message.content for message in place.messages] == [row["content"] for row in rows]


def test_a_session_may_begin_with_an_answer(people: People):
    body = json_of(people.ann.post(PATH, {"messages": [ANSWER]}), 201)
    assert get_rows(people.ann)[0]["title"] == ""
    added = people.ann.post(f"{PATH}/{body['session_id']}/messages", {"messages": [ANSWER, QUESTION]})
    assert added.status_code == 201, added.text
    assert get_rows(people.ann)[0]["title"] == QUESTION["content"]


def test_a_client_stores_no_sources(people: People):
    """Only answers over documents have them."""
    forged = {"sources": SOURCES, "usage": USAGE, "details": {"sources": SOURCES}}
    session = people.ann.post(PATH, {"messages": [{**ANSWER, **forged}]}).json()["session_id"]
    people.ann.post(f"{PATH}/{session}/messages", {"messages": [{**ANSWER, **forged}]})
    rows = get_rows(people.ann, f"{PATH}/{session}/messages")
    assert [set(row) for row in rows] == [{"id", "session_id", "role", "content", "created_at"}] * 2


def test_a_session_is_deleted(services: Services, people: People):
    first, second = save_session(services, people.ann), save_session(services, people.ann)
    for path in (f"{PATH}/{first}", f"/v1/chat/sessions/{second}"):
        response = people.ann.request("DELETE", path)
        assert (response.status_code, response.content) == (204, b"")
        assert error(people.ann.request("DELETE", path), 404)["code"] == "session_not_found"
    assert get_rows(people.ann) == []
