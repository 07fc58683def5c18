"""Attacks using up other users' rate limits."""

from tests.actors import hit_arguments
from tests.isolation.bad_tokens import BAD_TOKENS
from tests.isolation.victim_documents import HTTP_ROUTES, QUESTION, Library, assert_refused


def test_another_user_s_rate_limit_cannot_be_spent(library: Library):
    """Ann spends all of hers, at the door where one can: the others have theirs."""
    people = library.people
    assert people.ann.rpc("rag_check_rate_limit", hit_arguments(amount=60)).status_code == 200
    for route in HTTP_ROUTES:
        answer = library.ask(route, people.ann.headers())
        assert_refused(answer, 429, library)
        assert answer.headers["X-RateLimit-Remaining"] == "0"
        assert int(answer.headers["Retry-After"]) >= 1
    for actor in (people.alf, people.bob):
        answer = actor.search(QUESTION)
        assert (answer.status_code, answer.headers["X-RateLimit-Remaining"]) == (200, "59")


def test_requests_cannot_be_counted_in_another_user_s_name(library: Library):
    """No header names who pays."""
    people = library.people
    forged = dict.fromkeys(("X-User-Id", "sub", "user_id"), people.bob.id) | {"X-Forwarded-For": "10.0.0.1"}
    for _ in range(3):
        assert library.ask("/api/rag/search", people.ann.headers() | forged).status_code == 200
    assert people.bob.search(QUESTION).headers["X-RateLimit-Remaining"] == "59"
    assert people.ann.search(QUESTION).headers["X-RateLimit-Remaining"] == "56"


def test_a_refused_token_costs_no_quota(library: Library):
    people = library.people
    for fault in ("expired", "alg none", "another secret", "a payload changed after signing"):
        token = BAD_TOKENS[fault](people.ann)
        assert library.ask("/api/rag/search", people.ann.headers(token)).status_code == 401
    assert people.ann.search(QUESTION).headers["X-RateLimit-Remaining"] == "59"
