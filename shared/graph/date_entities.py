"""Dates as entities, named as in 2025-09-22. A year alone is none."""

import re
from collections.abc import Iterator
from datetime import date

from shared.graph.mentions import Mention
from shared.text.language_detection import MONTH_NAMES, MONTHS

_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_NUMBER = r"(?P<number>1[0-2]|0?[1-9])"
_YEAR = r"(?P<year>1\d{3}|20\d\d)"
_FORMS = tuple(
    re.compile(rf"(?<![A-Za-z\d_/.-]){form}(?![A-Za-z\d_/-]|\.\d)", re.IGNORECASE)
    for form in (
        rf"{_YEAR}[-/年]{_NUMBER}[-/月](?P<day>{_DAY})日?(?:T[\d:.]{{2,16}}Z?)?",
        rf"(?P<day>{_DAY})\.\s?{_NUMBER}\.\s?{_YEAR}",
        # A date with the month's name may lie before the year 1000.
        rf"(?:(?P<day>{_DAY})(?:st|nd|rd|th|er|º|\.)?\s?(?:(?:of|de)\s|-)?)?(?P<month>{MONTH_NAMES})\.?"
        rf"(?:\s(?P<day_behind>{_DAY})(?:st|nd|rd|th)?)?(?:,?\s|\sde\s|-)(?P<year>1\d{{3}}|20\d\d|[3-9]\d\d)",
    )
)


def dates_in(text: str) -> Iterator[Mention]:
    for form in _FORMS:
        for match in form.finditer(text):
            if name := _normal_form(match.groupdict()):
                yield Mention(*match.span(), name, "date")


def _normal_form(parts: dict[str, str | None]) -> str | None:
    """The date; None for the 31st of February."""
    year, month_name, day = parts["year"] or "", parts.get("month"), parts["day"] or parts.get("day_behind")
    month = MONTHS[month_name.lower()] if month_name else int(parts["number"] or 0)
    if not day:
        return f"{year}-{month:02}" if len(year) == 4 else None
    try:
        return date(int(year), month, int(day)).isoformat()
    except ValueError:
        return None
