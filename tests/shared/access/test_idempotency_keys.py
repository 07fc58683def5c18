"""Requests sent again: worked on once, answered the same, each as its caller."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.access.idempotency_keys import Reservation, StoredResponse, begin
from shared.errors import Conflict, InvalidRequest, RateLimited
from shared.services import Services
from shared.types import Principal
from tests.actors import World
from tests.conftest import People

BODY = b'{"question": "who?"}'


def reserve(
    services: Services, people: People, key: str = "a key", body: bytes = BODY, **more: Any
) -> Reservation:
    """Ann's claim."""
    begun = begin(
        services.database, people.ann.principal, people.acme.id, key, body, **{"lease_seconds": 60, **more}
    )
    assert isinstance(begun, Reservation)
    return begun


def refusal(services: Services, people: People, key: str = "a key", body: bytes = BODY) -> Conflict:
    with pytest.raises(Conflict) as conflict:
        begin(services.database, people.ann.principal, people.acme.id, key, body, 60)
    return conflict.value


def test_a_response_is_replayed_word_for_word(services: Services, people: People):
    answers: list[Any] = [{"z": 1.0, "a": ["\0", "é", {"b": None}]}, {}, [], "text", 7]
    for answer in answers:
        key = f"key of {answer!r}".encode("ascii", "replace").decode()
        assert reserve(services, people, key).keep(200, answer, "req_1")
        for _ in range(2):
            second = begin(services.database, people.ann.principal, people.acme.id, key, BODY, 60)
            assert second == StoredResponse(200, answer, "req_1")
            assert isinstance(second, StoredResponse)
            # The order of the keys too.
            assert not isinstance(answer, dict) or list(second.body) == list(answer)


def test_a_response_that_the_database_rejects_can_be_repeated_at_once(services: Services, people: People):
    assert reserve(services, people).keep(-1, {}, "req_1") is False
    assert reserve(services, people).keep(200, {}, "req_1")


def test_one_of_twenty_concurrent_requests_runs(services: Services, people: People):
    ann = people.ann.principal

    def ask(number: int) -> object:
        try:
            return begin(services.database, ann, people.acme.id, "a key", BODY, 60)
        except Conflict as conflict:
            return conflict.code

    with ThreadPoolExecutor(20) as pool:
        rows = list(pool.map(ask, range(20)))
    assert len([one for one in rows if isinstance(one, Reservation)]) == 1
    assert rows.count("request_in_progress") == 19


def test_a_released_key_can_be_used_again(services: Services, people: People):
    claim = reserve(services, people)
    claim.release()
    second = reserve(services, people)
    assert not claim.keep(200, {}, "r"), "whose claim it was no longer"
    claim.release()
    assert refusal(services, people).code == "request_in_progress"
    assert second.keep(200, {}, "r")


def test_an_expired_claim_passes_to_the_next_request(services: Services, people: People, world: World):
    dead = reserve(services, people, lease_seconds=1)
    # The lease of one second, and no more than that, ended a tenth of a second ago.
    earlier = "update rag.stored_responses set due_at = due_at - interval '1.1 seconds' where org_id = %s"
    world.sql(earlier, people.acme.id)
    assert refusal(services, people, body=b"another").code == "idempotency_mismatch"
    alive = reserve(services, people)
    assert not dead.keep(200, {"who": "dead"}, "r")
    assert alive.keep(200, {"who": "alive"}, "r")
    second = begin(services.database, people.ann.principal, people.acme.id, "a key", BODY, 60)
    assert second == StoredResponse(200, {"who": "alive"}, "r")


def test_a_response_expires_after_24_hours(services: Services, people: People, world: World):
    for key in ("one", "two", "three"):
        reserve(services, people, key).keep(200, {}, "r")
    age = "update rag.stored_responses set created_at = created_at - interval '24 hours' where org_id = %s"
    world.sql(age, people.acme.id)
    reserve(services, people, "one", b"another")
    rows = world.sql("select count(*) from rag.stored_responses where org_id = %s", people.acme.id)
    assert rows == [(1,)], "the others are forgotten on the way"


# So many of ann's, a second apart, the last of them at that moment.
SOME = """
insert into rag.stored_responses (org_id, owner_id, caller_id, key_hash, body_hash, claim, due_at, created_at)
select %s, %s, %s, encode(sha256(number::text::bytea), 'hex'), repeat('0', 64), gen_random_uuid(), now(),
  now() - %s::interval - make_interval(secs => number)
from generate_series(1, %s) as number
"""


def test_one_call_deletes_at_most_a_hundred_expired_responses(
    services: Services, people: People, world: World
):
    world.sql(SOME, people.acme.id, people.ann.id, people.ann.id, "2 days", 150)
    for left in (51, 2):
        reserve(services, people, f"key {left}")
        rows = world.sql("select count(*) from rag.stored_responses where org_id = %s", people.acme.id)
        assert rows == [(left,)]


def test_a_user_with_ten_thousand_responses_a_day_stores_no_more(
    services: Services, people: People, world: World
):
    """Rather than lose one: ann's are hers alone, alf goes on, and stored responses are replayed."""
    assert reserve(services, people).keep(200, {}, "r")
    world.sql(SOME, people.acme.id, people.ann.id, people.ann.id, "1 minute", 9_999)
    with pytest.raises(RateLimited):
        reserve(services, people, "one more")
    begin(services.database, people.alf.principal, people.acme.id, "a key", BODY, 60)
    replay = begin(services.database, people.ann.principal, None, "a key", BODY, 60)
    assert replay == StoredResponse(200, {}, "r")
    world.sql("delete from rag.stored_responses where created_at < now() - interval '2 hours 47 minutes'")
    reserve(services, people, "one more")


def test_a_response_from_hidden_documents_is_not_replayed(services: Services, people: People):
    document = people.ann.put([[1.0] + [0.0] * 1535])
    rows = people.ann.match([1.0] + [0.0] * 1535)
    assert reserve(services, people).keep(200, {"a": 1}, "r", [row["chunk_id"] for row in rows])
    second = begin(services.database, people.ann.principal, people.acme.id, "a key", BODY, 60)
    assert second == StoredResponse(200, {"a": 1}, "r")
    services.database.call(people.ann.principal, "rag_delete_document", {"document_id": document})
    assert reserve(services, people).keep(200, {"a": 2}, "r")


def test_a_response_above_250_kb_is_not_stored_and_may_run_again(services: Services, people: People):
    claim = reserve(services, people)
    assert not claim.keep(200, {"text": "é" * 125_001}, "r")
    assert reserve(services, people).keep(200, {"text": "x" * 249_000}, "r")


def test_a_malformed_key_is_refused_by_name(services: Services, people: People):
    """Ann's."""
    for key in ("", " ", "a\n", "é", "\x7f", " x", "a" * 256):
        with pytest.raises(InvalidRequest) as invalid:
            begin(services.database, people.ann.principal, people.acme.id, key, BODY, 60)
        assert invalid.value.code == "invalid_idempotency_key"
        assert invalid.value.details == {"field": "Idempotency-Key"}


def test_neither_key_nor_body_is_stored(services: Services, people: People, world: World):
    reserve(services, people, "the-secret-key", b"the secret question")
    ((row,),) = world.sql(
        "select stored_responses::text from rag.stored_responses where org_id = %s", people.acme.id
    )
    assert "secret" not in row


def test_a_response_that_cannot_be_stored_is_still_returned(services: Services, people: People):
    """Ann's token is invalid by the time that she is answered."""
    ann = people.ann.principal
    tokens = iter([ann])

    def caller() -> Principal:
        return next(tokens, Principal(ann.user_id, "none"))

    begun = begin(services.database, caller, people.acme.id, "a key", BODY, 60)
    assert isinstance(begun, Reservation)
    assert not begun.keep(200, {}, "r")
    begun.release()
