"""Attacks using up other users' rate limits."""

from tests.isolation.victim_documents import QUESTION, Library


def test_requests_cannot_be_counted_in_another_user_s_name(library: Library):
    people = library.people
    forged = dict.fromkeys(("X-User-Id", "sub", "user_id"), people.bob.id) | {"X-Forwarded-For": "10.0.0.1"}
    for _ in range(3):
        assert library.ask("/api/rag/search", people.ann.headers() | forged).status_code == 200
    assert people.bob.search(QUESTION).headers["X-RateLimit-Remaining"] == "59"
    assert people.ann.search(QUESTION).headers["X-RateLimit-Remaining"] == "56"
