"""English times relative to now: yesterday, last week, the last three days, a year ago."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from shared.retrieval.query.dates.absolute import MONTH, WEEKDAY, Form, month_number
from shared.retrieval.query.dates.calendar import (
    Period,
    Unit,
    latest,
    latest_weekday,
    part_of_year,
    period_at,
    shift,
)
from shared.text.language_detection import WEEKDAYS

# "a few" is generous: a filter hides documents.
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "twelve": 12, "couple": 2, "few": 5, "several": 7,
}  # fmt: skip
_UNITS = {unit[0]: unit for unit in (Unit.HOUR, Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.QUARTER, Unit.YEAR)}
_COUNTED = (
    rf"(?:(?P<number>\d{{1,4}}|(?:a\s+)?(?:couple(?:\s+of)?|few)|{'|'.join(_NUMBERS)})[\s-]+"
    r"(?P<unit>hour|day|week|month|quarter|year)s?|(?P<digits>\d{1,4})(?P<letter>[hdw]))"
)
# The age of documents, or a moment: before, after or on it.
AGO = re.compile(rf"(?:(?P<age>older|newer|younger)\s+than\s+)?{_COUNTED}(?:\s+ago)?", re.IGNORECASE)
_LAST = r"(?:last|past|previous|prior|preceding)"
# "the last week of the trial", "this week day parser" have other senses.
_NOT_ANOTHER = r"(?!\s+of\b|\s*-?days?\b)"


def _amount(match: re.Match[str]) -> tuple[int, Unit]:
    if match["digits"]:
        return int(match["digits"]), _UNITS[match["letter"].lower()]
    text = match["number"].lower()
    count = int(text) if text.isdigit() else _NUMBERS[text.removesuffix(" of").split()[-1]]
    return count, Unit(match["unit"].lower())


def _yesterday(now: datetime) -> Period:
    return period_at(now - timedelta(days=1), Unit.DAY)


def _rolling(match: re.Match[str], now: datetime) -> Period:
    """The last units, in whole days up to the end of today; hours end now."""
    count, unit = _amount(match)
    begin = shift(now, unit, -count)
    if unit is Unit.HOUR:
        return Period(begin, now + timedelta(microseconds=1))
    return Period(period_at(begin, Unit.DAY).begin, period_at(now, Unit.DAY).end)


def day_ago(match: re.Match[str], now: datetime) -> Period:
    count, unit = _amount(match)
    return period_at(shift(now, unit, -count), Unit.DAY)


def _ago(match: re.Match[str], now: datetime) -> Period:
    count, unit = _amount(match)
    return period_at(shift(now, unit, -count), unit)


def _past(match: re.Match[str], now: datetime) -> Period:
    begin = period_at(shift(now, Unit(match["unit"].lower()), -1), Unit.DAY).begin
    return Period(begin, period_at(now, Unit.DAY).end)


def _previous(match: re.Match[str], now: datetime) -> Period:
    unit = Unit(match["unit"].lower())
    return period_at(shift(period_at(now, unit).begin, unit, -1), unit)


def _current(match: re.Match[str], now: datetime) -> Period:
    return period_at(now, Unit(match["unit"].lower()))


def _last_weekend(match: re.Match[str], now: datetime) -> Period:
    monday = period_at(now, Unit.WEEK).begin
    return Period(monday - timedelta(days=2), monday)


def _last_weekday(match: re.Match[str], now: datetime) -> Period:
    number = WEEKDAYS.index(match["weekday"].lower())
    return replace(latest_weekday(number, _yesterday(now).begin), cycle=None)


def _last_month(match: re.Match[str], now: datetime) -> Period:
    """The latest month of that name that has ended."""
    ended = shift(period_at(now, Unit.MONTH).begin, Unit.MONTH, -1)
    month = month_number(match["month"])
    return replace(latest(lambda year: part_of_year(year, Unit.MONTH, month), ended), cycle=None)


RELATIVE = (
    Form(r"(?:the\s+)?day\s+before\s+yesterday", lambda match, now: _yesterday(_yesterday(now).begin)),
    Form(r"yesterday", lambda match, now: _yesterday(now)),
    Form(r"today", lambda match, now: period_at(now, Unit.DAY)),
    Form(rf"{_LAST}\s+{_COUNTED}{_NOT_ANOTHER}", _rolling),
    Form(rf"{_COUNTED}\s+ago", _ago),
    Form(rf"(?:older|newer|younger)\s+than\s+{_COUNTED}", _ago),
    Form(rf"{_LAST}\s+{WEEKDAY}", _last_weekday),
    Form(rf"{_LAST}\s+weekend", _last_weekend),
    Form(rf"last\s+(?P<month>{MONTH})(?!\s+be\b)", _last_month),
    Form(rf"past\s+(?P<unit>day|week|month|quarter|year){_NOT_ANOTHER}", _past),
    Form(rf"{_LAST}\s+(?P<unit>week|month|quarter|year){_NOT_ANOTHER}", _previous),
    Form(rf"(?:this|current)\s+(?P<unit>week|month|quarter|year){_NOT_ANOTHER}", _current),
)
# Only after a part: "the end of the year".
WHOLE = Form(r"the\s+(?P<unit>week|month|quarter|year)", _current)
