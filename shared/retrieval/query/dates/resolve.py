"""Pattern of English time expressions, and their periods at a given time."""

import re
from collections.abc import Sequence
from datetime import datetime

from shared.retrieval.query.dates.absolute import BARE, DATES, Form
from shared.retrieval.query.dates.calendar import Period, Unit, shift
from shared.retrieval.query.dates.relative import RELATIVE, WHOLE


def _any(forms: Sequence[Form]) -> str:
    return "|".join(re.sub(r"\?P<\w+>", "?:", form.pattern) for form in forms)


# "early March", "the end of 2024": the whole of it, since a filter hides documents.
_PART = r"(?:early|mid|late)[\s-]+|(?:the\s+)?(?:beginning|start|middle|end)\s+of\s+"
PART = re.compile(_PART, re.IGNORECASE)
_SURE = (*DATES, *RELATIVE)
# `sure` is unambiguous, `of` a part of a period, `bare` ambiguous.
TIME_EXPRESSION = re.compile(
    rf"(?<![\w./:@#&+$%=])(?:(?:{_PART})(?:{_any([WHOLE])})"
    rf"|(?P<of>(?:{_PART})(?:the\s+)?)?(?:(?P<sure>{_any(_SURE)})|(?P<bare>{_any(BARE)})))"
    r"(?![\w@#%=])(?![./:+&]\w)",
    re.IGNORECASE,
)
_FORMS = [(re.compile(form.pattern, re.IGNORECASE), form.resolve) for form in (*_SURE, *BARE, WHOLE)]


def period(text: str, now: datetime) -> Period:
    """The period of a time expression. Raises ValueError or OverflowError outside the calendar."""
    if part := PART.match(text):
        text = text[part.end() :]
    for pattern, resolve in _FORMS:
        if match := pattern.fullmatch(text):
            return resolve(match, now)
    raise ValueError("no time")


def ordered_periods(one: str, other: str, now: datetime) -> tuple[Period, Period]:
    """Both periods, in order. A recurring one is the nearest to the other."""
    first, last = period(one, now), period(other, now)
    if first.cycle and not last.cycle:
        first = period(one, last.begin)
    elif last.cycle and last.begin < first.begin:
        last = period(other, first.begin)
        if last.begin < first.begin:
            last = period(other, shift(first.begin, last.cycle or Unit.YEAR, 1))
    return (first, last) if first.begin <= last.begin else (last, first)
