"""Step one: from an Authorization header to a Principal, or Unauthorized.

The key is chosen by the token's `alg` from an allow-list before anything else in the token is believed.
PostgREST checks the same token again: this check exists to refuse early, and never widens what that one
would allow.
"""

import re
from typing import Any
from uuid import UUID

from jose import jwt
from jose.exceptions import ExpiredSignatureError, JOSEError

from shared.errors import Unauthorized
from shared.types import Principal

# Three parts of base64url and nothing else: jose would skip over characters that do not belong.
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)


class Verifier:
    """Checks Supabase access tokens: signature, exp, nbf, aud, iss, role and subject."""

    def __init__(self, secret: str, issuer: str, audience: str, leeway_seconds: int) -> None:
        self._keys: dict[str, str] = {"HS256": secret}
        self._issuer = issuer
        self._audience = audience
        self._leeway = leeway_seconds

    def principal(self, authorization: str | None) -> Principal:
        """The user of `Bearer <JWT>`. Raises Unauthorized, saying what is at fault, never its value."""
        scheme, _, token = (authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
            raise Unauthorized
        claims = self._claims(token)
        # The anon and service keys are tokens of the same project, and no users.
        if claims.get("role") != "authenticated":
            raise Unauthorized("The token is not a signed-in user's.")
        try:
            user_id = str(UUID(claims["sub"]))
        except (ValueError, AttributeError, TypeError):
            raise Unauthorized("The token's subject is not a user id.") from None
        return Principal(user_id, token)

    def _claims(self, token: str) -> dict[str, Any]:
        options = {
            "leeway": self._leeway,
            **{f"require_{claim}": True for claim in ("exp", "aud", "iss", "sub")},
        }
        try:
            algorithm = jwt.get_unverified_header(token).get("alg")
            key = self._keys.get(algorithm) if isinstance(algorithm, str) else None
            if key is None:
                raise Unauthorized("The token is signed in a way that is not accepted here.")
            claims: dict[str, Any] = jwt.decode(
                token, key, [algorithm], options=options, audience=self._audience, issuer=self._issuer
            )
        except ExpiredSignatureError:
            raise Unauthorized("The token has expired.") from None
        except (JOSEError, TypeError, ValueError, AttributeError):
            # jose lets claims of a wrong kind (an exp that is a list) escape as Python's own errors.
            raise Unauthorized("The token is not valid.") from None
        return claims
