"""Tokens of third-party issuers, and every confusion of one issuer with another."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from jose import jwt

from local import access_tokens
from shared.access.jwks import KeySet
from shared.access.jwt_verifier import INVALID, NO_ROLE, SEND_ANOTHER, Issuer, Verifier, third_party_user_id
from shared.access.token_signer import Signer, principal_at_end
from shared.errors import Unauthorized
from shared.types import Principal
from tests.isolation.bad_tokens import encoded
from tests.key_pairs import es256, public, rs256, shared_secrets_of
from tests.shared.access.test_jwt_key_pairs import header_of, under
from tests.shared.access.test_jwt_verifier import SECRET, URL, USER, signed
from tests.stand_in_server import Reply, StandIn

OWN, CLERK, AUTH0 = access_tokens.issuer(URL), "https://app.clerk.example", "https://app.auth0.example/"
KEYS = {OWN: es256("own"), CLERK: rs256("clerk"), AUTH0: rs256("auth0")}
FOREIGN_KEY = f"The token's signing key does not belong to this project. {SEND_ANOTHER}"
ALGORITHM = f"The token's signature algorithm is not accepted. {SEND_ANOTHER}"


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    """Accepts Supabase Auth's tokens by secret and key pair, Clerk's without and Auth0's with an audience."""
    with StandIn() as own, StandIn() as clerk, StandIn() as auth0:
        for server, issuer in ((own, OWN), (clerk, CLERK), (auth0, AUTH0)):
            server.replies(Reply(json={"keys": [public(KEYS[issuer])]}))
        third_parties = [
            Issuer(CLERK, KeySet(clerk.url), None, ["RS256"]),
            Issuer(AUTH0, KeySet(auth0.url), "app", ["RS256"]),
        ]
        yield Verifier(SECRET, KeySet(own.url), OWN, third_parties)


def claims(issuer: str, subject: str = "user_2abc", **more: Any) -> dict[str, Any]:
    now = int(time.time())
    given = {"iss": issuer, "sub": subject, "role": "authenticated", "iat": now, "exp": now + 60, **more}
    return {name: value for name, value in given.items() if value is not None}


def token(issuer: str, subject: str = "user_2abc", **more: Any) -> str:
    return under(KEYS[issuer], header_of(KEYS[issuer]), claims(issuer, subject, **more))


def user(verifier: Verifier, token: str) -> str:
    return verifier.principal(f"Bearer {token}").user_id


def refusal(verifier: Verifier, token: str) -> str:
    with pytest.raises(Unauthorized) as raised:
        user(verifier, token)
    return str(raised.value)


def test_a_user_has_an_id_of_issuer_and_subject(verifier: Verifier):
    by_clerk = user(verifier, token(CLERK))
    # An id token of Auth0.
    more: dict[str, Any] = {"aud": ["app", "x"], "at_hash": "x", "nonce": "y"}
    by_auth0 = user(verifier, token(AUTH0, **more))
    assert by_clerk == third_party_user_id(CLERK, "user_2abc") == "26a2d9f4-c263-81e8-9dec-9374cfbe0e93"
    assert by_auth0 == third_party_user_id(AUTH0, "user_2abc")
    assert by_clerk != by_auth0
    assert user(verifier, token(OWN, USER, aud="authenticated")) == USER


def test_the_id_of_a_user_of_supabase_is_another_user_s_subject_elsewhere(verifier: Verifier):
    assert user(verifier, token(CLERK, USER)) != USER


def test_a_key_serves_its_own_issuer_alone(verifier: Verifier):
    for signer, key in KEYS.items():
        for issuer in KEYS.keys() - {signer}:
            audience = {OWN: "authenticated", AUTH0: "app"}.get(issuer)
            payload = claims(issuer, USER, aud=audience)
            # PostgREST, whose one key set has all keys, cannot tell these.
            expected = ALGORITHM if signer == OWN else FOREIGN_KEY
            assert refusal(verifier, under(key, header_of(key), payload)) == expected
            # With the key id of the issuer that it claims.
            renamed = {**key, "kid": KEYS[issuer]["kid"]}
            message = refusal(verifier, under(renamed, header_of(renamed), payload))
            assert message in (INVALID, FOREIGN_KEY, ALGORITHM)


def test_the_project_s_secret_and_public_keys_sign_for_no_third_party(verifier: Verifier):
    for issuer in (CLERK, AUTH0):
        payload = claims(issuer, aud="app")
        assert refusal(verifier, access_tokens.sign(SECRET, payload)) == ALGORITHM
        for name, secret in shared_secrets_of(KEYS[issuer]).items():
            header = {"alg": "HS256", "kid": KEYS[issuer]["kid"]}
            message = refusal(verifier, signed(header, payload, secret.decode("latin-1")))
            assert message == ALGORITHM, name
        for algorithm in ("none", "None", "PS256", "ES256"):
            unsigned = f"{encoded({'alg': algorithm, 'kid': KEYS[issuer]['kid']})}.{encoded(payload)}."
            assert refusal(verifier, unsigned) == ALGORITHM


def test_the_claims_are_checked_as_those_of_supabase_auth(verifier: Verifier):
    wrong: list[dict[str, Any]] = [
        {"exp": int(time.time()) - 60}, {"exp": None}, {"nbf": int(time.time()) + 60}, {"sub": None},
        {"sub": ""}, {"sub": 7}, {"role": None}, {"role": "anon"}, {"role": "service_role"},
        {"role": "rag_worker"}, {"rag": {"metrics": True}}, {"rag": None, "aud": "another"}, {"aud": None},
        {"aud": ["another"]},
    ]  # fmt: skip
    for changes in wrong:
        refusal(verifier, token(AUTH0, **{"aud": "app", **changes}))


def test_a_subject_that_is_no_text_of_postgres_is_refused(verifier: Verifier):
    for subject in ("user\0", "user\ud800", "\udfffuser"):
        assert refusal(verifier, token(CLERK, subject)) == INVALID
    assert user(verifier, token(CLERK, "user\U0001f600"))


def test_a_token_without_the_role_names_the_claim(verifier: Verifier):
    for role in (None, "user"):
        assert refusal(verifier, token(CLERK, role=role)) == NO_ROLE


def test_a_token_that_is_signed_anew_has_the_user_s_id_and_not_the_subject():
    """Otherwise a subject that is the id of a user of Supabase would become that user."""
    signer = Signer(KEYS[OWN], OWN, "authenticated")
    good = token(CLERK, USER, exp=1)
    renewed = principal_at_end(signer, Principal(third_party_user_id(CLERK, USER), good)).token
    assert jwt.get_unverified_claims(renewed)["sub"] == third_party_user_id(CLERK, USER)
