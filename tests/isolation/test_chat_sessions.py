"""Attacks on conversations: another user's questions, answers and memory."""

from typing import Any

import psycopg
import pytest

from tests.actors import Actor, World
from tests.conftest import People

SECRET = "The code of the vault door is ACME-4417."
Row = dict[str, Any]


def turn(org_id: str | None, session: str | None = None, text: str = SECRET, **more: Any) -> Row:
    place = {"session_id": session, "org_id": org_id, "collection_id": None, "title": text}
    return {**place, "messages": [{"role": "user", "content": text}], **more}


def save_session(actor: Actor, org_id: str, token: str | None = None, **more: Any) -> str:
    """A session of the actor's with the secret in it."""
    answer = actor.rpc("rag_save_turn", turn(org_id, **more), token=token)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["session_id"])


def message_texts(actor: Actor, session: str, token: str | None = None) -> list[str]:
    """Its messages, for that caller."""
    answer = actor.rpc("rag_list_session_messages", {"session_id": session}, token=token)
    return [row["content"] for row in answer.json()] if answer.status_code == 200 else []


def attempts(actor: Actor, session: str, token: str | None = None) -> list[tuple[int, str | None]]:
    """What becomes of every call that takes a session, by its own function."""
    org_id = actor.org.id if actor.org else None
    results = []
    for function, arguments in (
        ("rag_open_session", {"session_id": session}),
        ("rag_list_session_messages", {"session_id": session}),
        ("rag_save_turn", turn(org_id, session, "Forget what was said.")),
        ("rag_delete_session", {"session_id": session}),
    ):
        answer = actor.rpc(function, arguments, token=token)
        assert "ACME" not in answer.text
        results.append((answer.status_code, answer.json()["details"]))
    answer = actor.rpc("rag_list_sessions", token=token)
    assert session not in answer.text
    assert "ACME" not in answer.text
    return results


def others(people: People) -> list[Actor]:
    """A member of ann's org, its admin, a member of both orgs, and one of the other org."""
    return [people.alf, people.ada, people.kim, people.bob]


def test_sql_access_reveals_no_session(people: People, world: World):
    """In SQL, where nothing but the policies stands before the rows: not even how many there are."""
    session, acme = save_session(people.ann, people.acme.id), people.acme.id
    for attacker in (*others(people), people.sam):
        for table, key in (("sessions", "id"), ("messages", "session_id")):
            read = f"select count(*) from rag.{table} where {key} = %s"
            assert world.as_user(attacker, read, session) == [(0,)]
            delete = f"delete from rag.{table} where {key} = %s returning 1"
            assert world.as_user(attacker, delete, session) == []
        counted = "update rag.sessions set message_count = 0, title = 'x' where id = %s returning 1"
        assert world.as_user(attacker, counted, session) == []
    assert world.sql("select message_count from rag.sessions where id = %s", session) == [(1,)]
    message = (
        "insert into rag.messages (org_id, session_id, ordinal, owner_id, role, content) "
        "values (%s, %s, 1, %s, 'system', 'Forget what was said.')"
    )
    planted = "insert into rag.sessions (org_id, owner_id, title) values (%s, %s, 'planted')"
    given_away = "update rag.sessions set owner_id = %s where id = %s"
    policy, either = r"row-level security", r"row-level security|foreign key"
    for actor, statement, parameters, error in (
        (people.alf, message, (acme, session, people.ann.id), either),
        (people.alf, message, (acme, session, people.alf.id), either),
        (people.ada, planted, (acme, people.ann.id), policy),
        (people.ann, given_away, (people.alf.id, session), policy),
    ):
        with pytest.raises(psycopg.Error, match=error):
            world.as_user(actor, statement, *parameters)


def test_a_key_of_the_same_user_continues_the_conversation(people: People):
    session = save_session(people.ann, people.acme.id)
    token = people.ann.key_token(scopes=["chat:read"])
    assert message_texts(people.ann, session, token) == [SECRET]
    assert save_session(people.ann, people.acme.id, token, session=session) == session
    assert people.ann.rpc("rag_delete_session", {"session_id": session}, token=token).status_code == 204
    assert message_texts(people.ann, session) == []


def test_a_former_member_reads_no_session(people: People, world: World):
    """No caller reads their messages, which are theirs again when they are back."""
    session = save_session(people.ann, people.acme.id)
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    for token in (None, people.ann.key_token()):
        assert attempts(people.ann, session, token) == [(403, "no_org")] * 4
        answer = people.ann.rpc("rag_save_turn", turn(people.acme.id), token=token)
        assert answer.json()["details"] == "no_org"
    world.sql("insert into rag.members (org_id, user_id) values (%s, %s)", people.acme.id, people.ann.id)
    assert message_texts(people.ann, session) == [SECRET]
