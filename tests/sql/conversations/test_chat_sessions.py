"""Sessions and their messages, straight through PostgREST and in SQL: content, order, within
which bounds, and what becomes of it when what it hangs on goes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.actors import NOBODYS, Actor, World
from tests.conftest import People
from tests.sql.sql_as_user import become

Row = dict[str, Any]
USER_MESSAGE = {"role": "user", "content": "How?"}
ANSWER_MESSAGE = {"role": "assistant", "content": "So.", "details": {"sources": [{"document_id": NOBODYS}]}}


def message(number: int) -> Row:
    return {"role": "user", "content": str(number)}


def ok(answer: Any) -> Any:
    assert answer.status_code in (200, 204), answer.text
    return answer.json() if answer.content else None


def refusal(answer: Any) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["details"]


def save_turn(actor: Actor, session: str | None = None, *messages: Row, **more: Any) -> Any:
    org = actor.org.id if actor.org and session is None else None
    turn: Row = {"session_id": session, "org_id": org, "collection_id": None, "title": "How?"}
    turn["messages"] = list(messages or (USER_MESSAGE, ANSWER_MESSAGE))
    return actor.rpc("rag_save_turn", turn | more)


def save_session(actor: Actor, session: str | None = None, *messages: Row, **more: Any) -> str:
    """The id of the session that has them now."""
    return str(ok(save_turn(actor, session, *messages, **more))["session_id"])


def collection(actor: Actor, name: str = "notes") -> str:
    org = actor.org.id if actor.org else None
    return str(ok(actor.rpc("rag_create_collection", {"name": name, "org_id": org}))[0]["id"])


def open_session(actor: Actor, session: str | None = None, **more: Any) -> Row:
    row: Row = ok(actor.rpc("rag_open_session", {"session_id": session, **more}))
    return row


def list_sessions(actor: Actor, **page: Any) -> list[Row]:
    rows: list[Row] = ok(actor.rpc("rag_list_sessions", page))
    return rows


def messages(actor: Actor, session: str, **page: Any) -> list[Row]:
    rows: list[Row] = ok(actor.rpc("rag_list_session_messages", {"session_id": session, **page}))
    return rows


def test_a_session_is_opened_with_its_latest_messages(people: People):
    session = save_session(people.ann, None, *map(message, range(200)))
    row = open_session(people.ann, session)
    assert row["messages"] == [message(number) for number in range(100, 200)]
    assert (row["session_id"], row["org_id"], row["collection_id"]) == (session, people.acme.id, None)
    assert (row["title"], row["message_count"]) == ("How?", 200)
    assert open_session(people.ann, session, history=2)["messages"] == [message(198), message(199)]
    assert open_session(people.ann, session, history=0)["messages"] == []


def test_history_is_limited_and_newest_first(people: People, world: World):
    """Counted in bytes: of texts that are too far back only the sizes are read."""
    longest = {"role": "user", "content": "\U0001f525" * 100_000}
    whole = save_session(people.ann, None, USER_MESSAGE, longest)
    assert open_session(people.ann, whole)["messages"] == [longest]
    session = save_session(people.ann, None, *(message(number) for number in range(3)))
    world.sql("update rag.messages set content = repeat('x', 100000) where session_id = %s", session)
    assert len(open_session(people.ann, session)["messages"]) == 3
    save_session(people.ann, session, {"role": "user", "content": "x" * 100_000}, message(4))
    results = open_session(people.ann, session)["messages"]
    assert [len(message["content"]) for message in results] == [100_000, 100_000, 100_000, 1]


def test_without_a_session_the_id_is_returned_and_none_created(people: People):
    nowhere: Row = dict.fromkeys(("session_id", "collection_id", "title"))
    nowhere |= {"message_count": 0, "messages": []}
    assert open_session(people.ann) == {**nowhere, "org_id": people.acme.id}
    home = collection(people.kim)
    by_name = {**nowhere, "org_id": people.acme.id, "collection_id": home}
    assert open_session(people.kim, collection_id=home) == by_name
    assert list_sessions(people.ann) == list_sessions(people.kim) == []


def test_a_turn_needs_an_accessible_collection(people: People, world: World):
    home, other, theirs = collection(people.ann), collection(people.ann, "other"), collection(people.bob)
    session = save_session(people.ann, collection_id=home)
    no_collection, no_session = (404, "collection_not_found"), (404, "session_not_found")
    for actor, arguments, error in (
        (people.ann, {"session_id": session, "collection_id": other}, (409, "session_of_another_collection")),
        (people.ann, {"session_id": NOBODYS}, no_session),
        (people.ann, {"session_id": NOBODYS, "collection_id": home}, no_session),
        (people.ann, {"collection_id": theirs}, no_collection),
        (people.ann, {"collection_id": NOBODYS}, no_collection),
        (people.kim, {}, (400, "org_required")),
        (people.sam, {}, (403, "no_org")),
        (people.ann, {"history": 1001}, (400, "invalid_history")),
        (people.ann, {"history": -1}, (400, "invalid_history")),
        (people.ann, {"history": None}, (400, "invalid_history")),
    ):
        assert refusal(actor.rpc("rag_open_session", arguments)) == error, arguments
    # One about all collections of an org, and a collection of the other.
    wide = save_session(people.kim, org_id=people.acme.id)
    arguments = {"session_id": wide, "collection_id": theirs}
    assert refusal(people.kim.rpc("rag_open_session", arguments)) == no_collection
    for place, error in (
        ({"collection_id": theirs}, no_collection),
        ({"org_id": people.bolt.id}, (404, "org_not_found")),
        ({"session_id": NOBODYS}, no_session),
    ):
        assert refusal(save_turn(people.ann, None, **place)) == error, place


TURNS: list[tuple[Any, int]] = [
    ([], 400), ([USER_MESSAGE] * 1001, 400), ("How?", 400), ([None], 400),
    ([{"role": "tool", "content": "x"}], 400), ([{"role": "user"}], 400),
    ([{"role": "user", "content": {"text": "x"}}], 400),
    ([{**USER_MESSAGE, "details": {"a": "x" * 70_000}}], 400), ([{**USER_MESSAGE, "content": "a\0b"}], 400),
    ([USER_MESSAGE, {**USER_MESSAGE, "content": "é" * 100_001}], 400),
    ([{**USER_MESSAGE, "content": "é" * 100_000}], 200), ([USER_MESSAGE] * 1000, 200),
]  # fmt: skip
TITLES: list[tuple[str | None, int]] = [
    ("x" * 200, 200), ("", 200), (None, 200), ("x" * 201, 400), ("a\u202eb", 400),
]  # fmt: skip


def test_the_content_of_a_message_and_a_title_are_validated(people: People, subtests: pytest.Subtests):
    turns: list[tuple[Row, int]] = [({"messages": text}, status) for text, status in TURNS]
    for fields, expected in [*turns, *(({"title": title}, status) for title, status in TITLES)]:
        with subtests.test(fields=str(fields)[:60]):
            before = len(list_sessions(people.ann))
            answer = save_turn(people.ann, None, **fields)
            assert answer.status_code == expected, answer.text
            assert len(list_sessions(people.ann)) == before + (expected == 200)


def test_sessions_are_ordered_by_their_latest_message(people: People):
    first, second, third = (save_session(people.ann) for _ in range(3))
    save_session(people.ann, first)
    assert [row["id"] for row in list_sessions(people.ann)] == [first, third, second]
    assert [row["id"] for row in list_sessions(people.ann, limit=1, offset=1)] == [third]
    assert list_sessions(people.ann, offset=3) == []
    assert [row["content"] for row in messages(people.ann, first, limit=1, offset=1)] == ["So."]
    for function, page in (
        ("rag_list_sessions", {"limit": 101}),
        ("rag_list_sessions", {"limit": 0}),
        ("rag_list_sessions", {"offset": -1}),
        ("rag_list_session_messages", {"session_id": first, "limit": 1001}),
        ("rag_list_session_messages", {"session_id": first, "limit": None}),
        ("rag_list_session_messages", {"session_id": first, "offset": -1}),
    ):
        assert people.ann.rpc(function, page).status_code == 400, page


def test_concurrent_turns_are_all_stored_in_order(people: People):
    session = save_session(people.ann)
    turns = [(message(number), message(-number)) for number in range(1, 13)]
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(lambda turn: save_session(people.ann, session, *turn), turns)) == {session}
    rows = messages(people.ann, session)[2:]
    assert [row["ordinal"] for row in rows] == list(range(2, 26))
    texts = [row["content"] for row in rows]
    pairs = sorted(zip(texts[::2], texts[1::2], strict=True))
    assert pairs == sorted((str(number), str(-number)) for number in range(1, 13))
    assert list_sessions(people.ann)[0]["message_count"] == 26


def test_a_turn_of_a_deleted_session_is_reported(people: People):
    """The turn waits for who deletes, and finds nothing to add to."""
    session = save_session(people.ann)
    with psycopg.connect(people.ann.stack.database_url()) as deleting, ThreadPoolExecutor(1) as pool:
        become(deleting, people.ann)
        deleting.execute("select public.rag_delete_session(%s)", [session])
        turn = pool.submit(save_turn, people.ann, session)
        while not deleting.execute(
            "select from pg_locks where not granted and transactionid = pg_current_xact_id()::xid"
        ).fetchall():
            assert not turn.done(), turn.result().text
        deleting.commit()
        assert refusal(turn.result()) == (404, "session_not_found")
    assert list_sessions(people.ann) == []


def test_a_session_outlives_its_collection_and_cannot_change_it(people: People):
    home, other = collection(people.ann), collection(people.ann, "other")
    session = save_session(people.ann, collection_id=home)
    ok(people.ann.rpc("rag_delete_collection", {"collection_id": home}))
    assert list_sessions(people.ann)[0]["collection_id"] is None
    assert open_session(people.ann, session)["collection_id"] is None
    assert open_session(people.ann, session, collection_id=other)["collection_id"] == other
    assert list_sessions(people.ann)[0]["collection_id"] is None
    # It narrows a turn, and not the session.
    save_session(people.ann, session, message(1), collection_id=other)
    assert list_sessions(people.ann)[0]["collection_id"] is None
    assert [row["content"] for row in messages(people.ann, session)] == ["How?", "So.", "1"]
    # A turn that began in a deleted session.
    assert refusal(save_turn(people.ann, None, collection_id=home)) == (404, "collection_not_found")


def rows_of(world: World, session: str) -> tuple[int, int]:
    count = "select count(*) from rag.{} where {} = %s"
    ((sessions,),) = world.sql(count.format("sessions", "id"), session)
    ((messages,),) = world.sql(count.format("messages", "session_id"), session)
    return sessions, messages


@pytest.mark.parametrize("gone", ["the session", "its user", "the org"])
def test_messages_are_deleted_with_their_session_user_or_org(people: People, world: World, gone: str):
    session, beside = save_session(people.ann), save_session(people.bob)
    assert rows_of(world, session) == (1, 2)
    statement, deleted = {
        "the session": ("select public.rag_delete_session(%s)", session),
        "its user": ("delete from auth.users where id = %s", people.ann.id),
        "the org": ("delete from rag.orgs where id = %s", people.acme.id),
    }[gone]
    if gone == "the session":
        world.as_user(people.ann, statement, deleted)
    else:
        world.sql(statement, deleted)
    assert rows_of(world, session) == (0, 0)
    assert rows_of(world, beside) == (1, 2)


def test_a_message_belongs_to_a_session_of_its_own_user(people: People, world: World):
    """Whatever the policies were."""
    session = save_session(people.ann)
    for owner, org in ((people.alf.id, people.acme.id), (people.ann.id, people.bolt.id)):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            world.sql(
                "insert into rag.messages (org_id, session_id, ordinal, owner_id, role, content) "
                "values (%s, %s, 2, %s, 'user', 'x')",
                org, session, owner,
            )  # fmt: skip
