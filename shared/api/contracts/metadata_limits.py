"""Metadata in requests: JSON of at most 10 KB that Postgres can store."""

import json
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, field_validator

# The limit of the database.
MAX_METADATA_BYTES = 10_000


def check_metadata(metadata: Any) -> Any:
    """Metadata of at most 10 KB that Postgres can store. Raises ValueError under the rules of
    rag.check_json."""
    try:
        # Python accepts NaN, 1e400 and lone surrogates as JSON.
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (ValueError, RecursionError):
        raise ValueError("must be JSON, with finite numbers and valid Unicode") from None
    # Postgres gets the numbers in this form.
    json.loads(text, parse_int=_number, parse_float=_number)
    if "\\u0000" in text.replace("\\\\", ""):
        raise ValueError("must be without NUL characters")
    if size > MAX_METADATA_BYTES:
        raise ValueError("must have at most 10 KB")
    return metadata


def _number(text: str) -> None:
    digits = Decimal(text)
    if digits.copy_abs() >= Decimal("1e300") or -int(digits.as_tuple().exponent) > 300:
        raise ValueError("numbers must have at most 300 digits on either side of the point")


Metadata = Annotated[
    dict[str, Any], BeforeValidator(lambda value: {} if value is None else check_metadata(value))
]


class WithMetadata(BaseModel):
    metadata: dict[str, Any] | None = None

    _check = field_validator("metadata", mode="before")(check_metadata)
