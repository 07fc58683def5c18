"""Calendar periods from hours to years, in UTC.

Weeks begin on Monday. A date outside the calendar raises ValueError or OverflowError.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

# Most years between two 29 February.
LEAP = 8


class Unit(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    HALF = "half"
    YEAR = "year"


_MONTHS = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.HALF: 6, Unit.YEAR: 12}
_LENGTHS = {Unit.HOUR: timedelta(hours=1), Unit.DAY: timedelta(days=1), Unit.WEEK: timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class Period:
    """[begin, end). `cycle`: the interval of repetition of an ambiguous period, such as a weekday."""

    begin: datetime
    end: datetime
    cycle: Unit | None = None


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `after` to `before`, both inclusive, in UTC; None is open. `text`: its words, [start:end)."""

    after: datetime | None
    before: datetime | None
    text: str
    start: int
    end: int


def shift(moment: datetime, unit: Unit, count: int) -> datetime:
    """The moment `count` units later; the 31st becomes the last day of a shorter month."""
    if unit in _LENGTHS:
        return moment + _LENGTHS[unit] * count
    year, month = divmod(moment.year * 12 + moment.month - 1 + _MONTHS[unit] * count, 12)
    last = monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def period_at(moment: datetime, unit: Unit) -> Period:
    """The calendar unit that contains the moment."""
    begin = moment.replace(minute=0, second=0, microsecond=0)
    if unit is not Unit.HOUR:
        begin = begin.replace(hour=0)
    if unit is Unit.WEEK:
        begin -= timedelta(days=begin.weekday())
    if size := _MONTHS.get(unit):
        begin = begin.replace(month=(begin.month - 1) // size * size + 1, day=1)
    return Period(begin, shift(begin, unit, 1))


def part_of_year(year: int, unit: Unit, number: int) -> Period:
    """The year's month, quarter or half with this number, from 1."""
    return period_at(shift(datetime(year, 1, 1, tzinfo=UTC), unit, number - 1), unit)


def day(year: int, month: int, number: int) -> Period:
    return period_at(datetime(year, month, number, tzinfo=UTC), Unit.DAY)


def latest(of_year: Callable[[int], Period], now: datetime) -> Period:
    """The latest of the yearly periods that has begun."""
    for year in range(now.year, now.year - LEAP - 1, -1):
        try:
            period = of_year(year)
        except ValueError:
            continue
        if period.begin <= now:
            return replace(period, cycle=Unit.YEAR)
    raise ValueError("no such day")


def latest_weekday(number: int, now: datetime) -> Period:
    """The latest weekday with this number that has begun; Monday is 0."""
    period = period_at(now - timedelta(days=(now.weekday() - number) % 7), Unit.DAY)
    return replace(period, cycle=Unit.WEEK)
