"""Moments as the contracts' wire models take them: ISO 8601, in UTC where nothing else is said."""

from datetime import UTC, datetime, time
from typing import Annotated, Any

from pydantic import BeforeValidator


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 timestamp")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("must be an ISO 8601 timestamp") from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("must be an ISO 8601 timestamp of the years 1 to 9999") from None


def _end(value: Any) -> datetime:
    moment = _moment(value)
    bare_date = len(value) <= len("2025-01-31")
    return datetime.combine(moment.date(), time.max, UTC) if bare_date else moment


# Where a range begins, and where it ends: inclusive, and a bare date means the end of that day.
Beginning = Annotated[datetime, BeforeValidator(_moment)]
End = Annotated[datetime, BeforeValidator(_end)]
