"""Time ranges in English questions: "last week", "since March", "between Q1 and Q3".

The libraries for this (dateparser, datefinder, parsedatetime) return moments rather than ranges, and match
"may", "second" and ticket numbers. Doubtful and future times are no ranges: a filter hides documents.
"""

import re
from datetime import UTC, datetime, timedelta

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.calendar import Period, TimeRange
from shared.retrieval.query.dates.exclusions import is_excluded
from shared.retrieval.query.dates.prepositions import COMMA, LINK, ONWARD, POSSESSIVE, Side, before
from shared.retrieval.query.dates.relative import AGO, day_ago
from shared.retrieval.query.dates.resolve import PART, TIME_EXPRESSION, ordered_periods, period
from shared.text.language_detection import WEEKDAYS

MAX_LISTED = 12
_TICK = timedelta(microseconds=1)
Time = re.Match[str]


def time_range(text: str, now: datetime) -> TimeRange | None:
    """The first time range of the text; `now` has a time zone."""
    text, now = text[:MAX_LENGTH], now.astimezone(UTC)
    times = list(TIME_EXPRESSION.finditer(text))
    doubted = 0
    for position, time in enumerate(times):
        if time.start() < doubted:
            continue
        try:
            span = _between(text, times[position : position + 2], now) or _single(text, times[position:], now)
        except (ValueError, OverflowError):
            # The calendar lacks the day, such as 30 February.
            continue
        if span and is_excluded(span, text, now):
            doubted = span.end
        elif span:
            return span
    return None


def remove_time(text: str, time: TimeRange) -> str:
    """The text without the time expression, unless no word would remain."""
    rest = f"{text[: time.start].rstrip()} {text[time.end :].lstrip()}"
    rest = re.sub(r"\s+([?.!,;:])", r"\1", rest).strip(" ,;:")
    return rest if re.search(r"\w", rest) else text


def _range(text: str, start: int, end: int, begin: datetime | None, until: datetime | None) -> TimeRange:
    """Raises ValueError for an empty range."""
    if begin and until and begin >= until:
        raise ValueError("nothing in between")
    if tail := POSSESSIVE.match(text, end):
        end = tail.end()
    return TimeRange(begin, until and until - _TICK, text[start:end], start, end)


def _between(text: str, times: list[Time], now: datetime) -> TimeRange | None:
    """The range between two times; None if the text does not link them."""
    if len(times) < 2 or not (link := LINK.fullmatch(text[times[0].end() : times[1].start()])):
        return None
    one, other = times
    start, side, _, _ = before(text, one.start())
    word = " ".join((link["word"] or "to").lower().split())
    if side is Side.BETWEEN or word == "and":
        if not (side is Side.BETWEEN and word == "and"):
            return None
    elif side not in (Side.FROM, Side.SINCE, Side.AFTER):
        # January to March 2025; not a day of the week to a day of the week.
        if not other["sure"] or word.endswith(("before", "by")):
            return None
        if side is not Side.IN:
            start = one.start()
    first, last = ordered_periods(one.group(), other.group(), now)
    begin = first.end if side is Side.AFTER else first.begin
    return _range(text, start, other.end(), begin, last.begin if word.endswith("before") else last.end)


def _single(text: str, times: list[Time], now: datetime) -> TimeRange | None:
    """The range of the first time, with those listed after it; None if its sense is not temporal."""
    time = times[0]
    start, side, article, word = before(text, time.start())
    if not _means_time(text, time, side, article):
        return None
    phrase, end = time.group(), time.end()
    interval = period(phrase, now)
    if ago := AGO.fullmatch(phrase):
        if age := ago["age"]:
            side = Side.BEFORE if age.lower() == "older" else Side.SINCE
        elif word in ("over", "more than"):
            side = Side.BEFORE
        if side in (Side.SINCE, Side.AFTER, Side.BEFORE, Side.UNTIL):
            # Exact to the day; without a preposition "a year ago" means that year.
            interval = day_ago(ago, now)
    elif PART.match(phrase):
        # The part may contain the documents.
        side = {Side.BEFORE: Side.UNTIL, Side.AFTER: Side.SINCE}.get(side, side)
    onward = ONWARD.match(text, end)
    if onward and side in (Side.FROM, Side.SINCE):
        side, end = Side.SINCE, onward.end()
    match side:
        case Side.SINCE:
            return _range(text, start, end, interval.begin, None)
        case Side.AFTER:
            return _range(text, start, end, interval.end, None)
        case Side.BEFORE:
            return _range(text, start, end, None, interval.begin)
        case Side.UNTIL:
            return _range(text, start, end, None, interval.end)
        case _:
            interval, end = _span_of_list(text, times, interval, now)
            return _range(text, start, end, interval.begin, interval.end)


def _means_time(text: str, time: Time, side: Side, article: bool) -> bool:
    if text[time.start() - 1 : time.start()] == "-" or re.match(r"-\w", text[time.end() :]):
        return False
    # "by Friday" is in the future.
    if side is Side.BETWEEN or (side is Side.UNTIL and time.group().lower() in WEEKDAYS):
        return False
    # "2024", "of May", "the March release" have other senses.
    bare = time["bare"] is not None and time["of"] is None
    return not (bare and (article or side in (Side.NONE, Side.OF)))


def _span_of_list(text: str, times: list[Time], interval: Period, now: datetime) -> tuple[Period, int]:
    """The period of all listed or compared times, and the end of the list in the text."""
    row = [times[0]]
    for time in times[1:MAX_LISTED]:
        if not COMMA.fullmatch(text[row[-1].end() : time.start()]) or re.match(r"-\w", text[time.end() :]):
            break
        row.append(time)
    if len(row) == 1:
        return interval, times[0].end()
    pairs = [ordered_periods(time.group(), row[-1].group(), now) for time in row[:-1]]
    whole = [part for pair in pairs for part in pair]
    return Period(min(part.begin for part in whole), max(part.end for part in whole)), row[-1].end()
