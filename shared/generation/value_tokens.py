"""Words and numbers of a text, of which a value (a number, a date or a time) is one."""

import re

from shared.generation.grounding.numbers import COUNTED

_TOKEN = re.compile(r"\w+(?:[-./,:'’]\w+)*|[%€$£°]\w*")
NUMBER_TOKEN = re.compile(r"\d+(?:[-./,:'’]\d+)*")
YEAR_TOKEN = re.compile(r"(?:19|20)\d\d(?:-\d\d)*")


def tokens_of(text: str) -> list[str]:
    return [token.casefold() for token in _TOKEN.findall(text)]


def has_value(text: str, question: str) -> bool:
    """Whether the text has a number, a date or a time that is not in the question."""
    own = {*tokens_of(text)} - {*tokens_of(question)}
    return any(any(map(str.isdigit, token)) or token in COUNTED for token in own)
