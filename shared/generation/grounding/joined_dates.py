"""Dates that a text writes together: "24 and 31 December", "10 to 16 August"."""

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import pairwise

from shared.text.language_detection import MONTH_NAMES

# Every date of a longer range would count as mentioned wherever a document has a term of validity.
MAX_RANGE_DAYS = 31
# A year with 29 February, for dates without a year.
_LEAP_YEAR = 2024
_TO = "to|until|till|through|bis|au|al|hasta"
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|\.)?"
_BETWEEN = rf"(?:\s*,)?\s+(?:and|or|und|oder|sowie|et|ou|y|o|{_TO})\s+|\s*[,&–—-]\s*"
_SHARED_MONTH = re.compile(
    rf"(?<![\w.,:/–—-])(?P<days>{_DAY}(?:(?:{_BETWEEN}){_DAY})+)(?P<month>\s+(?:of\s+|de\s+)?(?:{MONTH_NAMES})\b)",
    re.IGNORECASE,
)
_EARLIER_DAY = re.compile(rf"{_DAY}(?=(?:{_BETWEEN})\d)")
# Up to two words before a date: "until Monday, the 16 August".
_RANGE = re.compile(rf"\s*,?\s*(?:\b(?:{_TO})\b|[–—-])\s*(?:[^\W\d]+,?\s+){{0,2}}", re.IGNORECASE)


def with_months(text: str) -> str:
    """The text with the month behind each day of a list or a range: "24 December and 31 December"."""
    return _SHARED_MONTH.sub(
        lambda match: _EARLIER_DAY.sub(lambda day: day[0] + match["month"], match["days"]) + match["month"],
        text,
    )


def days_within_ranges(
    text: str, dates: re.Pattern[str], day_of: Callable[[re.Match[str]], Sequence[int]]
) -> frozenset[tuple[int, int]]:
    """Month and day of each date within a range of at most a month. `dates` matches dates, of which `day_of`
    gives year (or 0), month and day, or nothing."""
    days: set[tuple[int, int]] = set()
    text = with_months(text)
    for first, last in pairwise(dates.finditer(text)):
        if _RANGE.fullmatch(text, first.end(), last.start()):
            days.update(_days(day_of(first), day_of(last)))
    return frozenset(days)


def _days(first: Sequence[int], last: Sequence[int]) -> set[tuple[int, int]]:
    if not first or not last:
        return set()
    year = last[0] or _LEAP_YEAR
    try:
        end = date(year, *last[1:])
        start = date(first[0] or year, *first[1:])
        start = start if first[0] or start <= end else start.replace(year=year - 1)
    except ValueError:
        return set()
    count = (end - start).days + 1
    days = (start + timedelta(number) for number in range(count if count <= MAX_RANGE_DAYS else 0))
    return {(day.month, day.day) for day in days}
