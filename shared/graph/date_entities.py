"""Dates as entities, named as in 2025-09-22. A year alone is none."""

import re
from collections.abc import Iterator
from datetime import date

from shared.graph.mentions import Mention
from shared.text.language_detection import MONTH_NAMES, MONTHS

_MONTH = rf"(?P<month>{MONTH_NAMES})\.?"
_YEAR = r"(?P<year>1\d{3}|20\d\d)"
# A date with the month's name and a day may lie before the year 1000.
_ANY_YEAR = r"(?P<year>1\d{3}|20\d\d|[3-9]\d\d)"
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])"
_FORMS = [
    # A particle may follow without a space.
    re.compile(rf"{_YEAR}年(?P<number>1[0-2]|0?[1-9])月{_DAY}日"),
] + [
    re.compile(rf"(?<![\w/.-]){form}(?![\w/-])(?!\.\d)", re.IGNORECASE)
    for form in (
        rf"{_YEAR}(?P<mark>[-/])(?P<number>0[1-9]|1[0-2])(?P=mark)(?P<day>3[01]|[12]\d|0[1-9])(?:T[\d:.]{{2,16}}Z?)?",
        rf"{_DAY}(?:st|nd|rd|th|er|º|\.)?\s?(?:(?:of|de)\s|-)?{_MONTH}(?:,?\s|\sde\s|-){_ANY_YEAR}",
        rf"{_MONTH}\s{_DAY}(?:st|nd|rd|th)?,?\s{_ANY_YEAR}",
        rf"{_DAY}\.\s?(?P<number>1[0-2]|0?[1-9])\.\s?{_YEAR}",
        rf"{_DAY}/(?P<number>1[0-2]|0?[1-9])/{_YEAR}",
        rf"(?P<number>1[0-2]|0?[1-9])/{_DAY}/{_YEAR}",
        rf"{_MONTH}(?:\s|\sde\s){_ANY_YEAR}",
    )
]
# Only the text around a possible year is searched.
_YEARS = re.compile(r"\d{3,4}")
_AROUND = 32
_MAX_WINDOW = 1000


def dates_in(text: str) -> list[Mention]:
    mentions: list[Mention] = []
    for begin, end in _windows(text):
        spans: list[tuple[int, int]] = []
        for form in _FORMS:
            for match in form.finditer(text, begin, end):
                name = _normal_form(match)
                if not any(match.start() < stop and start < match.end() for start, stop in spans):
                    # The 31st of February is neither a date nor a mention of February.
                    spans.append(match.span())
                    mentions += [Mention(*match.span(), name, "date")] if name else []
    return mentions


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Bounded windows around years, which do not overlap."""
    begin = end = 0
    for year in _YEARS.finditer(text):
        if year.start() - _AROUND > end or end - begin > _MAX_WINDOW:
            if end:
                yield begin, end
            begin = max(end, year.start() - _AROUND)
        end = year.end() + _AROUND
    if end:
        yield begin, min(end, len(text))


def _normal_form(match: re.Match[str]) -> str | None:
    """The date; None for the 31st of February, and for 3/4/2025, whose month is ambiguous."""
    parts = match.groupdict()
    month = int(parts["number"]) if parts.get("number") else MONTHS[parts["month"].lower()]
    if not parts.get("day"):
        return f"{int(parts['year']):04}-{month:02}"
    day = int(parts["day"])
    if "/" in match[0] and "mark" not in parts and day <= 12 and day != month:
        return None
    try:
        return date(int(parts["year"]), month, day).isoformat()
    except ValueError:
        return None
