"""Stretches of the calendar: days, weeks, months, quarters, halves and years, in UTC.

Weeks begin on Monday. Whatever leaves the calendar raises ValueError or OverflowError.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

# As far back as 29 February may be.
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
_LENGTHS = {
    Unit.HOUR: timedelta(hours=1),
    Unit.DAY: timedelta(days=1),
    Unit.WEEK: timedelta(weeks=1),
}


@dataclass(frozen=True, slots=True)
class Period:
    """[begin, end). `cycle`: what it comes back after, where nobody said which one is meant."""

    begin: datetime
    end: datetime
    cycle: Unit | None = None

    def third(self, number: int) -> "Period":
        """The first, second or third part of it, by whole days."""
        part = (self.end - self.begin) / 3
        begin, end = (_midnight(self.begin + part * bound) for bound in (number - 1, number))
        return Period(begin, end if number < 3 else self.end, self.cycle)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `after` to `before`, both inclusive, in UTC; None is open. `text`: its words, [start:end)."""

    after: datetime | None
    before: datetime | None
    text: str
    start: int
    end: int


def moved(moment: datetime, unit: Unit, count: int) -> datetime:
    """So many units later, or earlier; from the 31st to the last day of a shorter month."""
    if unit in _LENGTHS:
        return moment + _LENGTHS[unit] * count
    year, month = divmod(moment.year * 12 + moment.month - 1 + _MONTHS[unit] * count, 12)
    first = moment.replace(year=year, month=month + 1, day=1)
    following = datetime(year + (month + 1) // 12, (month + 1) % 12 + 1, 1, tzinfo=UTC)
    last = (following - timedelta(days=1)).day
    return first.replace(day=min(moment.day, last))


def containing(moment: datetime, unit: Unit) -> Period:
    """The unit of the calendar that the moment is in."""
    begin = _begin(moment, unit)
    return Period(begin, moved(begin, unit, 1))


def part(year: int, unit: Unit, number: int) -> Period:
    """The year's month, quarter or half of that number, from 1 on."""
    return containing(moved(datetime(year, 1, 1, tzinfo=UTC), unit, number - 1), unit)


def day(year: int, month: int, number: int) -> Period:
    return containing(datetime(year, month, number, tzinfo=UTC), Unit.DAY)


def latest(of_year: Callable[[int], Period], now: datetime) -> Period:
    """The latest that has begun by now, of what every year has one of."""
    for year in range(now.year, now.year - LEAP - 1, -1):
        try:
            period = of_year(year)
        except ValueError:
            continue
        if period.begin <= now:
            return replace(period, cycle=Unit.YEAR)
    raise ValueError("no such day")


def latest_weekday(number: int, now: datetime) -> Period:
    """The latest such day of the week that has begun by now; Monday is 0."""
    period = containing(now - timedelta(days=(now.weekday() - number) % 7), Unit.DAY)
    return replace(period, cycle=Unit.WEEK)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _begin(moment: datetime, unit: Unit) -> datetime:
    if unit is Unit.HOUR:
        return moment.replace(minute=0, second=0, microsecond=0)
    begin = _midnight(moment)
    if unit is Unit.DAY:
        return begin
    if unit is Unit.WEEK:
        return begin - timedelta(days=begin.weekday())
    size = _MONTHS[unit]
    return begin.replace(month=(begin.month - 1) // size * size + 1, day=1)
