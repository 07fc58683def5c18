"""Sessions, on the real stack: what a turn is kept as, whatever a model says."""

import pytest

from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.types import Message, Session
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People


def save_session(services: Services, actor: Actor, *messages: Message) -> Session:
    """What the next turn is reminded of."""
    assert actor.org is not None
    session = sessions.save_turn(
        services.database, actor.principal, Session(None, actor.org.id, None), messages
    )
    return sessions.open_session(services.database, actor.principal, session, None)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("How\r\n hot? ", "How hot?"),
        ("x" * 201, "x" * 200),
        (f"{'x' * 199} y", "x" * 199),
        ("a\u202eb\ud800\0", "ab?"),
        ("\u200b", ""),
    ],
)
def test_a_session_is_titled_by_the_first_question(
    services: Services, people: People, question: str, title: str
):
    save_session(services, people.ann, Message("system", "Be brief."), Message("user", question))
    save_session(services, people.ann, Message("assistant", "So."))
    listed = sessions.list_sessions(services.database, people.ann.principal, 10, 0)
    assert [row["title"] for row in listed] == ["", title]


def test_characters_that_postgres_cannot_store_are_removed_from_an_answer(services: Services, people: People):
    session = save_session(services, people.ann, Message("assistant", "a\0b\ud800", {"model": "m"}))
    assert session.messages == (Message("assistant", "ab?"),)
    (long,) = save_session(services, people.ann, Message("assistant", "é" * 100_001)).messages
    assert len(long.content) == 100_000
