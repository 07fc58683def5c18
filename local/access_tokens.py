"""JWTs like Supabase Auth's, signed with the local stack's key."""

import time
from collections.abc import Mapping
from typing import Any

from jose import jwt

AUDIENCE = "authenticated"
# The shared secret of HS256, or a private JWK with its `alg` and `kid`.
SigningKey = str | Mapping[str, Any]
# The public members of a JWK.
_PUBLIC = ("kty", "kid", "use", "alg", "ext", "crv", "x", "y", "n", "e")


def issuer(url: str) -> str:
    """The `iss` of a project's tokens."""
    return f"{url}/auth/v1"


def user_token(
    key: SigningKey, url: str, user_id: str, email: str | None = None, /, seconds: int = 86_400, **claims: Any
) -> str:
    """A signed-in user's access token, valid for `seconds`; `claims` override or add."""
    now = int(time.time())
    payload = {
        "iss": issuer(url),
        "aud": AUDIENCE,
        "role": "authenticated",
        "sub": user_id,
        "email": email,
        "iat": now,
        "exp": now + seconds,
        **claims,
    }
    return sign(key, {name: value for name, value in payload.items() if value is not None})


def anon_key(key: SigningKey) -> str:
    """The public key of a project: a token with the role anon and no user."""
    return sign(key, {"iss": "supabase", "role": "anon", "iat": 1_700_000_000, "exp": 2_000_000_000})


def sign(key: SigningKey, claims: Mapping[str, Any]) -> str:
    """The claims as a JWT, signed with the key's algorithm."""
    if isinstance(key, str):
        return str(jwt.encode(dict(claims), key, "HS256"))
    return str(jwt.encode(dict(claims), dict(key), key["alg"], headers={"kid": key["kid"]}))


def public_jwks(key: SigningKey) -> dict[str, Any]:
    """The JWKS that Supabase Auth publishes for the key: its public half, or no key for a shared secret."""
    if isinstance(key, str):
        return {"keys": []}
    public = {name: key[name] for name in _PUBLIC if name in key}
    return {"keys": [{**public, "key_ops": ["verify"]}]}
