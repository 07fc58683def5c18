"""Timestamp fields of the wire models: ISO 8601, in UTC without an offset."""

from datetime import UTC, datetime, time
from typing import Annotated, Any

from pydantic import BeforeValidator


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 timestamp")
    try:
        timestamp = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("must be an ISO 8601 timestamp") from None
    try:
        return timestamp.astimezone(UTC) if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("must be an ISO 8601 timestamp of the years 1 to 9999") from None


def _end(value: Any) -> datetime:
    timestamp = _timestamp(value)
    bare_date = len(value) <= len("2025-01-31")
    return datetime.combine(timestamp.date(), time.max, UTC) if bare_date else timestamp


# Inclusive bounds. A date without a time means the end of the day in RangeEnd.
RangeStart = Annotated[datetime, BeforeValidator(_timestamp)]
RangeEnd = Annotated[datetime, BeforeValidator(_end)]
