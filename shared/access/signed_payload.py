"""Signed payloads: JSON that a client carries and returns.

Anyone can read it; only the signing key can produce it. A payload signed for one purpose is rejected for any
other, and is never accepted as an access token.
"""

import base64
import binascii
import hmac
import json
from typing import Any

from shared.access.token_signer import Signer


class BadSignature(ValueError):
    """The payload was not signed with this key for this purpose."""


def dumps(signer: Signer, purpose: str, value: Any) -> str:
    """The signed payload of a JSON value, as text for a URL or a body."""
    payload = json.dumps(value, separators=(",", ":")).encode()
    return f"{_encoded(payload)}.{_encoded(signer.seal(purpose, payload))}"


def loads(signer: Signer, purpose: str, token: str) -> Any:
    """The value. Raises BadSignature."""
    payload, _, seal = token.partition(".")
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
