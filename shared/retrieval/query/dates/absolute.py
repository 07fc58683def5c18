"""Dates as English names them: 3 March 2025, Q3, the first half of 2024, 2025-03-04, on Friday.

A form has a pattern and a function for its period. A date without a year is the latest that has begun.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from shared.retrieval.query.dates.calendar import Period, Unit, day, latest, latest_weekday, part_of_year
from shared.text.language_detection import MONTHS, WEEKDAYS

Resolve = Callable[[re.Match[str], datetime], Period]


@dataclass(frozen=True, slots=True)
class Form:
    """Date expression. `resolve` returns its period at a given time."""

    pattern: str
    resolve: Resolve


_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_PARTS = {"q": Unit.QUARTER, "h": Unit.HALF}

WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAYS)})"
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONTH = rf"(?P<month>{MONTH}\b)\.?"
# Without month names that, with a number, have other senses: march, may, dec.
_SURE_MONTH = _MONTH.replace("mar(?:ch)?|", "").replace("may|", "").replace("dec(?:ember)?", "december")
# Alone, "mar", "oct" and "dec" have other senses, and "may" before a verb or pronoun.
_BARE_MONTH = (
    _MONTH.replace("mar(?:ch)?", "march")
    .replace("dec(?:ember)?", "december")
    .replace("oct(?:ober)?", "october")
    + r"(?!(?<=\bmay)\s+(?:be|have|not|also|i|we|you|they|he|she|it|need|contain|cause|use|or)\b)"
)
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_NUMBER = r"(?P<year>(?:19|20)\d\d)"
_YEAR = r"(?P<year>(?:19|20)\d\d|(?:last|previous|this)\s+year)"
_OF_YEAR = rf"(?:\s*,\s*|\s+of\s+|\s+in\s+|\s+){_YEAR}"


def _of(match: re.Match[str], now: datetime, of_year: Callable[[int], Period]) -> Period:
    text = match.groupdict().get("year")
    if text is None:
        return latest(of_year, now)
    return of_year(int(text) if text.isdigit() else now.year - (not text.lower().startswith("this")))


def month_number(name: str) -> int:
    return MONTHS[name[:3].lower()]


def _month(match: re.Match[str], now: datetime) -> Period:
    return _of(match, now, lambda year: part_of_year(year, Unit.MONTH, month_number(match["month"])))


def _day(match: re.Match[str], now: datetime) -> Period:
    return _of(match, now, lambda year: day(year, month_number(match["month"]), int(match["day"])))


def _part(match: re.Match[str], now: datetime) -> Period:
    unit, number = _PARTS[match["part"][0].lower()], match["number"].lower()
    count = _ORDINALS.get(number) or int(number)
    if unit is Unit.HALF and count > 2:
        raise ValueError("a year has two halves")
    return _of(match, now, lambda year: part_of_year(year, unit, count))


def _numbers(match: re.Match[str], now: datetime) -> Period:
    return day(int(match["year"]), int(match["number"]), int(match["day"]))


def _number_month(match: re.Match[str], now: datetime) -> Period:
    return part_of_year(int(match["year"]), Unit.MONTH, int(match["number"]))


def _bare_year(match: re.Match[str], now: datetime) -> Period:
    return Period(day(int(match["year"]), 1, 1).begin, day(int(match["year"]), 12, 31).end)


def _bare_weekday(match: re.Match[str], now: datetime) -> Period:
    return latest_weekday(WEEKDAYS.index(match["weekday"].lower()), now)


_TIME = r"[T ]\d\d:\d\d(?:[\d:.]*\d)?(?:Z|[+-]\d\d:?\d\d)?"
# Unambiguous dates, longer forms first. Of a timestamp the day counts: few documents have a time of day.
DATES = (
    Form(rf"{_NUMBER}[-/](?P<number>\d\d)[-/](?P<day>\d\d)(?:{_TIME})?", _numbers),
    Form(rf"{_DAY}(?:\s+of)?\s+{_MONTH}{_OF_YEAR}", _day),
    Form(rf"{_MONTH}\s+(?:the\s+)?{_DAY}{_OF_YEAR}", _day),
    Form(rf"{_DAY}\s+of\s+{_MONTH}", _day),
    Form(rf"{_DAY}\s+{_SURE_MONTH}", _day),
    Form(rf"{_SURE_MONTH}\s+(?:the\s+)?{_DAY}", _day),
    Form(rf"{_MONTH}{_OF_YEAR}", _month),
    Form(rf"(?<!fiscal )(?<!tax )year\s+{_NUMBER}", _bare_year),
    Form(rf"{_NUMBER}[\s-]?(?P<part>[QH])(?P<number>[1-4])", _part),
    Form(rf"(?P<part>[QH])(?P<number>[1-4])(?:\s*,\s*|\s+of\s+|\s+in\s+|[-/\s]?){_YEAR}", _part),
    Form(r"(?P<part>Q)(?P<number>[1-4])", _part),
    Form(rf"(?P<number>{'|'.join(_ORDINALS)})\s+(?P<part>quarter|half)(?:\s+of)?\s+{_YEAR}", _part),
)  # fmt: skip
# Ambiguous dates, which need a preposition like "since" or "in".
BARE = (
    Form(rf"{_DAY}\s+{_MONTH}", _day),
    Form(rf"{_MONTH}\s+(?:the\s+)?{_DAY}", _day),
    Form(rf"(?P<day>\d\d?)\.\s?(?P<number>\d\d?)\.\s?{_NUMBER}", _numbers),
    Form(rf"{_NUMBER}-(?P<number>0[1-9]|1[0-2])", _number_month),
    Form(_NUMBER, _bare_year),
    Form(r"(?P<part>H)(?P<number>[12])", _part),
    Form(_BARE_MONTH, _month),
    Form(WEEKDAY, _bare_weekday),
)
