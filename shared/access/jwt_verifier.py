"""Verification of Supabase access tokens.

The token's `iss` selects the issuer, and its `alg` one of this issuer's keys from an allow-list, before any
other claim is read. Of Supabase Auth, HS256 uses the project's secret alone, ES256 and RS256 its published
keys alone. A third-party issuer has its own keys. PostgREST verifies the same token again: this check refuses
early and never allows more.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from jose import jwk, jwt
from jose.backends.base import Key
from jose.exceptions import ExpiredSignatureError, JOSEError
from jose.utils import base64url_decode

from shared.access.jwks import KeySet, is_key_id
from shared.errors import Unauthorized
from shared.types import Principal

# Gateways in front of functions take headers of 8 to 10 KiB.
MAX_LENGTH = 8 * 1024
INVALID = "The token is not valid. Sign in again."
# The `aud` of the project's tokens, and the accepted clock difference for `exp` and `nbf`.
AUDIENCE, LEEWAY_SECONDS = "authenticated", 5
PUBLIC_KEY = (
    "This is the project's publishable or anon key, not a user's token. Sign the user in, and send the "
    "user's token."
)
ELEVATED_KEY = (
    "This is a secret or service_role key of the project, which no route accepts. Send a user's token, and "
    "replace the key if others may have seen it."
)
UNTRUSTED_ISSUER = "The token is of an issuer that is not trusted here. Sign in to this project."
NO_USER = "The token is not a signed-in user's. Sign in, and send the user's token."
NO_ROLE = (
    "The token's claim role must be authenticated. The issuer adds it (docs/third-party-sign-in.md); then "
    "sign in again."
)
SEND_ANOTHER = "Send a user's token of this Supabase project."
# Three parts of base64url: jose would ignore other characters.
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
# Hosted projects' HS256 tokens have a key id in base64, with slashes. It is not used for a look-up.
_SECRET_ID = re.compile(r"[A-Za-z0-9+][A-Za-z0-9+/]{15}")


def bearer(authorization: str | None) -> str:
    """The credential of `Bearer <credential>`, in any case and spacing; empty for another scheme."""
    scheme, _, credential = (authorization or "").strip().partition(" ")
    return credential.strip() if scheme.lower() == "bearer" else ""


def is_token(credential: str) -> bool:
    """Whether the credential has the form of a JWT."""
    return _TOKEN.fullmatch(credential) is not None


@dataclass(frozen=True)
class Issuer:
    """An issuer of tokens, Supabase Auth or a third party. Without an audience the claim is not checked."""

    name: str
    keys: KeySet | None
    audience: str | None
    algorithms: Collection[str] = ("ES256", "RS256")


def third_party_user_id(issuer: str, subject: str) -> str:
    """The id of that user here, as rag.third_party_user_id computes it: a UUID of version 8."""
    octets = bytearray(sha256(f"{issuer} {subject}".encode()).digest()[:16])
    octets[6] = octets[6] & 15 | 128
    octets[8] = octets[8] & 63 | 128
    return str(UUID(bytes=bytes(octets)))


class Verifier:
    """Checks access tokens: signature, exp, nbf, aud, iss, role and subject."""

    def __init__(
        self, secret: str | None, keys: KeySet | None, issuer: str, third_parties: Sequence[Issuer] = ()
    ) -> None:
        """Of Supabase Auth's tokens, without a secret HS256 is refused, without keys ES256 and RS256 are."""
        self._secret: Key | None = jwk.construct(secret, "HS256") if secret else None
        self._own = Issuer(issuer, keys, AUDIENCE)
        self._issuers = {each.name: each for each in (*third_parties, self._own)}

    def principal(self, authorization: str | None) -> Principal:
        """The user of `Bearer <JWT>`.

        Raises Unauthorized, whose message names the fault without a value; KeysUnavailable when the key
        could not be fetched.
        """
        token = bearer(authorization)
        if len(token) > MAX_LENGTH:
            raise Unauthorized(f"The token is longer than {MAX_LENGTH} characters. Reduce its user metadata.")
        if not is_token(token):
            raise Unauthorized(project_key_refusal(token))
        issuer, claims = self._claims(token)
        return _user(claims, token, None if issuer is self._own else issuer.name)

    def _claims(self, token: str) -> tuple[Issuer, Mapping[str, Any]]:
        try:
            header, payload = map(_parsed, token.split(".")[:2])
            issuer = self._issuers.get(payload.get("iss", ""))
            if issuer is None:
                raise Unauthorized(project_key_refusal(token) or UNTRUSTED_ISSUER)
            options = {
                "leeway": LEEWAY_SECONDS,
                # An id token has the hash of an access token, which is not sent here.
                "verify_at_hash": False,
                "verify_aud": issuer.audience is not None,
                "require_aud": issuer.audience is not None,
                **{f"require_{claim}": True for claim in ("exp", "iss", "sub")},
            }
            algorithm, key = self._key_for(issuer, header)
            claims: Mapping[str, Any] = jwt.decode(
                token, key, [algorithm], options=options, audience=issuer.audience
            )
        except ExpiredSignatureError:
            raise Unauthorized("The token has expired. Sign in again.") from None
        except (JOSEError, TypeError, ValueError, AttributeError, RecursionError):
            # For claims of a wrong type (an exp that is a list) jose raises Python's own errors.
            raise Unauthorized(project_key_refusal(token) or INVALID) from None
        return issuer, claims

    def _key_for(self, issuer: Issuer, header: Mapping[str, Any]) -> tuple[str, Key]:
        """The one algorithm and key that may verify a token of the issuer with this header. Keys and URLs in
        the header (jku, x5u, jwk, x5c) are ignored."""
        # RFC 7515, 4.1.11: a token with an unknown critical extension must be refused.
        if "crit" in header:
            raise Unauthorized("The token requires an extension (crit) that is not supported. Remove it.")
        key: Key | None
        match header.get("alg"):
            case "HS256" as algorithm if issuer is self._own and self._secret is not None:
                key = self._secret if "kid" not in header or _may_name_a_secret(header["kid"]) else None
            case "ES256" | "RS256" as algorithm if issuer.keys and algorithm in issuer.algorithms:
                kid = header.get("kid")
                key = issuer.keys.key(kid, algorithm) if is_key_id(kid) else None
            case _:
                raise Unauthorized(f"The token's signature algorithm is not accepted. {SEND_ANOTHER}")
        if key is None:
            raise Unauthorized(f"The token's signing key does not belong to this project. {SEND_ANOTHER}")
        return str(algorithm), key


def _parsed(part: str) -> dict[Any, Any]:
    """The object in a part of a token. Raises ValueError for a name that occurs twice: PostgREST takes the
    first value and Python the last, so that they would see different users or issuers."""
    parsed: dict[Any, Any] = json.loads(base64url_decode(part.encode()), object_pairs_hook=_with_unique_names)
    return parsed


def _with_unique_names(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(members)
    if len(unique) != len(members):
        raise ValueError("a repeated name")
    return unique


def project_key_refusal(credential: str) -> str | None:
    """The message for a refused credential that is, or claims to be, a key of the project."""
    if credential.startswith("sb_"):
        return ELEVATED_KEY if credential.startswith("sb_secret_") else PUBLIC_KEY
    try:
        role = jwt.get_unverified_claims(credential).get("role")
    except (JOSEError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    return PUBLIC_KEY if role == "anon" else ELEVATED_KEY if role == "service_role" else None


def _may_name_a_secret(kid: object) -> bool:
    return is_key_id(kid) or (isinstance(kid, str) and _SECRET_ID.fullmatch(kid) is not None)


def _user(claims: Mapping[str, Any], token: str, third_party: str | None) -> Principal:
    """The principal of verified claims, which are those of the third-party issuer if there is one. Raises
    Unauthorized for those of no signed-in user."""
    # The anon and service keys are tokens of the same project without a user.
    if claims.get("role") != "authenticated":
        raise Unauthorized(NO_USER if third_party is None else NO_ROLE)
    if third_party is not None:
        # The claim `rag` restricts tokens that the functions sign, and serves no other issuer. Postgres has
        # no text with NUL or half of a surrogate pair.
        if not claims["sub"] or "rag" in claims or re.search(r"[\0\ud800-\udfff]", claims["sub"]):
            raise Unauthorized(INVALID)
        return Principal(third_party_user_id(third_party, claims["sub"]), token)
    try:
        user_id = str(UUID(claims["sub"]))
    except (ValueError, AttributeError, TypeError):
        raise Unauthorized(f"The token's subject (sub) is not a user id. {SEND_ANOTHER}") from None
    return Principal(user_id, token, _scopes(claims.get("rag")))


def _scopes(claim: object) -> frozenset[str] | None:
    """The scopes that restrict the token, or None; rag.has_scope() reads them in the same way."""
    scopes = claim.get("scopes") if isinstance(claim, Mapping) else None
    if scopes is None:
        return None
    return (
        frozenset(scope for scope in scopes if isinstance(scope, str))
        if isinstance(scopes, list)
        else frozenset()
    )
