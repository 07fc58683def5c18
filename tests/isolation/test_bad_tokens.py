"""Attacks with a token that is none."""

import pytest

from tests.isolation.bad_tokens import BAD_USERS
from tests.isolation.victim_documents import MATCH, Library, assert_tells_nothing


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


def test_an_unexpected_role_is_refused_through_postgrest(shared_library: Library):
    """Even if the secret were out: the login role was granted three roles, and can become no other."""
    bob = shared_library.people.bob
    for role in ("postgres", "authenticator", "supabase_admin", "pg_read_all_data"):
        answer = shared_library.ask(MATCH, bob.headers(bob.token(role=role)))
        assert answer.status_code in (400, 401, 403), answer.text
        assert_tells_nothing(answer, shared_library, bob)
