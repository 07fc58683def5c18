"""Times in a question that are not dates of documents: future, recurring and personal times, numbers, names.

A filter hides documents, so a doubt suffices.
"""

import re
from datetime import datetime

from shared.retrieval.query.dates.absolute import MONTH
from shared.retrieval.query.dates.calendar import TimeRange, Unit, period_at

_FLAGS = re.IGNORECASE
# Characters around a time that are examined.
_WINDOW = 60
_DAY_NAME = re.compile(rf"(?<!\w)(?:{MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?!\w)", _FLAGS)
_QUARTER_OR_HALF = re.compile(r"(?<!\w)[QH][1-4](?!\w)", _FLAGS)
# Words that make a period specific.
_SPECIFIC = re.compile(r"(?:19|20)\d\d|['’]\d\d|(?<!\w)(?:last|previous|this|past)(?!\w)", _FLAGS)
_CURRENT = re.compile(r"(?<!\w)(?:this|current)\s+(?:week|month|quarter|year)|to[\s-]date", _FLAGS)
_FROM = re.compile(r"(?:ever\s+since|since|starting|from)(?!\w)", _FLAGS)
_FUTURE = re.compile(
    r"(?<!\bwas )(?<!\bwere )(?<!\bbeen )(?<![\w-])(?:will|shall|going\s+to|due|expir(?:es?|ing|y)|planned"
    r"|planning|scheduled|upcoming|deadline|holidays?|vacation|pay\s?days?|(?:opening|office|business)\s+hours"
    r"|renew(?:s|als?)|begins|starts|ends|(?:open|closed)(?!\s+(?:tickets?|issues?|bugs?|tasks?|prs?|pull|incidents?|cases?))"
    r"|feiertage?|geöffnet|fällig|fériés?|ouverte?s?|festivos?|abiert[oa]s?)(?![\w-])",
    _FLAGS,
)
_PRESENT = re.compile(
    r"(?<![\w-])(?:is|are|am|do|does|should|must|can(?!\s+(?:you|someone|anyone|anybody|somebody)\b))(?![\w-])"
    r"|(?<!\w)(?:what|who|when|where)['’](?:s|re)(?!\w)",
    _FLAGS,
)
_PAST = re.compile(
    r"(?<![\w-])(?:was|were|did|had|been|broke|went|came|said|wrote|sent|made|got|ran|fell|found|told|took|saw"
    r"|(?!need|feed|speed|seed|exceed)[a-z]{2,}ed)(?![\w-])",
    _FLAGS,
)
# A year or half with its preposition: before other words than these it is a number.
_BARE = re.compile(
    r"(?:(?:since|ever|starting|from|after|later|than|before|prior|earlier|until|till|up|to|by|in|on|during|within"
    r"|throughout|between|and|or|over|for|of|at|through|vs\.?|versus)\b|(?:19|20)\d\d|H[12]|[\s,–—/-])+",
    _FLAGS,
)
_OTHER_WORD = re.compile(
    r"\s+(?:a|an|the|and|or|but|as|at|by|for|from|in|into|of|on|onwards?|to|until|with|without|about|regarding|that"
    r"|which|who|what|when|where|why|how|whether|is|are|was|were|did|do|does|has|have|had|will|can|could|not|only"
    r"|vs\.?|versus|compared|because|i|we|you|they|he|she|it|there|our|my|please|thanks)(?![\w-])",
    _FLAGS,
)
_NUMBER_RANGE = re.compile(r"\s*(?:to|until|through|and|[-–—])\s*\d", _FLAGS)
# Events of a person's life.
_PERSONAL_EVENT = re.compile(
    r"(?<!\w)(?:hired|born|joined|employed|founded|built|bought|purchased|registered|moved|enrolled|signed\s+up"
    r"|retired)\s+$",
    _FLAGS,
)
_WE = re.compile(r"(?<!\w)(?:we|i|he|she|they|you)(?!\w)", _FLAGS)
_ASKS_NOW = re.compile(
    r"\s*[,;.]\s*(?:so\s+)?(?:what|where|who|which|how|when)\s+(?:\w+\s+)?(?:is|are|do|does|can|should|will)\b",
    _FLAGS,
)
_OTHER_YEAR = re.compile(
    r"(?<!\w)(?:fiscal|(?:financial|academic|school|tax|model|budget)\s+year)(?!\w)", _FLAGS
)
_QUESTIONS = re.compile(
    r"(?<!\w)(?:questions?|questionnaires?|surveys?|faqs?|quiz(?:zes)?|exams?|answers?)(?!\w)", _FLAGS
)
# May Chen and Jan's: months that are first names. The writer of a mail: April.
_PERSON = re.compile(
    r"(?<!\w)(?:Jan|April|Apr|May|June|July|August|March|Mar)"
    rf"(?:['’]s(?!\w)|\s+(?!(?i:{MONTH})(?!\w))[A-Z][a-z]+)"
)
_WRITER = re.compile(r"(?i:message|mail|reply|note|letter|dm)s?\s+from\s+(?:Jan|April|May|June|August)$")


def is_doubtful(time: TimeRange, text: str, now: datetime, question: str | None = None) -> bool:
    """Whether the time may not be a date of documents. `question`: the original of a translated text."""
    whole = text if question is None else question
    return (
        _is_future(time, now)
        or _recurs(time, whole)
        or _is_a_number(time, text)
        or _is_personal(time, text)
        or (question is None and _is_a_person(time, text))
    )


def _is_future(time: TimeRange, now: datetime) -> bool:
    if time.after and time.after > now:
        return True
    if time.before is None or time.before < period_at(now, Unit.DAY).end:
        return False
    return time.after is None or _CURRENT.search(time.text) is None


def _recurs(time: TimeRange, question: str) -> bool:
    """Whether the time is an unspecific weekday, month or quarter, and the question not in the past tense."""
    if _SPECIFIC.search(time.text):
        return False
    is_named = _DAY_NAME.search(time.text) is not None
    if not is_named and not _QUARTER_OR_HALF.search(time.text):
        return False
    if time.before is not None and _FUTURE.search(question):
        return True
    if not is_named or _FROM.match(time.text):
        return False
    return _PRESENT.search(question) is not None and _PAST.search(question) is None


def _is_a_number(time: TimeRange, text: str) -> bool:
    after = text[time.end : time.end + _WINDOW]
    if _BARE.fullmatch(time.text):
        return _NUMBER_RANGE.match(after) is not None or (
            re.match(r"\s+\w", after) is not None and not _OTHER_WORD.match(after)
        )
    if _QUARTER_OR_HALF.search(time.text) and not _SPECIFIC.search(time.text):
        return re.match(r"\s+of\b", after, _FLAGS) is not None or _QUESTIONS.search(text) is not None
    return False


def _is_personal(time: TimeRange, text: str) -> bool:
    """Whether the time is of a person's life or of another calendar: a first day, a fiscal year."""
    before, after = text[max(0, time.start - _WINDOW) : time.start], text[time.end : time.end + _WINDOW]
    if _PERSONAL_EVENT.search(before) or (_WE.search(before) and _ASKS_NOW.match(after)):
        return True
    near = f"{before[-_WINDOW // 3 :]}{time.text}{after[: _WINDOW // 3]}"
    return _OTHER_YEAR.search(near) is not None and re.search(r"\d|year|quarter", time.text) is not None


def _is_a_person(time: TimeRange, text: str) -> bool:
    if _WRITER.search(text[max(0, time.start - _WINDOW) : time.end]):
        return True
    return any(match.start() < time.end for match in _PERSON.finditer(text, time.start, time.end + _WINDOW))
