"""Metadata filters of requests: values to equal, or operators.

The rules are those of rag.metadata_operations. An object of which a key begins with $ holds operators; any
other value is compared as a whole.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from shared.api.contracts.metadata_limits import Metadata, check_metadata

MAX_OPERATORS, MAX_VALUES, MAX_BOUND = 100, 100, 200
_NAMES = ("$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$exists")
_CHOICE = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"


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
