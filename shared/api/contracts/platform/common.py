"""Errors, pagination and metadata of the platform contract."""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from shared.errors import RagError

# The limit of the database.
MAX_METADATA_BYTES = 10_000
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
# Error codes of the contract that differ from ours.
CODES = {
    "unauthorized": "invalid_api_key",
    "rate_limited": "rate_limit_exceeded",
    "collection_limit_reached": "rate_limit_exceeded",
    "document_limit_reached": "rate_limit_exceeded",
    "body_too_large": "file_too_large",
}


class ErrorDetail(BaseModel):
    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "rate_limit_error",
        "server_error",
    ]
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(BaseModel):
    error: ErrorDetail


def error_body(error: RagError) -> dict[str, Any]:
    kind = TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    details = dict(error.details)
    code = CODES.get(error.code, error.code)
    if "missing" in details:
        code = "missing_required_field" if details.pop("missing") else "invalid_field_value"
    return {"error": {"type": kind, "code": code, "message": str(error), "details": details}}


def small(metadata: Any) -> Any:
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
        raise ValueError("at most 10 KB")
    return metadata


def _number(text: str) -> None:
    digits = Decimal(text)
    if digits.copy_abs() >= Decimal("1e300") or -int(digits.as_tuple().exponent) > 300:
        raise ValueError("numbers have at most 300 digits on either side of the point")


def share(value: float) -> float:
    """A score from 0 to 1 with six digits."""
    return round(min(1.0, max(0.0, value)), 6)


def without_nul(text: str) -> str:
    """The text, which Postgres cannot store with NUL. Raises ValueError."""
    if "\0" in text:
        raise ValueError("must be without NUL characters")
    return text


WithoutNul = AfterValidator(without_nul)


class NullAsAbsent(BaseModel):
    """Model of a request. Null means absent."""

    @model_validator(mode="before")
    @classmethod
    def _remove_nulls(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        return {name: value for name, value in sent.items() if value is not None}


class WithMetadata(BaseModel):
    metadata: dict[str, Any] | None = None

    _small = field_validator("metadata", mode="before")(small)


class Pagination(BaseModel):
    total: int
    limit: int
    offset: int
    has_more: bool

    @classmethod
    def of(cls, total: int, limit: int, offset: int) -> Self:
        return cls(total=total, limit=limit, offset=offset, has_more=offset + limit < total)


Limit = Annotated[int, Field(ge=1, le=100)]
Offset = Annotated[int, Field(ge=0, le=2**31 - 1)]
Order = Literal["asc", "desc"]
