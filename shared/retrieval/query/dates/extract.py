"""Expressions of time in a question: "last week", "in Q3", "seit März", resolved against a given moment."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, islice

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.dates.english import english_range
from shared.retrieval.query.dates.languages import DATE_LANGUAGES, DateLanguage

__all__ = ["TimeRange", "time_range", "without"]

# A question has a few such words; a text made to take long has thousands.
MOST_RUNS = 50
_WORD = re.compile(r"(?<![\w./:@#&+$%=-])\w")
_AFTER = 40
_SPACE = re.compile(r"\s+")
_ROWS = [(language, language.rows()) for language in DATE_LANGUAGES]


@dataclass(frozen=True, slots=True)
class _Piece:
    """text[start:end], in English; `own`: English itself says it otherwise."""

    start: int
    end: int
    english: str
    own: bool


def time_range(text: str, now: datetime) -> TimeRange | None:
    """The first time that the text speaks of; `now` is aware."""
    text, now = text[:MAX_LENGTH], now.astimezone(UTC)
    ranges = filter(None, [*_foreign(text, now), english_range(text, now)])
    return min(ranges, key=lambda time: (time.start, -time.end), default=None)


def without(text: str, time: TimeRange) -> str:
    """The text without what it says of time, unless it says nothing else."""
    rest = f"{text[: time.start].rstrip()} {text[time.end :].lstrip()}"
    rest = re.sub(r"\s+([?.!,;:])", r"\1", rest).strip(" ,;:")
    return rest if re.search(r"\w", rest) else text


def _foreign(text: str, now: datetime) -> Iterator[TimeRange | None]:
    for language, rows in _ROWS:
        runs = (run for run in _runs(text, language, rows) if any(piece.own for piece in run))
        for run in islice(runs, MOST_RUNS):
            time = _in_english(text, run, now)
            if time:
                yield time
                break


def _runs(
    text: str, language: DateLanguage, rows: list[tuple[re.Pattern[str], str]]
) -> Iterator[list[_Piece]]:
    """Words of the language's table that stand together."""
    run: list[_Piece] = []
    place = 0
    while word := _WORD.search(text, place):
        begins_anew = run and not _SPACE.fullmatch(text, run[-1].end, word.start())
        row_match = next(
            ((match, english) for row, english in rows if (match := row.match(text, word.start()))), None
        )
        if run and (begins_anew or not row_match):
            yield run
            run = []
        place = word.end()
        if row_match:
            match, english = row_match
            words = {name: value or "" for name, value in match.groupdict().items()}
            english = language.english(english, words).strip()
            own = english.casefold() != match.group().casefold()
            run.append(_Piece(match.start(), match.end(), english, own))
            place = match.end()
    if run:
        yield run


def _in_english(text: str, run: list[_Piece], now: datetime) -> TimeRange | None:
    """What the run says, where the language's own words say it."""
    whole = " ".join(piece.english for piece in run)
    # With what comes after, since that tells a year from a number of things.
    time = english_range(whole + text[run[-1].end :][:_AFTER], now, question=text)
    if time is None or time.end > len(whole):
        return None
    ends = list(accumulate(len(piece.english) + 1 for piece in run))
    used = [
        piece
        for piece, end in zip(run, ends, strict=True)
        if end - 1 > time.start and end - len(piece.english) - 1 < time.end
    ]
    if not any(piece.own for piece in used):
        return None
    start, end = used[0].start, used[-1].end
    return TimeRange(time.after, time.before, text[start:end], start, end)
