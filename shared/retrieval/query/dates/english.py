"""Times that an English text speaks of, with what stands before them: "since March", "between Q1 and Q3".

No library did: those that find dates in a text (dateparser, datefinder, parsedatetime) give moments and not
ranges, and find them in "may", "second" and in the numbers of tickets. What is not surely a time is none
here, since what a range leaves out nobody sees; what lies ahead (tomorrow, next week) is none either.
"""

import re
from datetime import datetime, timedelta

from shared.retrieval.query.dates.calendar import Period, TimeRange, Unit, moved
from shared.retrieval.query.dates.exclusions import doubtful
from shared.retrieval.query.dates.prepositions import COMMA, LINK, ONWARD, POSSESSIVE, Side, before
from shared.retrieval.query.dates.relative import COUNT
from shared.retrieval.query.dates.resolve import WHEN, ends, period
from shared.text.languages import WEEKDAYS

# As many times as somebody lists.
MOST_LISTED = 12
_TICK = timedelta(microseconds=1)
_AGE = re.compile(
    rf"(?<!\w)(?P<side>older|newer|younger)\s+than\s+(?P<count>{COUNT})(?!\w)(?!\s+ago\b)", re.IGNORECASE
)
Time = re.Match[str]


def english_range(text: str, now: datetime, question: str | None = None) -> TimeRange | None:
    """The first time that the text speaks of in English; `now` is in UTC. `question`: what it was taken from,
    in another language."""
    times = list(WHEN.finditer(text))
    ranges = [time_range for time_range in [_aged(text, now)] if time_range]
    doubted = 0
    for place, time in enumerate(times):
        if time.start() < doubted:
            continue
        try:
            time_range = _together(text, times[place : place + 2], now) or _alone(text, times[place:], now)
        except (ValueError, OverflowError):
            # What no calendar has, such as 30 February.
            continue
        if time_range and doubtful(time_range, text, now, question):
            doubted = time_range.end
        elif time_range:
            ranges.append(time_range)
            break
    return min(ranges, key=lambda time_range: time_range.start, default=None)


def _range(text: str, start: int, end: int, begin: datetime | None, until: datetime | None) -> TimeRange:
    """Raises ValueError when nothing is in between."""
    if begin and until and begin >= until:
        raise ValueError("nothing in between")
    if tail := POSSESSIVE.match(text, end):
        end = tail.end()
    return TimeRange(begin, until and until - _TICK, text[start:end], start, end)


def _together(text: str, times: list[Time], now: datetime) -> TimeRange | None:
    """Two as the ends of one range; None where they are not."""
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
    first, last = ends(one.group(), other.group(), now)
    begin = first.end if side is Side.AFTER else first.begin
    return _range(text, start, other.end(), begin, last.begin if word.endswith("before") else last.end)


def _alone(text: str, times: list[Time], now: datetime) -> TimeRange | None:
    """The first of the times, with those that are listed after it; None where it is none."""
    time = times[0]
    start, side, article, word = before(text, time.start())
    if not _means_time(text, time, side, article):
        return None
    phrase, end = time.group(), time.end()
    interval = period(phrase, now)
    if phrase.lower().endswith(" ago"):
        side = Side.BEFORE if word in ("over", "more than") else side
        if side in (Side.SINCE, Side.AFTER, Side.BEFORE, Side.UNTIL):
            # To the day, where a year ago alone is that year.
            begin = period(f"last {phrase[:-3].rstrip()}", now).begin
            interval = Period(begin, moved(begin, Unit.DAY, 1))
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
            interval, end = _listed(text, times, interval, now)
            return _range(text, start, end, interval.begin, interval.end)


def _means_time(text: str, time: Time, side: Side, article: bool) -> bool:
    if text[time.start() - 1 : time.start()] == "-" or re.match(r"-\w", text[time.end() :]):
        return False
    # "by Friday" lies ahead.
    if side is Side.BETWEEN or (side is Side.UNTIL and time.group().lower() in WEEKDAYS):
        return False
    # "2024", "of May", "the March release": of something else.
    bare = time["bare"] is not None and time["of"] is None
    return not (bare and (article or side in (Side.NONE, Side.OF)))


def _listed(text: str, times: list[Time], interval: Period, now: datetime) -> tuple[Period, int]:
    """From the first to the last of the times that are listed or compared, and where that ends."""
    row = [times[0]]
    for time in times[1:MOST_LISTED]:
        if not COMMA.fullmatch(text[row[-1].end() : time.start()]) or re.match(r"-\w", text[time.end() :]):
            break
        row.append(time)
    if len(row) == 1:
        return interval, times[0].end()
    pairs = [ends(time.group(), row[-1].group(), now) for time in row[:-1]]
    whole = [part for pair in pairs for part in pair]
    return Period(min(part.begin for part in whole), max(part.end for part in whole)), row[-1].end()


def _aged(text: str, now: datetime) -> TimeRange | None:
    """Older or newer than so many days."""
    match = _AGE.search(text)
    if match is None:
        return None
    try:
        begin = period(f"last {match['count']}", now).begin
    except (ValueError, OverflowError):
        return None
    older = match["side"].lower() == "older"
    return _range(text, match.start(), match.end(), None if older else begin, begin if older else None)
