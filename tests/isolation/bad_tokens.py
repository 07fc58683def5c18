"""Invalid tokens, and tokens without a user, each by the fault that it has."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

from jose import jwk

from local import access_tokens
from tests import key_pairs
from tests.actors import Actor

STRANGERS = {"ES256": key_pairs.es256("a-stranger"), "RS256": key_pairs.rs256("a-stranger")}


def encoded(part: dict[str, Any] | bytes) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def payload_of(actor: Actor) -> dict[str, Any]:
    middle = actor.token().split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(middle + "=="))
    return claims


def unsigned(actor: Actor, algorithm: str, signature: str = "") -> str:
    return f"{encoded({'alg': algorithm, 'typ': 'JWT'})}.{encoded(payload_of(actor))}.{signature}"


def by_a_stranger(actor: Actor, algorithm: str, **header: Any) -> str:
    """Signed by an unknown key pair, with more in the header to find it by."""
    key = STRANGERS[algorithm]
    head = {"alg": algorithm, "kid": key["kid"], "typ": "JWT", **header}
    message = f"{encoded(head)}.{encoded(payload_of(actor))}"
    return f"{message}.{encoded(jwk.construct(key, algorithm).sign(message.encode()))}"


def by_secret(actor: Actor, secret: bytes, **header: Any) -> str:
    """Signed with HS256 by any bytes, those of a public key too."""
    message = f"{encoded({'alg': 'HS256', 'typ': 'JWT', **header})}.{encoded(payload_of(actor))}"
    return f"{message}.{encoded(hmac.new(secret, message.encode(), hashlib.sha256).digest())}"


def signature_of(actor: Actor) -> str:
    return actor.token().split(".")[2]


# Each makes, for a user who may see something, a token that must count for nothing.
BAD_TOKENS: dict[str, Callable[[Actor], str]] = {
    "expired": lambda actor: actor.token(exp=int(time.time()) - 120),
    "expired long ago": lambda actor: actor.token(exp=1),
    "not valid yet": lambda actor: actor.token(nbf=int(time.time()) + 3600),
    "alg none": lambda actor: unsigned(actor, "none"),
    "alg None": lambda actor: unsigned(actor, "None"),
    "alg NONE": lambda actor: unsigned(actor, "NONE"),
    "alg nOnE with a signature": lambda actor: unsigned(actor, "nOnE", signature_of(actor)),
    "no alg": lambda actor: f"{encoded({'typ': 'JWT'})}.{encoded(payload_of(actor))}.{signature_of(actor)}",
    "no signature": lambda actor: unsigned(actor, "HS256"),
    "alg RS256 over a shared secret": lambda actor: unsigned(actor, "RS256", signature_of(actor)),
    "alg ES256 over a shared secret": lambda actor: unsigned(actor, "ES256", signature_of(actor)),
    "another secret": lambda actor: access_tokens.user_token(
        "x" * 54, actor.stack.url, actor.id, actor.email
    ),
    "an empty secret": lambda actor: access_tokens.user_token("", actor.stack.url, actor.id, actor.email),
    "a wrong audience": lambda actor: actor.token(aud="anon"),
    "several wrong audiences": lambda actor: actor.token(aud=["anon", "another-project"]),
    "ES256 by a stranger": lambda actor: by_a_stranger(actor, "ES256"),
    "RS256 by a stranger": lambda actor: by_a_stranger(actor, "RS256"),
    "ES256 without a key id": lambda actor: by_a_stranger(actor, "ES256", kid=None),
    "a key id that is a path": lambda actor: by_a_stranger(actor, "ES256", kid="../../../dev/null"),
    "a key id that is an address": lambda actor: by_a_stranger(actor, "RS256", kid="http://127.0.0.1:9/"),
    "a key id that is a list": lambda actor: by_a_stranger(actor, "ES256", kid=["a-stranger"]),
    "a key that it brings along": lambda actor: by_a_stranger(
        actor, "ES256", jwk=key_pairs.public(STRANGERS["ES256"])
    ),
    "keys that it points to": lambda actor: by_a_stranger(actor, "RS256", jku="http://127.0.0.1:9/"),
    "a payload changed after signing": lambda actor: ".".join(
        [actor.token().split(".")[0], encoded({**payload_of(actor), "email": "x"}), signature_of(actor)]
    ),
    "two parts": lambda actor: actor.token().rpartition(".")[0],
    "four parts": lambda actor: f"{actor.token()}.{signature_of(actor)}",
    "garbage": lambda _: "garbage",
    "dots": lambda _: "..",
    "a user id": lambda actor: actor.id,
}
# PostgREST takes these: it knows no issuer, and other roles have no function to call.
BAD_USERS: dict[str, Callable[[Actor], str]] = {
    "another issuer": lambda actor: actor.token(iss="https://another.supabase.co/auth/v1"),
    "no issuer": lambda actor: actor.token(iss=None),
    "no expiry": lambda actor: actor.token(exp=None),
    "no audience": lambda actor: actor.token(aud=None),
    "no subject": lambda actor: actor.token(sub=None),
    "a subject that is no user": lambda actor: actor.token(sub="admin"),
    "the role anon": lambda actor: actor.token(role="anon"),
    "the role service_role": lambda actor: actor.token(role="service_role"),
    "no role": lambda actor: actor.token(role=None),
    "the anon key": lambda actor: actor.stack.anon_key,
}
# Where tokens are signed by a key pair: its public half, which is public, taken for a shared secret.
CONFUSED: dict[str, Callable[[Actor], str]] = {
    f"HS256 with {form}{named}": lambda actor, form=form, header=header: by_secret(  # type: ignore[misc]
        actor, key_pairs.shared_secrets_of(actor.stack.signing_key)[form], **header(actor)
    )
    for form in key_pairs.shared_secrets_of(STRANGERS["ES256"])
    for named, header in (
        ("", lambda _: {}),
        (" and its kid", lambda actor: {"kid": actor.stack.signing_key["kid"]}),
    )
}
