"""Prepositions of times, which give the side of a range: since, before, between … and."""

import re
from enum import StrEnum

# Characters before a time that are examined.
_MAX_CHARACTERS = 40


class Side(StrEnum):
    """FROM is the time itself, unless "onwards" follows; OF is IN for an unambiguous time."""

    BETWEEN = "between"
    SINCE = "since"
    FROM = "from"
    AFTER = "after"
    BEFORE = "before"
    UNTIL = "until"
    IN = "in"
    OF = "of"
    NONE = ""


_WORDS = {
    Side.BETWEEN: ("between",),
    Side.SINCE: ("since", "ever since", "starting", "starting from", "starting in", "starting on"),
    Side.FROM: ("from",),
    Side.AFTER: ("after", "later than"),
    Side.BEFORE: ("before", "prior to", "earlier than", "older than"),
    Side.UNTIL: ("until", "up until", "till", "up to", "no later than", "by"),
    Side.IN: ("in", "on", "during", "within", "throughout"),
    Side.OF: ("over", "more than", "at", "for", "of"),
}
_SIDES = {word: side for side, words in _WORDS.items() for word in words}
_HEAD = re.compile(
    r"(?:(?<![\w./:@#&+$%=-])(?P<side>"
    + "|".join(sorted(_SIDES, key=len, reverse=True)).replace(" ", r"\s+")
    + r")\s+)?(?P<the>\bthe\s+)?$",
    re.IGNORECASE,
)
# LINK joins the ends of one range, COMMA listed or compared times.
LINK = re.compile(
    r"\s*(?P<dash>[-–—/])\s*|\s+(?P<word>and|to|until|till|through|thru|up\s+to|(?:and|but)\s+(?:before|until|by)"
    r"|before)\s+(?:the\s+)?",
    re.IGNORECASE,
)
COMMA = re.compile(
    r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&|vs\.?|versus|compared\s+(?:to|with))\s+)"
    r"(?:(?:in|on|of|for|from|during)\s+)?(?:the\s+)?",
    re.IGNORECASE,
)
# Makes a range without an end.
ONWARD = re.compile(
    r"\s+(?:on|onwards?|or\s+later|(?:until|till|to|up\s+to)\s+(?:now|date|the\s+present))(?!\w)",
    re.IGNORECASE,
)
POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)


def before(text: str, position: int) -> tuple[int, Side, bool, str]:
    """For the time at `position`: the start with its preposition, the side, whether an article precedes
    it, and the preposition."""
    window = max(0, position - _MAX_CHARACTERS)
    match = _HEAD.search(text[window:position])
    if match is None or not match.group():
        return position, Side.NONE, False, ""
    word = " ".join((match["side"] or "").lower().split())
    return window + match.start(), _SIDES.get(word, Side.NONE), match["the"] is not None, word
