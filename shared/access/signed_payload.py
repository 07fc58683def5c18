"""Signed JSON payloads that clients carry and return.

Clients can read a payload and cannot change it. It is valid for one purpose, and never as an access token.
"""

from typing import Any

from itsdangerous import BadData

from shared.access.token_signer import Signer


class BadSignature(ValueError):
    """The payload was not signed with this key for this purpose."""


def dumps(signer: Signer, purpose: str, value: Any) -> str:
    """The signed payload of a JSON value, as text for a URL or a body."""
    return signer.serializer(purpose).dumps(value)


def loads(signer: Signer, purpose: str, token: str) -> Any:
    """The value. Raises BadSignature."""
    try:
        return signer.serializer(purpose).loads(token)
    except (BadData, UnicodeEncodeError):
        raise BadSignature from None
