"""What is said here, carried by somebody else and believed when it comes back: readable for everybody, made
by nobody but who holds the key. A seal for one purpose is none for another, and none is a token."""

import base64
import binascii
import hmac
import json
from typing import Any

from shared.access.token_signer import Signer


class BadSignature(ValueError):
    """Nobody here has made that."""


def dumps(signer: Signer, purpose: str, said: Any) -> str:
    """What can be said in JSON, for an address or a body."""
    payload = json.dumps(said, separators=(",", ":")).encode()
    return f"{_encoded(payload)}.{_encoded(signer.seal(purpose, payload))}"


def loads(signer: Signer, purpose: str, carried: str) -> Any:
    """What was said. Raises BadSignature for what was not sealed here, for this purpose."""
    payload, _, seal = carried.partition(".")
    try:
        data = _decoded(payload)
        if not hmac.compare_digest(_decoded(seal), signer.seal(purpose, data)):
            raise BadSignature
    except (binascii.Error, ValueError):
        raise BadSignature from None
    return json.loads(data)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
