"""From an Authorization header to a principal: every token that is not a signed-in user's own is refused."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jose import jwt

from local import access_tokens
from shared.access.jwt_verifier import Verifier
from shared.errors import Unauthorized

SECRET = "a secret of the project, forty characters"
URL = "http://127.0.0.1:54321"
USER = "0f8b2c1e-7d44-4b6a-9a51-2f3c4d5e6f70"
VERIFIER = Verifier(SECRET, None, access_tokens.issuer(URL))


def token(**claims: Any) -> str:
    return access_tokens.user_token(SECRET, URL, USER, **claims)


def part(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def signed(header: Any, payload: Any, secret: str = SECRET) -> str:
    """A token with any header and payload, and an HMAC-SHA256 signature that is right for them."""
    message = f"{part(header)}.{part(payload)}"
    signature = hmac.new(secret.encode(), message.encode(), hashlib.sha256).digest()
    return f"{message}.{part(signature)}"


def claims() -> dict[str, Any]:
    good: dict[str, Any] = jwt.get_unverified_claims(token())
    return good


def refusal(authorization: str | None) -> str:
    """Why it is refused; whatever the reason, the message repeats nothing of the header."""
    with pytest.raises(Unauthorized) as raised:
        VERIFIER.principal(authorization)
    error = raised.value
    assert error.status == 401
    assert error.headers == {"WWW-Authenticate": "Bearer"}
    assert error.__cause__ is None
    for piece in (authorization or "").replace(".", " ").split():
        # Random text may happen to be a word of the message of every refusal.
        assert len(piece) < 8 or piece in str(Unauthorized()) or piece not in str(error)
    return str(error)


def test_a_user_s_token_is_accepted_and_forwarded_unchanged():
    good = token()
    principal = VERIFIER.principal(f"Bearer {good}")
    assert principal.user_id == USER
    assert principal.token == good
    assert good not in repr(principal)


def test_the_scheme_is_case_insensitive_and_allows_spaces():
    for scheme in ("bearer", "BEARER", "Bearer ", " Bearer"):
        assert VERIFIER.principal(f"{scheme} {token()}").user_id == USER, scheme


def test_a_missing_token_is_refused():
    refusals = {refusal(header) for header in (None, "", " ", "Bearer", "Bearer ", "Bearer   ")}
    assert refusals == {"A valid user token is required: Authorization: Bearer <JWT>."}


def test_another_scheme_or_a_second_token_is_refused():
    good = token()
    second = (f"Bearer {good}", f"Bearer {good}, Bearer", "Bearer Bearer")
    for scheme in ("Basic", "Token", "JWT", "Bearer:", "", *second):
        refusal(f"{scheme} {good}".strip())


def test_an_expired_token_is_refused():
    assert refusal(f"Bearer {token(exp=int(time.time()) - 60)}") == "The token has expired. Sign in again."
    assert VERIFIER.principal(f"Bearer {token(exp=int(time.time()) - 1)}").user_id == USER, (
        "within the leeway"
    )


def test_a_token_that_is_not_yet_valid_is_refused():
    refusal(f"Bearer {token(nbf=int(time.time()) + 60)}")
    assert VERIFIER.principal(f"Bearer {token(nbf=int(time.time()))}").user_id == USER


WRONG: dict[str, list[Any]] = {
    "aud": ["anon", "", "authenticated ", ["other"], []],
    "exp": ["never", "", [], {}, True],
    "sub": ["", "1", "admin", "0f8b2c1e-7d44-4b6a-9a51", 7, ["x"], {"id": USER}, f"{USER}'--"],
    "role": ["anon", "service_role", "Authenticated", "", ["authenticated"], 1],
    "iss": ["https://another.example/auth/v1", f"{access_tokens.issuer(URL)}/", "", None, 7],
}


def test_a_claim_with_another_value_is_refused():
    for claim, values in WRONG.items():
        for value in values:
            refusal(f"Bearer {token(**{claim: value})}")
    assert VERIFIER.principal(f"Bearer {token(aud=['other', 'authenticated'])}").user_id == USER


def test_a_project_s_key_is_not_a_user():
    send = "and send the user's token."
    public = f"This is the project's publishable or anon key, not a user's token. Sign the user in, {send}"
    for key in (access_tokens.anon_key(SECRET), "sb_publishable_" + "x" * 32):
        assert refusal(f"Bearer {key}") == public
    anon_claims = f"The token is not a signed-in user's. Sign in, {send}"
    assert refusal(f"Bearer {token(role='anon')}") == anon_claims
    service = {"iss": "supabase", "role": "service_role", "iat": 1, "exp": 2_000_000_000}
    secret = "This is a secret or service_role key of the project, which no route accepts."
    for key in (jwt.encode(service, SECRET, "HS256"), "sb_secret_" + "x" * 32):
        assert refusal(f"Bearer {key}").startswith(secret)


def test_a_token_with_a_repeated_name_is_refused():
    """PostgREST takes the first value of a name, and Python's json the last."""
    whole = json.dumps(claims())
    for repeated in ('"sub": "another"', r'"\u0073ub": "another"', '"user_metadata": {"a": 1, "a": 2}'):
        payload = f"{{{repeated}, {whole[1:]}".encode()
        refusal(f"Bearer {signed({'alg': 'HS256'}, payload)}")
    header = b'{"alg": "none", "alg": "HS256"}'
    refusal(f"Bearer {signed(header, claims())}")
    good = signed({"alg": "HS256"}, f'{{"user_metadata": {{"a": 1}}, {whole[1:]}'.encode())
    assert VERIFIER.principal(f"Bearer {good}").user_id == USER


def test_a_payload_that_is_not_an_object_is_refused():
    cases: list[object] = [[], "text", 7, None, b"", b"{", b"\xff\xfe"]
    for payload in cases:
        refusal(f"Bearer {signed({'alg': 'HS256'}, payload)}")


GARBAGE = (
    ".", "a.b.c", "eyJhbGciOiJIUzI1NiJ9..", "\x00.\x00.\x00", "é.è.ê", f"{part([])}.{part({})}.x",
    part(b"[" * 40_000) + ".a.b",
)  # fmt: skip


def test_garbage_is_refused():
    for garbage in GARBAGE:
        refusal(f"Bearer {garbage}")


def test_a_valid_token_with_an_invalid_character_is_refused():
    """Lenient base64 skips them: one token under many spellings, some of which no header can carry on."""
    good = token()
    for stray in ("é", "ÿ", "👩", "!", "%", "\x00"):
        for place in (0, len(good) - 5, len(good)):
            refusal(f"Bearer {good[:place]}{stray}{good[place:]}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["exp", "nbf", "iat", "aud", "iss", "sub", "role", "jti", "at_hash"]), JSON)
def test_claims_of_wrong_types_are_unauthorized(name: str, value: object):
    """Signed rightly: it is accepted for this user, or refused; nothing else comes out."""
    try:
        principal = VERIFIER.principal(f"Bearer {signed({'alg': 'HS256'}, {**claims(), name: value})}")
    except Unauthorized as refused:
        assert refused.status == 401  # noqa: PT017  # either end is right
    else:
        assert principal.user_id == USER
