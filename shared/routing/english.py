"""Times that an English text speaks of, with what stands before them: "since March", "between Q1 and Q3".

No library did: those that find dates in a text (dateparser, datefinder, parsedatetime) give moments and not
ranges, and find them in "may",
"second" and in the numbers of tickets. What is not surely a time is none
here, since what a range leaves out nobody sees; what lies ahead (tomorrow, next week) is none either.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

from shared.routing.dates import BARE, DATES, Form
from shared.routing.periods import Period, Unit, moved
from shared.routing.relative import COUNT, RELATIVE, WHOLE

# As far as the words reach that stand before a time and belong to it.
_REACH = 40
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `after` to `before`, both inclusive, in UTC; None is open. text[start:end] is `said`."""

    after: datetime | None
    before: datetime | None
    said: str
    start: int
    end: int


def _any(forms: Sequence[Form]) -> str:
    return "|".join(re.sub(r"\?P<\w+>", "?:", form.pattern) for form in forms)


# "early March", "the end of 2024": a third of it.
_THIRDS = {"early": 1, "beginning": 1, "start": 1, "mid": 2, "middle": 2, "late": 3, "end": 3}
_PART = r"(?:early|mid|late)[\s-]+|(?:beginning|start|middle|end)\s+of\s+"
_SURE = (*DATES, *RELATIVE)
_WHEN = re.compile(
    rf"(?<![\w./:@#&+$%=])(?:(?P<part>{_PART})(?P<whole>{_any([WHOLE])})"
    rf"|(?P<of>(?:{_PART})(?:the\s+)?)?(?:(?P<sure>{_any(_SURE)})|(?P<bare>{_any(BARE)})))"
    r"(?![\w@#%=])(?![./:+&]\w)",
    re.IGNORECASE,
)
_FORMS = [(re.compile(form.pattern, re.IGNORECASE), form.resolve) for form in (*_SURE, *BARE, WHOLE)]
# What stands before a time says which side of it is meant.
_SIDES = {
    "between": "between", "since": "since", "ever since": "since", "starting": "since",
    "starting from": "since",
    "starting in": "since", "starting on": "since", "from": "from", "after": "after", "later than": "after",
    "before": "before", "prior to": "before", "earlier than": "before", "older than": "before",
    "until": "until", "up until": "until", "till": "until", "up to": "until", "no later than": "until",
    "by": "until",
    "in": "in", "on": "in", "during": "in", "within": "in", "throughout": "in",
    "over": "of", "more than": "of", "at": "of", "for": "of", "of": "of",
}  # fmt: skip
_HEAD = re.compile(
    r"(?:(?<![\w./:@#&+$%=-])(?P<side>"
    + "|".join(sorted(_SIDES, key=len, reverse=True)).replace(" ", r"\s+")
    + r")\s+)?(?P<the>\bthe\s+)?$",
    re.IGNORECASE,
)  # fmt: skip
_LINK = re.compile(
    r"\s*(?P<dash>[-–—/])\s*|\s+(?P<word>and|to|until|till|through|thru|up\s+to|(?:and|but)\s+(?:before|until|by)"
    r"|before)\s+(?:the\s+)?",
    re.IGNORECASE,
)
_ONWARD = re.compile(r"\s+(?:on|onwards?|or\s+later)(?!\w)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
_AGE = re.compile(
    rf"(?<!\w)(?P<side>older|newer|younger)\s+than\s+(?P<count>{COUNT})(?!\w)(?!\s+ago\b)", re.IGNORECASE
)


def english_range(text: str, now: datetime) -> TimeRange | None:
    """The first time that the text speaks of in English; `now` is in UTC."""
    times = list(_WHEN.finditer(text))
    found: list[TimeRange] = []
    for one, other in zip_longest(times, times[1:]):
        try:
            said = _together(text, one, other, now) or _alone(text, one, now)
        except (ValueError, OverflowError):
            # What no calendar has, such as 30 February.
            continue
        if said:
            found.append(said)
            break
    found += filter(None, [_aged(text, now)])
    return min(found, key=lambda said: said.start, default=None)


def _range(text: str, start: int, end: int, after: datetime | None, end_of_it: datetime | None) -> TimeRange:
    """Raises ValueError when nothing is in between."""
    if after and end_of_it and after >= end_of_it:
        raise ValueError("nothing in between")
    if tail := _POSSESSIVE.match(text, end):
        end = tail.end()
    return TimeRange(after, end_of_it and end_of_it - _TICK, text[start:end], start, end)


def _before(text: str, time: re.Match[str]) -> tuple[int, str, bool]:
    """Where the expression begins, the side that it is about, and whether an article stands there."""
    window = max(0, time.start() - _REACH)
    found = _HEAD.search(text[window : time.start()])
    if found is None or not found.group():
        return time.start(), "", False
    side = " ".join((found["side"] or "").lower().split())
    return window + found.start(), _SIDES.get(side, ""), found["the"] is not None


def _together(text: str, one: re.Match[str], other: re.Match[str] | None, now: datetime) -> TimeRange | None:
    """Both as the two ends of one range; None where they are not."""
    link = other and _LINK.fullmatch(text[one.end() : other.start()])
    if not other or not link:
        return None
    start, side, _ = _before(text, one)
    word = " ".join((link["word"] or "to").lower().split())
    if side == "between" or word == "and":
        if not (side == "between" and word == "and"):
            return None
    elif side not in ("from", "since", "after"):
        # January to March 2025; not a day of the week to a day of the week.
        if not other["sure"] or word.endswith(("before", "by")):
            return None
        if side != "in":
            start = one.start()
    first, last = _ends(one.group(), other.group(), now)
    begin = first.end if side == "after" else first.begin
    return _range(text, start, other.end(), begin, last.begin if word.endswith("before") else last.end)


def _ends(one: str, other: str, now: datetime) -> tuple[Period, Period]:
    """In order. The one of which nobody said which is meant is the nearest to the other on its side."""
    first, last = _period(one, now), _period(other, now)
    if first.cycle and not last.cycle:
        first = _period(one, last.begin)
    elif last.cycle and last.begin < first.begin:
        last = _period(other, first.begin)
        if last.begin < first.begin:
            last = _period(other, moved(first.begin, last.cycle or Unit.YEAR, 1))
    return (first, last) if first.begin <= last.begin else (last, first)


def _alone(text: str, time: re.Match[str], now: datetime) -> TimeRange | None:
    start, side, article = _before(text, time)
    if text[time.start() - 1 : time.start()] == "-" or re.match(r"-\w", text[time.end() :]):
        return None
    bare = time["bare"] is not None and time["of"] is None
    if side == "between" or (bare and (side in ("", "of") or (article and side in ("in", "from")))):
        return None
    said, end = time.group(), time.end()
    ago = said[:-3].rstrip() if said.lower().endswith(" ago") else None
    if ago and re.match(r"(?:over|more)\b", text[start:], re.IGNORECASE):
        side = "before"
    period = _period(said, now)
    if ago and side in ("since", "after", "before", "until"):
        # To the day, where a year ago alone is that year.
        begin = _period(f"last {ago}", now).begin
        period = Period(begin, moved(begin, Unit.DAY, 1))
    onward = _ONWARD.match(text, end)
    if onward and side in ("from", "since"):
        side, end = "since", onward.end()
    match side:
        case "since":
            return _range(text, start, end, period.begin, None)
        case "after":
            return _range(text, start, end, period.end, None)
        case "before":
            return _range(text, start, end, None, period.begin)
        case "until":
            return _range(text, start, end, None, period.end)
        case _:
            return _range(text, start, end, period.begin, period.end)


def _aged(text: str, now: datetime) -> TimeRange | None:
    """Older or newer than so many days."""
    found = _AGE.search(text)
    if found is None:
        return None
    try:
        begin = _period(f"last {found['count']}", now).begin
    except (ValueError, OverflowError):
        return None
    older = found["side"].lower() == "older"
    return _range(text, found.start(), found.end(), None if older else begin, begin if older else None)


def _period(said: str, now: datetime) -> Period:
    """What a part of the text that matched _WHEN means. Raises ValueError for what no calendar has."""
    part = re.match(_PART, said, re.IGNORECASE)
    if part:
        whole = re.sub(
            r"^the\s+(?!(?:week|month|quarter|year)\b)", "", said[part.end() :], flags=re.IGNORECASE
        )
        return _period(whole, now).third(_THIRDS[re.split(r"[\s-]", part.group().lower())[0]])
    for pattern, resolve in _FORMS:
        if found := pattern.fullmatch(said):
            return resolve(found, now)
    raise ValueError("no time")
