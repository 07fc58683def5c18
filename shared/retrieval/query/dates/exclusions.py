"""Times that a question names and does not mean as the dates of documents: what lies ahead, what comes back
every week or year, what happened to somebody, and numbers and persons that look like one.

What a range leaves out nobody sees, so that a doubt is enough.
"""

import re
from datetime import datetime

from shared.retrieval.query.dates.absolute import MONTH
from shared.retrieval.query.dates.calendar import TimeRange, Unit, containing

_FLAGS = re.IGNORECASE
# As far as is read what stands around a time.
_NEAR = 60
_NAMED = re.compile(rf"(?<!\w)(?:{MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?!\w)", _FLAGS)
_NUMBERED = re.compile(r"(?<!\w)[QH][1-4](?!\w)", _FLAGS)
# What says which of them is meant.
_WHICH = re.compile(r"(?:19|20)\d\d|['’]\d\d|(?<!\w)(?:last|previous|this|past)(?!\w)", _FLAGS)
_RUNNING = re.compile(r"(?<!\w)(?:this|current)\s+(?:week|month|quarter|year)|to[\s-]date", _FLAGS)
_FROM = re.compile(r"(?:ever\s+since|since|starting|from)(?!\w)", _FLAGS)
_AHEAD = re.compile(
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
# A year or a half with no more than what gives its side: before other words than these it is a number.
_BARE = re.compile(
    r"(?:(?:since|ever|starting|from|after|later|than|before|prior|earlier|until|till|up|to|by|in|on|during|within"
    r"|throughout|between|and|or|over|for|of|at|through|vs\.?|versus)\b|(?:19|20)\d\d|H[12]|[\s,–—/-])+",
    _FLAGS,
)
_LEAVES = re.compile(
    r"\s+(?:a|an|the|and|or|but|as|at|by|for|from|in|into|of|on|onwards?|to|until|with|without|about|regarding|that"
    r"|which|who|what|when|where|why|how|whether|is|are|was|were|did|do|does|has|have|had|will|can|could|not|only"
    r"|vs\.?|versus|compared|because|i|we|you|they|he|she|it|there|our|my|please|thanks)(?![\w-])",
    _FLAGS,
)
_GOES_ON = re.compile(r"\s*(?:to|until|through|and|[-–—])\s*\d", _FLAGS)
# What is said of somebody, and is no document's date.
_OF_SOMEBODY = re.compile(
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
# May Chen and Jan's; nobody is called February. Whose mail it is: Ann's, or April's.
_PERSON = re.compile(
    r"(?<!\w)(?:Jan|April|Apr|May|June|July|August|March|Mar)"
    rf"(?:['’]s(?!\w)|\s+(?!(?i:{MONTH})(?!\w))[A-Z][a-z]+)"
)
_WRITER = re.compile(r"(?i:message|mail|reply|note|letter|dm)s?\s+from\s+(?:Jan|April|May|June|August)$")


def doubtful(time: TimeRange, text: str, now: datetime, question: str | None = None) -> bool:
    """Whether the time may not be meant as the documents'; `question` is the whole, in its own language,
    where the text is a part of it in English."""
    whole = text if question is None else question
    return (
        _lies_ahead(time, now)
        or _comes_back(time, whole)
        or _is_a_number(time, text)
        or _is_somebody_s(time, text)
        or (question is None and _is_a_person(time, text))
    )


def _lies_ahead(time: TimeRange, now: datetime) -> bool:
    if time.after and time.after > now:
        return True
    if time.before is None or time.before < containing(now, Unit.DAY).end:
        return False
    return time.after is None or _RUNNING.search(time.text) is None


def _comes_back(time: TimeRange, question: str) -> bool:
    """A day, a month or a quarter of which nobody says which one, where no past is spoken of."""
    if _WHICH.search(time.text):
        return False
    is_named = _NAMED.search(time.text) is not None
    if not is_named and not _NUMBERED.search(time.text):
        return False
    if time.before is not None and _AHEAD.search(question):
        return True
    if not is_named or _FROM.match(time.text):
        return False
    return _PRESENT.search(question) is not None and _PAST.search(question) is None


def _is_a_number(time: TimeRange, text: str) -> bool:
    after = text[time.end : time.end + _NEAR]
    if _BARE.fullmatch(time.text):
        return _GOES_ON.match(after) is not None or (
            re.match(r"\s+\w", after) is not None and not _LEAVES.match(after)
        )
    if _NUMBERED.search(time.text) and not _WHICH.search(time.text):
        return re.match(r"\s+of\b", after, _FLAGS) is not None or _QUESTIONS.search(text) is not None
    return False


def _is_somebody_s(time: TimeRange, text: str) -> bool:
    """An employee's first day, our move, a fiscal year."""
    before, after = text[max(0, time.start - _NEAR) : time.start], text[time.end : time.end + _NEAR]
    if _OF_SOMEBODY.search(before) or (_WE.search(before) and _ASKS_NOW.match(after)):
        return True
    near = f"{before[-_NEAR // 3 :]}{time.text}{after[: _NEAR // 3]}"
    return _OTHER_YEAR.search(near) is not None and re.search(r"\d|year|quarter", time.text) is not None


def _is_a_person(time: TimeRange, text: str) -> bool:
    if _WRITER.search(text[max(0, time.start - _NEAR) : time.end]):
        return True
    return any(match.start() < time.end for match in _PERSON.finditer(text, time.start, time.end + _NEAR))
