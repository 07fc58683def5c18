"""Attacks with a token that is none."""

import pytest

from tests.isolation.bad_tokens import BAD_TOKENS, BAD_USERS
from tests.isolation.victim_documents import (
    HTTP_ROUTES,
    MATCH,
    Library,
    assert_refused,
    assert_tells_nothing,
)


def test_an_invalid_token_is_refused_over_http(subtests: pytest.Subtests, shared_library: Library):
    ann = shared_library.people.ann
    for fault, make in {**BAD_TOKENS, **BAD_USERS}.items():
        with subtests.test(fault=fault):
            answer = shared_library.ask(HTTP_ROUTES[0], ann.headers(make(ann)))
            assert_refused(answer, 401, shared_library)
            assert answer.json()["error"]["code"] == "unauthorized"


def test_an_invalid_token_is_refused_through_postgrest(subtests: pytest.Subtests, shared_library: Library):
    ann = shared_library.people.ann
    for fault, make in BAD_TOKENS.items():
        with subtests.test(fault=fault):
            answer = shared_library.ask(MATCH, ann.headers(make(ann)))
            assert answer.status_code == 401, answer.text
            assert_tells_nothing(answer, shared_library)


def test_a_token_without_a_user_finds_nothing_through_postgrest(
    subtests: pytest.Subtests, shared_library: Library
):
    """It lets some of these in, as themselves: then there is nothing to see but one's own."""
    for fault in BAD_USERS:
        with subtests.test(fault=fault):
            people = shared_library.people
            token = BAD_USERS[fault](people.bob)
            answer = shared_library.ask(MATCH, people.bob.headers(token))
            if fault in ("another issuer", "no issuer", "no expiry", "no audience"):
                assert shared_library.secrets(MATCH, people.bob, token) == {"bolt"}
            elif answer.status_code == 200:
                assert answer.json() == []
            else:
                assert answer.status_code in (400, 401, 403)
                assert_tells_nothing(answer, shared_library, people.bob)


@pytest.mark.parametrize("role", ["postgres", "authenticator", "supabase_admin", "pg_read_all_data"])
def test_an_unexpected_role_is_refused_through_postgrest(shared_library: Library, role: str):
    """Even if the secret were out: the login role was granted three roles, and can become no other."""
    people = shared_library.people
    answer = shared_library.ask(MATCH, people.bob.headers(people.bob.token(role=role)))
    assert answer.status_code in (400, 401, 403), answer.text
    assert_tells_nothing(answer, shared_library, people.bob)
