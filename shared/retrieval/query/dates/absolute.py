"""Dates as English names them: 3 March 2025, Q3, the first half of 2024, 2025-03-04, on Friday.

A form has a pattern and a function for its period. A date without a year is the latest that has begun.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.retrieval.query.dates.calendar import Period, Unit, day, latest, latest_weekday, part, period_at
from shared.text.language_detection import MONTHS, WEEKDAYS

Resolve = Callable[[re.Match[str], datetime], Period]


@dataclass(frozen=True, slots=True)
class Form:
    """Date expression. `resolve` returns its period at a given time."""

    pattern: str
    resolve: Resolve


_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}

WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAYS)})"
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONTH = rf"(?P<month>{MONTH}\b)\.?"
# Without month names that, with a number, have other senses: march, may, dec.
_SURE_MONTH = _MONTH.replace("mar(?:ch)?|", "").replace("may|", "").replace("dec(?:ember)?", "december")
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_LAST = r"(?P<last>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_TO = r"(?:\s*[-–—]\s*|\s+(?:to|until|through)\s+)"
_YEAR = r"(?P<year>(?:19|20)\d\d|(?:last|previous|this)\s+year)"
_OF_YEAR = rf"(?:\s*,\s*|\s+of\s+|\s+in\s+|\s+){_YEAR}"
_SHORT_YEAR = r"\s?['’](?P<short>\d\d)"
# Not a year: a number before a counted noun.
_NO_COUNT = (
    r"(?!\s*(?:%|(?:ms|s|milliseconds?|seconds?|minutes?|hours?|days?|lines?|tokens?|rows?|users?|requests?|items?"
    r"|files?|words?|characters?|chars?|bytes?|[kmg]i?b|dollars?|euros?|usd|eur|percent|px|pixels?|dimensions?"
    r"|chunks?|documents?|errors?|times|connections?|records?|pages?|people|employees|customers|steps?"
    r"|iterations?|retries|attempts?|entries|messages|queries)\b))"
)
# Not the month: "may" before a verb or pronoun.
_NO_VERB = (
    r"(?!(?<=\bmay)\s+(?:be|have|not|also|only|never|well|i|we|you|they|he|she|it|need|want|contain|cause|lead|get"
    r"|use|help|require|include|go|take|make|fail|happen|change|differ|occur|result|become|still|or)\b)"
)


def _year(match: re.Match[str], now: datetime) -> int | None:
    groups = match.groupdict()
    if text := groups.get("year"):
        if text.isdigit():
            return int(text)
        return now.year - (not text.lower().startswith("this"))
    short = groups.get("short")
    return 2000 + int(short) if short else None


def _of(match: re.Match[str], now: datetime, of_year: Callable[[int], Period]) -> Period:
    year = _year(match, now)
    return latest(of_year, now) if year is None else of_year(year)


def month_number(name: str) -> int:
    return MONTHS[name[:3].lower()]


def _month(match: re.Match[str], now: datetime) -> Period:
    return _of(match, now, lambda year: part(year, Unit.MONTH, month_number(match["month"])))


def _day(match: re.Match[str], now: datetime) -> Period:
    return _of(match, now, lambda year: day(year, month_number(match["month"]), int(match["day"])))


def _days(match: re.Match[str], now: datetime) -> Period:
    def of_year(year: int) -> Period:
        month = month_number(match["month"])
        return Period(day(year, month, int(match["day"])).begin, day(year, month, int(match["last"])).end)

    return _of(match, now, of_year)


def _quarter(match: re.Match[str], now: datetime) -> Period:
    return _of(match, now, lambda year: part(year, Unit.QUARTER, int(match["quarter"])))


def _half(match: re.Match[str], now: datetime) -> Period:
    return _of(match, now, lambda year: part(year, Unit.HALF, int(match["half"])))


def _ordinal(match: re.Match[str], now: datetime) -> Period:
    unit = Unit(match["part"].lower())
    number = _ORDINALS.get(match["ordinal"].lower(), 4 if unit is Unit.QUARTER else 2)
    if unit is Unit.HALF and number > 2:
        raise ValueError("a year has two halves")
    return _of(match, now, lambda year: part(year, unit, number))


def _iso(match: re.Match[str], now: datetime) -> Period:
    text = match["iso"].replace("/", "-")
    moment = datetime.fromisoformat(text)
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    if "time" not in match.groupdict() or not match["time"]:
        return period_at(moment, Unit.DAY)
    return Period(moment, moment + timedelta(seconds=1 if match["time"].count(":") > 1 else 60))


def _iso_month(match: re.Match[str], now: datetime) -> Period:
    return part(int(match["year"]), Unit.MONTH, int(match["number"]))


def _slashes(match: re.Match[str], now: datetime) -> Period:
    """Accepts 03/14/2025 and 14/03/2025; rejects the ambiguous 03/04/2025."""
    one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
    if one != other and max(one, other) <= 12:
        raise ValueError("a day or a month")
    return day(year, min(one, other), max(one, other))


def _dots(match: re.Match[str], now: datetime) -> Period:
    return day(int(match["year"]), int(match["number"]), int(match["day"]))


def _week_of(match: re.Match[str], now: datetime) -> Period:
    return period_at(_day(match, now).begin, Unit.WEEK)


def _bare_year(match: re.Match[str], now: datetime) -> Period:
    return period_at(datetime(int(match["year"]), 1, 1, tzinfo=UTC), Unit.YEAR)


def _bare_weekday(match: re.Match[str], now: datetime) -> Period:
    return latest_weekday(WEEKDAYS.index(match["weekday"].lower()), now)


_TIME = r"(?P<time>[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)"
# Unambiguous dates, longer forms first.
DATES = (
    Form(rf"(?P<iso>(?:19|20)\d\d-\d\d-\d\d{_TIME}?)", _iso),
    Form(r"(?P<iso>(?:19|20)\d\d/\d\d/\d\d)", _iso),
    Form(r"(?P<one>\d\d?)/(?P<other>\d\d?)/(?P<year>(?:19|20)\d\d)", _slashes),
    Form(rf"week\s+(?:of|starting)\s+(?:the\s+)?{_DAY}(?:\s+of)?\s+{_MONTH}(?:{_OF_YEAR})?", _week_of),
    Form(rf"week\s+(?:of|starting)\s+{_MONTH}\s+(?:the\s+)?{_DAY}(?:{_OF_YEAR})?", _week_of),
    Form(rf"{_DAY}{_TO}{_LAST}(?:\s+of)?\s+{_MONTH}(?:{_OF_YEAR})?", _days),
    Form(rf"{_MONTH}\s+{_DAY}{_TO}{_LAST}{_OF_YEAR}", _days),
    Form(rf"{_SURE_MONTH}\s+{_DAY}{_TO}{_LAST}", _days),
    Form(rf"{_DAY}-{_MONTH}-(?P<year>(?:19|20)\d\d)", _day),
    Form(rf"{_DAY}(?:\s+of)?\s+{_MONTH}{_OF_YEAR}", _day),
    Form(rf"{_MONTH}\s+(?:the\s+)?{_DAY}{_OF_YEAR}", _day),
    Form(rf"{_DAY}\s+of\s+{_MONTH}", _day),
    Form(rf"{_DAY}\s+{_SURE_MONTH}", _day),
    Form(rf"{_SURE_MONTH}\s+(?:the\s+)?{_DAY}", _day),
    Form(rf"{_MONTH}{_OF_YEAR}", _month),
    Form(rf"month\s+of\s+{_MONTH}(?:{_OF_YEAR})?", _month),
    Form(r"year\s+(?P<year>(?:19|20)\d\d)", _bare_year),
    Form(rf"{_MONTH}{_SHORT_YEAR}", _month),
    Form(r"(?P<year>(?:19|20)\d\d)[\s-]?Q(?P<quarter>[1-4])", _quarter),
    Form(r"Q(?P<quarter>[1-4])[-/\s]?(?P<year>(?:19|20)\d\d)", _quarter),
    Form(rf"Q(?P<quarter>[1-4]){_SHORT_YEAR}", _quarter),
    Form(rf"Q(?P<quarter>[1-4])(?:{_OF_YEAR})?", _quarter),
    Form(r"(?P<year>(?:19|20)\d\d)[\s-]?H(?P<half>[12])", _half),
    Form(r"H(?P<half>[12])[-/\s]?(?P<year>(?:19|20)\d\d)", _half),
    Form(rf"H(?P<half>[12]){_SHORT_YEAR}", _half),
    Form(rf"H(?P<half>[12]){_OF_YEAR}", _half),
    Form(
        rf"(?P<ordinal>{'|'.join(_ORDINALS)}|last)\s+(?P<part>quarter|half)(?:\s+of)?\s+(?:the\s+)?{_YEAR}",
        _ordinal,
    ),
)  # fmt: skip
# Ambiguous dates, which need a preposition like "since" or "in".
BARE = (
    Form(rf"{_DAY}\s+{_MONTH}", _day),
    Form(rf"{_MONTH}\s+(?:the\s+)?{_DAY}", _day),
    Form(r"(?P<day>\d\d?)\.\s?(?P<number>\d\d?)\.\s?(?P<year>(?:19|20)\d\d)", _dots),
    Form(r"(?P<year>(?:19|20)\d\d)-(?P<number>0[1-9]|1[0-2])", _iso_month),
    Form(rf"(?P<year>(?:19|20)\d\d){_NO_COUNT}", _bare_year),
    Form(r"H(?P<half>[12])(?!\s+(?:tags?|headings?|headers?|elements?|titles?)\b)", _half),
    Form(_MONTH.replace("mar(?:ch)?", "march").replace("dec(?:ember)?", "december")
         .replace("oct(?:ober)?", "october") + _NO_VERB, _month),
    Form(WEEKDAY, _bare_weekday),
)  # fmt: skip
