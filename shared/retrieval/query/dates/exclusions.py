"""Times in a question that are not dates of documents: future and recurring times, numbers, events of a life.

A filter hides documents, so a doubt suffices.
"""

import re
from datetime import datetime

from shared.retrieval.query.dates.absolute import MONTH
from shared.retrieval.query.dates.calendar import TimeRange, Unit, period_at

_FLAGS = re.IGNORECASE
# Characters around a time that are examined.
_WINDOW = 60
_NAMED = re.compile(rf"(?<!\w)(?:{MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|[QH][1-4])(?!\w)", _FLAGS)
# Words that make a period specific.
_SPECIFIC = re.compile(r"(?:19|20)\d\d|(?<!\w)(?:last|previous|this|past)(?!\w)", _FLAGS)
_CURRENT = re.compile(r"(?<!\w)(?:this|current)\s+(?:week|month|quarter|year)", _FLAGS)
_FROM = re.compile(r"(?:ever\s+since|since|starting|from)(?!\w)", _FLAGS)
_FUTURE = re.compile(
    r"(?<!\bwas )(?<!\bwere )(?<!\bbeen )(?<![\w-])(?:will|shall|going\s+to|due|expires?|planned|scheduled"
    r"|upcoming|deadline|holidays?|vacation|opening\s+hours|renewals?)(?![\w-])",
    _FLAGS,
)
_PRESENT = re.compile(
    r"(?<![\w-])(?:is|are|am|do|does|should|must|can(?!\s+you\b))(?![\w-])|(?<=what|.who)['’]s\b", _FLAGS
)
_PAST = re.compile(
    r"(?<![\w-])(?:was|were|did|had|been|broke|went|came|said|wrote|sent|(?!need|feed|speed|seed|exceed)[a-z]{2,}ed)"
    r"(?![\w-])",
    _FLAGS,
)
# A year or half with its preposition: before other words than these it is a number.
_BARE = re.compile(
    r"(?:(?:since|ever|starting|from|after|later|than|before|prior|earlier|until|till|up|to|by|in|on|during|within"
    r"|throughout|between|and|or|over|for|of|at|through|vs\.?|versus)\b|(?:19|20)\d\d|H[12]|[\s,–—/-])+",
    _FLAGS,
)
_OTHER_WORD = re.compile(
    r"\s+(?:a|an|the|and|or|but|as|at|by|for|from|in|into|of|on|onwards?|to|until|with|without|about|that|which|who"
    r"|what|when|where|why|how|whether|is|are|was|were|did|do|does|has|have|had|will|can|could|not|only|vs\.?|versus"
    r"|compared|because|i|we|you|they|he|she|it|there|our|my|please|thanks)(?![\w-])",
    _FLAGS,
)
_NUMBER_RANGE = re.compile(r"\s*(?:to|until|through|and|[-–—])\s*\d", _FLAGS)
# Events of a person's life, or of a thing's.
_PERSONAL_EVENT = re.compile(
    r"(?<!\w)(?:hired|born|joined|founded|built|bought|purchased|registered|published)\s+$", _FLAGS
)


def is_excluded(time: TimeRange, text: str, now: datetime) -> bool:
    """Whether the time may not be a date of documents."""
    return (
        _is_future(time, now)
        or _recurs(time, text)
        or _is_a_number(time, text)
        or _PERSONAL_EVENT.search(text[max(0, time.start - _WINDOW) : time.start]) is not None
    )


def _is_future(time: TimeRange, now: datetime) -> bool:
    if time.after and time.after > now:
        return True
    if time.before is None or time.before < period_at(now, Unit.DAY).end:
        return False
    return time.after is None or _CURRENT.search(time.text) is None


def _recurs(time: TimeRange, question: str) -> bool:
    """Whether the time is an unspecific weekday, month or quarter, and the question not in the past tense."""
    if _SPECIFIC.search(time.text) or not _NAMED.search(time.text) or _FROM.match(time.text):
        return False
    return _FUTURE.search(question) is not None or (
        _PRESENT.search(question) is not None and _PAST.search(question) is None
    )


def _is_a_number(time: TimeRange, text: str) -> bool:
    after = text[time.end : time.end + _WINDOW]
    if not _BARE.fullmatch(time.text):
        return False
    return _NUMBER_RANGE.match(after) is not None or (
        re.match(r"\s+\w", after) is not None and not _OTHER_WORD.match(after)
    )
