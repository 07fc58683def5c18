"""Tokens as Supabase Auth would issue them, signed with the local stack's secret."""

import time
from typing import Any

from jose import jwt

AUDIENCE = "authenticated"


def issuer(url: str) -> str:
    """The `iss` of a project's tokens."""
    return f"{url}/auth/v1"


def user_token(
    secret: str, url: str, user_id: str, email: str | None = None, seconds: int = 86_400, **claims: Any
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
    return str(
        jwt.encode({name: value for name, value in payload.items() if value is not None}, secret, "HS256")
    )


def anon_key(secret: str) -> str:
    """The public key of a project: a token with the role anon and no user."""
    payload = {"iss": "supabase", "role": "anon", "iat": 1_700_000_000, "exp": 2_000_000_000}
    return str(jwt.encode(payload, secret, "HS256"))
