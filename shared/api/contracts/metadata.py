"""Metadata of requests: JSON that Postgres can store, and filters by it.

The rules of a filter are those of rag.metadata_operations. An object of which a key begins with $ holds
operators; any other value is compared as a whole.
"""

import json
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, field_validator

# The limit of the database.
MAX_METADATA_BYTES = 10_000
MAX_OPERATORS, MAX_VALUES, MAX_BOUND = 100, 100, 200
_NAMES = ("$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$exists")
_CHOICE = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"


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


def check_metadata_filter(value: Any) -> Any:
    """Raises ValueError for an invalid filter."""
    check_metadata(value)
    if not isinstance(value, dict):
        return value
    for key, condition in value.items():
        if key.startswith("$") and not _has_operators(condition):
            raise ValueError(f"{key[:100]} stands where a key of the metadata is expected")
    operations = [
        (key, operator, operand)
        for key, condition in value.items()
        if _has_operators(condition)
        for operator, operand in condition.items()
    ]
    if len(operations) > MAX_OPERATORS:
        raise ValueError(f"a filter must have at most {MAX_OPERATORS} operators")
    for key, operator, operand in operations:
        _check_operand(f"{key[:100]} {operator[:100]}", operator, operand)
    return value


def _has_operators(condition: Any) -> bool:
    return isinstance(condition, dict) and any(name.startswith("$") for name in condition)


def _equalities(metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {"$eq": value} if key.startswith("$") or _has_operators(value) else value
        for key, value in metadata.items()
    }


def _check_operand(operation: str, operator: str, operand: Any) -> None:
    match operator:
        case "$eq":
            pass
        case "$ne":
            if not _is_scalar(operand):
                raise ValueError(f"{operation} takes a string, a number, true, false or null")
        case "$in" | "$nin":
            is_list = isinstance(operand, list) and 1 <= len(operand) <= MAX_VALUES
            if not (is_list and all(map(_is_scalar, operand))):
                raise ValueError(
                    f"{operation} takes a list of 1 to {MAX_VALUES} strings, numbers, true, false or null"
                )
        case "$gt" | "$gte" | "$lt" | "$lte":
            is_number = isinstance(operand, int | float) and not isinstance(operand, bool)
            if not is_number and not (isinstance(operand, str) and len(operand) <= MAX_BOUND):
                raise ValueError(f"{operation} takes a number, or a string of at most {MAX_BOUND} characters")
        case "$exists":
            if not isinstance(operand, bool):
                raise ValueError(f"{operation} takes true or false")
        case _:
            raise ValueError(f"{operation} is no operator: use {_CHOICE}")


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


MetadataFilter = Annotated[
    dict[str, Any],
    BeforeValidator(check_metadata_filter),
    Field(
        description="For each key of the metadata the value to equal, or operators that must all hold, as in "
        f'{{"year": {{"$gte": 2020, "$lt": 2024}}}}. Operators: {", ".join(_NAMES)}.'
    ),
]
# A filter without operators, for the contracts that have none: every value is compared as a whole.
MetadataEqualities = Annotated[Metadata, AfterValidator(_equalities)]
