"""Tokens of a project that signs with key pairs, and every confusion of one way of signing with another."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jose import jwk, jwt

from local import access_tokens
from shared.access.jwks import KeySet
from shared.access.jwt_verifier import SEND_ANOTHER, Verifier
from shared.errors import KeysUnavailable, Unauthorized
from tests.key_pairs import es256, pem, public, rs256, shared_secrets_of
from tests.shared.access.test_jwt_verifier import JSON, SECRET, URL, USER, part, signed
from tests.stand_in_server import Reply, StandIn

EC, RSA = es256("an-ec-key"), rs256("an-rsa-key")
PAIRS = {"ES256": EC, "RS256": RSA}
FOREIGN_KEY = f"The token's signing key does not belong to this project. {SEND_ANOTHER}"


@dataclass(frozen=True)
class Project:
    """A verifier that accepts the secret's tokens and both pairs', and the endpoint of the pairs."""

    api: StandIn
    verifier: Verifier

    def user(self, token: str) -> str:
        return self.verifier.principal(f"Bearer {token}").user_id

    def refuses(self, token: str) -> str:
        """Why; the message repeats nothing of the token."""
        with pytest.raises(Unauthorized) as raised:
            self.user(token)
        assert raised.value.status == 401
        assert raised.value.__cause__ is None
        assert not [piece for piece in token.split(".") if len(piece) >= 8 and piece in str(raised.value)]
        return str(raised.value)

    @property
    def fetches(self) -> int:
        return len(self.api.requests)


def verifier(secret: str | None, keys: KeySet | None) -> Verifier:
    return Verifier(secret, keys, access_tokens.issuer(URL))


@pytest.fixture(scope="module")
def both() -> Iterator[Project]:
    """A project in the midst of its migration: the old secret and new keys are good."""
    with StandIn() as api:
        api.replies(Reply(json={"keys": [public(EC), public(RSA)]}))
        yield Project(api, verifier(SECRET, KeySet(api.url)))


def token(key: access_tokens.SigningKey, **claims: Any) -> str:
    return access_tokens.user_token(key, URL, USER, **claims)


def claims() -> dict[str, Any]:
    good: dict[str, Any] = jwt.get_unverified_claims(token(SECRET))
    return good


def under(key: dict[str, Any], header: dict[str, Any], payload: Any = None) -> str:
    """A token with any header, signed rightly by that private key."""
    message = f"{part(header)}.{part(claims() if payload is None else payload)}"
    signature: bytes = signer(json.dumps(key)).sign(message.encode())
    return f"{message}.{part(signature)}"


@cache
def signer(key: str) -> Any:
    """The private key, read once, since each reading checks the primes of an RSA key for 50 ms."""
    fields = json.loads(key)
    return jwk.construct(fields, fields["alg"])


def header_of(key: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"alg": key["alg"], "kid": key["kid"], "typ": "JWT", **more}


# -- valid tokens ---------------------------------------------------------------------------------------


def test_a_token_of_a_published_key_is_accepted(both: Project):
    for key in PAIRS.values():
        good = token(key)
        principal = both.verifier.principal(f"Bearer {good}")
        assert (principal.user_id, principal.token) == (USER, good)
        assert both.user(under(key, header_of(key))) == USER, "the hand-made one of these tests too"


def test_a_hosted_project_s_key_id_of_the_secret_is_accepted(both: Project):
    for kid in ("Ab3/dEf+gH1jKlMn", "zYx+WvU9tSrQ/pON", "a-name", "1"):
        assert both.user(signed({"alg": "HS256", "kid": kid}, claims())) == USER, kid


# -- one way of signing taken for another -------------------------------------------------------------------


def test_hs256_with_a_public_key_as_the_secret_is_refused(both: Project):
    digests = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}
    secrets = [(key, secret) for key in PAIRS.values() for secret in shared_secrets_of(key).values()]
    for key, secret in secrets:
        for algorithm in ("HS256", "ES256", "RS256", "HS384", "HS512"):
            digest = digests.get(algorithm, hashlib.sha256)
            for header in ({"alg": algorithm, "kid": key["kid"]}, {"alg": algorithm}):
                message = f"{part(header)}.{part(claims())}"
                signature = hmac.new(secret, message.encode(), digest).digest()
                both.refuses(f"{message}.{part(signature)}")


def test_hs256_with_a_published_kid_needs_the_secret(both: Project):
    for key in PAIRS.values():
        assert both.user(signed(header_of(key, alg="HS256"), claims())) == USER
        both.refuses(signed(header_of(key, alg="HS256"), claims(), "another secret"))


def test_a_key_of_another_family_is_refused(both: Project):
    for key, other in ((EC, RSA), (RSA, EC)):
        assert both.refuses(under(key, header_of(key, kid=other["kid"]))) == FOREIGN_KEY
        assert both.refuses(under(key, header_of(other, kid=key["kid"]))) == FOREIGN_KEY
        both.refuses(under(key, header_of(other)))
    assert both.fetches == 1, "both are known"


def test_another_alg_over_a_valid_signature_is_refused(both: Project):
    algorithms: tuple[Any, ...] = (
        "none", "", "HS256", "HS384", "ES384", "RS512", "PS256", "EdDSA", "es256", "hs256", None, 1,
        ["ES256", "RS256"], {"HS256": 1},
    )  # fmt: skip
    for key in PAIRS.values():
        for algorithm in algorithms:
            both.refuses(under(key, header_of(key, alg=algorithm)))
            if algorithm != "HS256":
                both.refuses(signed({"alg": algorithm}, claims()))


def test_without_a_secret_hs256_is_always_refused(both: Project):
    for secret in (None, ""):
        without = Project(both.api, verifier(secret, KeySet(both.api.url)))
        for tried in (SECRET, "", "None"):
            assert "not accepted" in without.refuses(signed({"alg": "HS256"}, claims(), tried))
        assert without.user(token(EC)) == USER


def test_without_published_keys_es256_and_rs256_are_refused():
    for key in PAIRS.values():
        with pytest.raises(Unauthorized):
            verifier(SECRET, None).principal(f"Bearer {token(key)}")


# -- a header that points elsewhere ------------------------------------------------------------------------

ELSEWHERE: list[Any] = [
    "../../../../dev/null", "/dev/null", "..", "\\\\host\\share", "http://127.0.0.1/keys",
    "https://evil.example/jwks.json", "an-ec-key/../an-ec-key", "an-ec-key\x00", " an-ec-key", "an-ec-key'--",
    "$(id)", "%2e%2e", "", " ", "an-ec-key\n", "é", "x" * 129, 0, 1.5, True,
]  # fmt: skip


def test_a_malformed_or_missing_kid_is_refused_before_any_look_up():
    """Even where the project publishes a key of that id."""
    for key in PAIRS.values():
        with StandIn() as api:
            named = [{**public(key), "kid": kid} for kid in ELSEWHERE]
            api.replies(Reply(json={"keys": [public(key), *named]}))
            project = Project(api, verifier(SECRET, KeySet(api.url)))
            for kid in ELSEWHERE:
                assert project.refuses(under(key, header_of(key, kid=kid))) == FOREIGN_KEY
                assert project.refuses(signed({"alg": "HS256", "kid": kid}, claims())) == FOREIGN_KEY
            project.refuses(under(key, {"alg": key["alg"], "typ": "JWT"}))
            assert project.fetches == 0


def test_a_key_embedded_in_or_linked_by_the_token_is_never_used(both: Project):
    with StandIn() as evil:
        for stranger in (es256("an-ec-key"), rs256("an-rsa-key"), es256("new"), rs256("new")):
            evil.replies(Reply(json={"keys": [public(stranger)]}))
            for more in (
                {"jwk": public(stranger)},
                {"jku": evil.url},
                {"x5u": evil.url},
                {"x5c": [base64.b64encode(pem(stranger)).decode()]},
                {"jku": evil.url, "jwk": public(stranger), "x5u": evil.url, "x5t": "x"},
            ):
                both.refuses(under(stranger, header_of(stranger, **more)))
        assert evil.requests == []
    assert both.user(under(EC, header_of(EC, jku="https://evil.example", jwk={}))) == USER


def test_a_critical_extension_is_refused(both: Project):
    cases: list[object] = [["exp"], ["b64"], ["http://example.invalid/UNDEFINED"], [], None, "exp", 1]
    for crit in cases:
        for key in PAIRS.values():
            assert "extension" in both.refuses(under(key, header_of(key, crit=crit)))
        assert "extension" in both.refuses(signed({"alg": "HS256", "crit": crit}, claims()))
        both.refuses(signed({"alg": "HS256", "crit": crit, "b64": False}, claims()))


# -- bounds ------------------------------------------------------------------------------------------------


def test_a_token_over_eight_kib_is_refused_before_it_is_parsed():
    with StandIn() as api:
        api.replies(Reply(json={"keys": [public(EC)]}))
        project = Project(api, verifier(SECRET, KeySet(api.url)))
        refused = project.refuses(token(EC, user_metadata="x" * 6_500))
        assert refused == "The token is longer than 8192 characters. Reduce its user metadata."
        assert project.fetches == 0
        assert project.user(token(EC, user_metadata="x" * 4_500)) == USER


def test_unavailable_keys_are_a_server_error_for_their_tokens_only():
    with StandIn() as api:
        api.replies(Reply(status=503))
        project = Project(api, verifier(SECRET, KeySet(api.url)))
        for key in PAIRS.values():
            with pytest.raises(KeysUnavailable):
                project.user(token(key))
        assert project.user(token(SECRET)) == USER
        assert project.fetches == 1


# -- fuzz --------------------------------------------------------------------------------------------------

with_the_project = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
pairs = st.sampled_from(list(PAIRS.values()))


@with_the_project
@given(
    pairs, st.dictionaries(st.sampled_from(["alg", "typ", "kid", "crit", "jku", "jwk", "x5c", "zip"]), JSON)
)
def test_a_random_header_over_a_valid_signature_is_unauthorized(
    both: Project, key: dict[str, Any], header: dict[str, Any]
):
    both.refuses(under(key, header))
