"""Time ranges in questions in four languages: "last week", "in Q3", "seit März"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, islice

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.dates.english import english_range
from shared.retrieval.query.dates.german_french_spanish import ROWS, translate

__all__ = ["TimeRange", "remove_time", "time_range"]

# A limit for texts with thousands of such words.
MAX_RUNS = 50
_WORD = re.compile(r"(?<![\w./:@#&+$%=-])\w")
_LOOKAHEAD = 40
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _Translation:
    """text[start:end] in English; `is_changed`: the English differs from the text."""

    start: int
    end: int
    english: str
    is_changed: bool


def time_range(text: str, now: datetime) -> TimeRange | None:
    """The first time range of the text; `now` has a time zone."""
    text, now = text[:MAX_LENGTH], now.astimezone(UTC)
    ranges = filter(None, [_translated_range(text, now), english_range(text, now)])
    return min(ranges, key=lambda time: (time.start, -time.end), default=None)


def remove_time(text: str, time: TimeRange) -> str:
    """The text without the time expression, unless no word would remain."""
    rest = f"{text[: time.start].rstrip()} {text[time.end :].lstrip()}"
    rest = re.sub(r"\s+([?.!,;:])", r"\1", rest).strip(" ,;:")
    return rest if re.search(r"\w", rest) else text


def _translated_range(text: str, now: datetime) -> TimeRange | None:
    runs = (run for run in _runs(text) if any(item.is_changed for item in run))
    ranges = (_in_english(text, run, now) for run in islice(runs, MAX_RUNS))
    return next(filter(None, ranges), None)


def _runs(text: str) -> Iterator[list[_Translation]]:
    """Runs of adjacent words that can be translated."""
    run: list[_Translation] = []
    place = 0
    while word := _WORD.search(text, place):
        start, place = word.start(), word.end()
        row = next(((match, english) for row, english in ROWS if (match := row.match(text, start))), None)
        if run and (row is None or not _SPACE.fullmatch(text, run[-1].end, start)):
            yield run
            run = []
        if row:
            match, english = row[0], translate(*row)
            is_changed = english.casefold() != match.group().casefold()
            run.append(_Translation(start, match.end(), english, is_changed))
            place = match.end()
    if run:
        yield run


def _in_english(text: str, run: list[_Translation], now: datetime) -> TimeRange | None:
    """The time range of the translated run; None if it uses no word of the language."""
    whole = " ".join(item.english for item in run)
    # The words after it tell a year from a number of things.
    time = english_range(whole + text[run[-1].end :][:_LOOKAHEAD], now, question=text)
    if time is None or time.end > len(whole):
        return None
    ends = list(accumulate(len(item.english) + 1 for item in run))
    used = [
        item
        for item, end in zip(run, ends, strict=True)
        if end - 1 > time.start and end - len(item.english) - 1 < time.end
    ]
    if not any(item.is_changed for item in used):
        return None
    start, end = used[0].start, used[-1].end
    return TimeRange(time.after, time.before, text[start:end], start, end)
