"""Sessions, on the real stack: what a turn is kept as, whatever a model says."""

import pytest

from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.types import Message, Session
from shared.errors import Conflict, InvalidRequest, NotFound
from shared.services import Services
from tests.actors import NOBODYS, Actor
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


def test_a_missing_resource_is_named_in_the_error(services: Services, people: People):
    database, caller = services.database, people.ann.principal
    with pytest.raises(NotFound) as missing:
        sessions.open_session(database, caller, NOBODYS, None)
    assert (missing.value.code, missing.value.details) == ("session_not_found", {"session_id": NOBODYS})
    with pytest.raises(NotFound) as missing:
        sessions.open_session(database, caller, None, NOBODYS)
    assert (missing.value.code, missing.value.details) == ("collection_not_found", {"collection_id": NOBODYS})
    with pytest.raises(NotFound, match="session"):
        sessions.save_turn(database, caller, Session(NOBODYS, people.acme.id, None), [Message("user", "x")])
    with pytest.raises(InvalidRequest, match="several orgs"):
        sessions.open_session(database, people.kim.principal, None, None)
    (home,) = people.ann.rpc("rag_create_collection", {"name": "home"}).json()
    place = sessions.open_session(database, caller, None, home["id"])
    session = sessions.save_turn(database, caller, place, [Message("user", "x")])
    with pytest.raises(Conflict) as other:
        sessions.open_session(database, caller, session, NOBODYS)
    assert other.value.code == "session_of_another_collection"
