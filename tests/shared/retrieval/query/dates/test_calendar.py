"""The calendar of time expressions; without a caller."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as some

from shared.retrieval.query.dates.calendar import Unit, period_at


@given(some.datetimes(datetime(2, 1, 1), timezones=some.just(UTC)), some.sampled_from(Unit))  # noqa: DTZ001
def test_every_moment_is_within_its_unit(moment: datetime, unit: Unit):
    try:
        period = period_at(moment, unit)
    except (ValueError, OverflowError):
        assert moment.year == 9999
    else:
        assert period.begin <= moment < period.end
        assert period_at(period.begin, unit) == period
