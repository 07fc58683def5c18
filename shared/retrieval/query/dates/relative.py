"""English times relative to now: yesterday, last week, the last three days, a year ago."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from shared.retrieval.query.dates.absolute import WEEKDAY, Form, month_number
from shared.retrieval.query.dates.calendar import (
    Period,
    Unit,
    latest,
    latest_weekday,
    part,
    period_at,
    shift,
)
from shared.text.language_detection import ENGLISH_MONTHS, WEEKDAYS

# "a few" is generous: a filter hides documents.
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple": 2, "few": 5, "several": 7,
}  # fmt: skip
_NUMBER = (
    r"(?P<number>\d{1,4}|a\s+few|few|several|(?:a\s+)?couple(?:\s+of)?|an?|one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve)"
)
_LAST = r"(?:last|past|previous|prior|preceding)"
_COUNTED = (
    rf"(?:{_NUMBER}[\s-]+(?P<unit>hour|day|week|month|quarter|year)s?|(?P<digits>\d{{1,4}})(?P<letter>[hdw]))"
)
# Ages, as in "older than two weeks".
COUNT = r"(?:an?|one|two|three|four|five|six|\d{1,4})\s+(?:hour|day|week|month|quarter|year)s?"
# "the last week of the trial", "this week day parser" have other senses.
_NOT_ANOTHER = r"(?!\s+of\b|\s*-?days?\b)"
_HOURS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 24)}
_LETTERS = {"h": Unit.HOUR, "d": Unit.DAY, "w": Unit.WEEK}


def _amount(match: re.Match[str]) -> tuple[int, Unit]:
    if match["digits"]:
        return int(match["digits"]), _LETTERS[match["letter"].lower()]
    text = match["number"].lower()
    count = int(text) if text.isdigit() else _NUMBERS[text.removesuffix(" of").split()[-1]]
    return count, Unit(match["unit"].lower())


def _today(now: datetime) -> Period:
    return period_at(now, Unit.DAY)


def _yesterday(now: datetime) -> Period:
    return period_at(now - timedelta(days=1), Unit.DAY)


def _hours(period: Period, text: str | None) -> Period:
    if text is None:
        return period
    begin, end = _HOURS[text.lower()]
    return Period(period.begin + timedelta(hours=begin), period.begin + timedelta(hours=end))


def _last_night(match: re.Match[str], now: datetime) -> Period:
    today = _today(now).begin
    return Period(today - timedelta(hours=6), today + timedelta(hours=6))


def _rolling(match: re.Match[str], now: datetime) -> Period:
    return rolling_period(*_amount(match), now)


def rolling_period(count: int, unit: Unit, now: datetime) -> Period:
    """The last `count` units, in whole days up to the end of today; hours end now."""
    begin = shift(now, unit, -count)
    if unit is Unit.HOUR:
        return Period(begin, now + timedelta(microseconds=1))
    return Period(period_at(begin, Unit.DAY).begin, _today(now).end)


def _past(match: re.Match[str], now: datetime) -> Period:
    return rolling_period(1, Unit(match["unit"].lower()), now)


def _previous(match: re.Match[str], now: datetime) -> Period:
    unit = Unit(match["unit"].lower())
    return period_at(shift(period_at(now, unit).begin, unit, -1), unit)


def _current(match: re.Match[str], now: datetime) -> Period:
    return period_at(now, Unit(match["unit"].lower()))


def _ago(match: re.Match[str], now: datetime) -> Period:
    count, unit = _amount(match)
    then = shift(now, unit, -count)
    if unit is Unit.HOUR:
        return Period(then - timedelta(minutes=30), then + timedelta(minutes=30))
    return period_at(then, unit)


def _weekend(match: re.Match[str], now: datetime) -> Period:
    week = period_at(now, Unit.WEEK)
    monday = week.begin if match["which"].lower() == "this" else shift(week.begin, Unit.WEEK, -1)
    return Period(monday + timedelta(days=5), monday + timedelta(days=7))


def _last_weekday(match: re.Match[str], now: datetime) -> Period:
    return replace(
        latest_weekday(WEEKDAYS.index(match["weekday"].lower()), _yesterday(now).begin), cycle=None
    )


def _weekday_of(match: re.Match[str], now: datetime) -> Period:
    weeks = 0 if (match.groupdict().get("which") or "this").lower() == "this" else -1
    monday = shift(period_at(now, Unit.WEEK).begin, Unit.WEEK, weeks)
    return period_at(monday + timedelta(days=WEEKDAYS.index(match["weekday"].lower())), Unit.DAY)


def _last_month_named(match: re.Match[str], now: datetime) -> Period:
    """Last March is the latest that has ended; this March is this year's."""
    if match["which"].lower() == "this":
        return part(now.year, Unit.MONTH, month_number(match["month"]))
    ended = shift(period_at(now, Unit.MONTH).begin, Unit.MONTH, -1)
    return replace(
        latest(lambda year: part(year, Unit.MONTH, month_number(match["month"])), ended), cycle=None
    )


RELATIVE = (
    Form(r"(?:the\s+)?day\s+before\s+yesterday", lambda match, now: _yesterday(_yesterday(now).begin)),
    Form(
        r"yesterday(?:\s+(?P<hours>morning|afternoon|evening|night))?",
        lambda match, now: _hours(_yesterday(now), match["hours"]),
    ),
    Form(
        r"(?:this\s+(?P<hours>morning|afternoon|evening)|today)",
        lambda match, now: _hours(_today(now), match["hours"]),
    ),
    Form(r"tonight", lambda match, now: _hours(_today(now), "night")),
    Form(r"last\s+night", _last_night),
    Form(rf"(?:{_LAST}|trailing)\s+{_COUNTED}{_NOT_ANOTHER}", _rolling),
    Form(rf"{_COUNTED}\s+ago", _ago),
    Form(rf"{WEEKDAY}\s+(?:of\s+)?(?P<which>last|this|previous)\s+week", _weekday_of),
    Form(rf"(?P<which>last|this|previous)\s+week(?:['’]s)?\s+{WEEKDAY}", _weekday_of),
    Form(rf"{_LAST}\s+{WEEKDAY}", _last_weekday),
    Form(rf"this\s+{WEEKDAY}", _weekday_of),
    Form(r"(?P<which>last|past|previous|this)\s+weekend", _weekend),
    Form(
        rf"(?P<which>last|this)\s+(?P<month>{'|'.join(ENGLISH_MONTHS)})(?!\s+be\b)",
        _last_month_named,
    ),
    Form(rf"(?:last|past)\s+(?P<unit>hour){_NOT_ANOTHER}", _past),
    Form(rf"past\s+(?P<unit>day|week|month|quarter|year){_NOT_ANOTHER}", _past),
    Form(rf"(?:last|previous|prior|preceding)\s+(?P<unit>week|month|quarter|year){_NOT_ANOTHER}", _previous),
    Form(rf"(?:this|current)\s+(?P<unit>week|month|quarter|year){_NOT_ANOTHER}", _current),
    Form(r"(?P<unit>week|month|quarter|year)[\s-]to[\s-]date", _current),
)  # fmt: skip
# Only after a part: "the end of the year".
WHOLE = Form(r"the\s+(?P<unit>week|month|quarter|year)", _current)
