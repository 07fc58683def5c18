"""Signer of short-lived access tokens: for API keys, the worker and metrics.

A holder of the signing key can act as any user, so that only functions that accept API keys get it. It is an
ES256 or RS256 key that was imported into the project (supabase gen signing-key), or the HS256 secret, while
the project accepts it.
"""

import json
import time
from dataclasses import replace
from hashlib import sha256
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from jose import jwk, jwt
from jose.exceptions import JOSEError

from shared.access.jwt_verifier import AUDIENCE
from shared.clients.postgrest import Database
from shared.config import Settings
from shared.errors import ConfigurationError, DatabaseFailed, Unauthorized
from shared.types import Principal

LIFETIME_SECONDS = 60
# A token for one call is used at once.
CALL_SECONDS = 10
# Claims about a token, not about its user.
_CLAIMS_OF_TOKEN = frozenset({"iss", "aud", "role", "iat", "nbf", "exp"})
# The log's reason when the project refuses a token that was signed here.
UNTRUSTED_KEY = "the project does not trust the key that signs here, or rag.settings.issuer is another issuer"


class BadSignature(ValueError):
    """The payload was not signed with this key for this purpose."""


class Signer:
    """Signs tokens that the project's PostgREST accepts, and payloads that clients carry and return. Safe to
    use from many threads."""

    def __init__(self, key: str | dict[str, Any], issuer: str, audience: str) -> None:
        """`key` is a private JWK with `alg` and `kid`, or an HS256 secret."""
        self.algorithm: str = key["alg"] if isinstance(key, dict) else "HS256"
        self._headers = {"kid": key["kid"]} if isinstance(key, dict) else None
        self._key = jwk.construct(key, self.algorithm)
        self._secret = (key["d"] if isinstance(key, dict) else key).encode()
        self._claims = {"iss": issuer, "aud": audience, "role": "authenticated"}

    def token(self, seconds: float = LIFETIME_SECONDS, **claims: Any) -> str:
        """A token with these claims that expires after `seconds`."""
        now = int(time.time())
        payload = {**self._claims, "iat": now, "exp": now + int(seconds), **claims}
        return str(jwt.encode(payload, self._key, self.algorithm, self._headers))

    def sign(self, purpose: str, value: Any) -> str:
        """A JSON value as text for a URL or a body, which clients can read and cannot change. It is valid for
        the purpose alone, and never as a token."""
        return self._serializer(purpose).dumps(value)

    def verified(self, purpose: str, payload: str) -> Any:
        """The value of a signed payload. Raises BadSignature."""
        try:
            return self._serializer(purpose).loads(payload)
        except (BadData, UnicodeEncodeError):
            raise BadSignature from None

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        """Signs by HMAC-SHA256 with a key that is derived for the purpose."""
        options = {"key_derivation": "hmac", "digest_method": sha256}
        return URLSafeSerializer(self._secret, salt=f"payload: {purpose}", signer_kwargs=options)


def worker_principal(signer: Signer) -> Principal:
    """The role of the worker, for one call: it claims jobs and sends webhooks, and reads no document."""
    return Principal("", signer.token(CALL_SECONDS, role="rag_worker"))


def without_user(signer: Signer, **claims: Any) -> Principal:
    """A signed-in caller without a user, for one call whose purpose its `rag` claims name."""
    return Principal("", signer.token(CALL_SECONDS, rag=claims))


def principal_at_end(signer: Signer | None, caller: Principal) -> Principal:
    """The caller at the end of a request. If its token has expired and there is a signer, the caller has a
    token for one call with the same claims and no scope, even if its API key was revoked meanwhile."""
    claims = jwt.get_unverified_claims(caller.token)
    if signer is None or claims["exp"] > time.time() + CALL_SECONDS:
        return caller
    own = {name: value for name, value in claims.items() if name not in _CLAIMS_OF_TOKEN}
    # The subject of a third-party token is no id of a user here.
    if caller.user_id:
        own["sub"] = caller.user_id
    restrictions = claims.get("rag") or {}
    if isinstance(restrictions, dict):
        restrictions = {**restrictions, "scopes": []}
    return replace(caller, token=signer.token(CALL_SECONDS, **{**own, "rag": restrictions}))


def call_with_claims_only(database: Database, signer: Signer, function: str, **claims: Any) -> Any:
    """The result of the SQL function for a token without a user, whose `rag` claims name the purpose.

    Raises a RagError. A refusal of the token is DatabaseFailed, since the caller did not send it.
    """
    try:
        return database.call(without_user(signer, **claims), function, {}, idempotent=True)
    except Unauthorized:
        raise DatabaseFailed(log_reason=UNTRUSTED_KEY) from None


def signer_for(settings: Settings) -> Signer | None:
    """The signer with the key of the settings; None without one, which disables API keys.

    Raises ConfigurationError for an invalid key.
    """
    secret = settings.rag_signing_key or settings.supabase_jwt_secret
    if secret is None:
        return None
    text = secret.get_secret_value()
    key = json.loads(text) if secret is settings.rag_signing_key else text
    try:
        return Signer(key, settings.issuer, AUDIENCE)
    except (JOSEError, TypeError, ValueError):
        raise ConfigurationError(
            "RAG_SIGNING_KEY: not a valid private key; create one with `supabase gen signing-key`"
        ) from None
