"""Embeddings of snapshots as the database writes them: half precision, base64, without zeros at the end.

Nothing is rounded: a loaded embedding equals the persisted one bit for bit.
"""

import binascii
import struct
from base64 import b64decode

from shared.models.embeddings import DIMENSIONS, HALF_PRECISION_DECIMALS

# All bits of the exponent: infinity or NaN.
_NO_NUMBER = 0x7C00


def to_database(text: str) -> str:
    """The text of a halfvec, with its zeros. Raises ValueError for an invalid embedding."""
    try:
        raw = b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    # A last byte that is zero may be absent, too.
    raw += b"\0" * (len(raw) % 2)
    if not raw or len(raw) > 2 * DIMENSIONS:
        raise ValueError("not so many values")
    values = struct.unpack(f">{len(raw) // 2}H", raw)
    if not any(value & 0x7FFF for value in values) or any(
        value & _NO_NUMBER == _NO_NUMBER for value in values
    ):
        raise ValueError("not a direction")
    return (
        f"[{','.join(map(HALF_PRECISION_DECIMALS.__getitem__, values))}{',0' * (DIMENSIONS - len(values))}]"
    )
