"""The calendar of time expressions; without a caller."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shared.retrieval.query.dates.calendar import (
    Period,
    Unit,
    day,
    latest,
    latest_weekday,
    part_of_year,
    period_at,
    shift,
)


def at(*fields: int) -> datetime:
    return datetime(*fields, tzinfo=UTC)  # type: ignore[misc, arg-type]


PERIODS = [
    (Unit.HOUR, at(2026, 4, 15, 14), at(2026, 4, 15, 15)),
    (Unit.DAY, at(2026, 4, 15), at(2026, 4, 16)),
    (Unit.WEEK, at(2026, 4, 13), at(2026, 4, 20)),
    (Unit.MONTH, at(2026, 4, 1), at(2026, 5, 1)),
    (Unit.QUARTER, at(2026, 4, 1), at(2026, 7, 1)),
    (Unit.HALF, at(2026, 1, 1), at(2026, 7, 1)),
    (Unit.YEAR, at(2026, 1, 1), at(2027, 1, 1)),
]


def test_a_moment_is_in_one_unit_of_each_kind(subtests: pytest.Subtests):
    for unit, begin, end in PERIODS:
        with subtests.test(unit=unit):
            assert period_at(at(2026, 4, 15, 14, 30), unit) == Period(begin, end)


MOVES = [(1, at(2026, 4, 30)), (-1, at(2026, 2, 28)), (-25, at(2024, 2, 29)), (9, at(2026, 12, 31))]


def test_the_31st_moves_to_the_last_day_of_a_shorter_month():
    assert [(count, shift(at(2026, 3, 31), Unit.MONTH, count)) for count, _ in MOVES] == MOVES


def test_parts_of_a_year_are_numbered_from_one():
    assert part_of_year(2025, Unit.QUARTER, 3) == Period(at(2025, 7, 1), at(2025, 10, 1))
    assert part_of_year(2025, Unit.HALF, 2) == Period(at(2025, 7, 1), at(2026, 1, 1))
    assert part_of_year(2025, Unit.MONTH, 12) == Period(at(2025, 12, 1), at(2026, 1, 1))


def test_a_yearly_period_is_the_latest_that_has_started():
    assert latest(lambda year: part_of_year(year, Unit.MONTH, 5), at(2026, 4, 30)).begin == at(2025, 5, 1)
    assert latest(lambda year: part_of_year(year, Unit.MONTH, 5), at(2026, 5, 1)).begin == at(2026, 5, 1)
    assert latest(lambda year: day(year, 2, 29), at(2027, 4, 1)).begin == at(2024, 2, 29)
    assert latest_weekday(2, at(2026, 4, 15)).begin == at(2026, 4, 15)
    assert latest_weekday(3, at(2026, 4, 15)).begin == at(2026, 4, 9)


def test_an_impossible_day_is_refused():
    with pytest.raises(ValueError, match="no such day"):
        latest(lambda year: day(year, 2, 30), at(2026, 4, 1))


@given(some.datetimes(at(2, 1, 1).replace(tzinfo=None), timezones=some.just(UTC)), some.sampled_from(Unit))
def test_every_moment_is_within_its_unit(moment: datetime, unit: Unit):
    try:
        period = period_at(moment, unit)
    except (ValueError, OverflowError):
        assert moment.year == 9999
    else:
        assert period.begin <= moment < period.end
        assert period_at(period.begin, unit) == period
