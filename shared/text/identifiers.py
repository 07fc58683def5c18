"""Identifiers in questions: INC-4821, a/b, v1.2.3.

graph/identifier_entities.py and generation/grounding/facts.py have patterns of their own: the graph needs the
form of each identifier in running text, grounding a normal form of it.
"""

import re

# One word with the separators of paths, addresses and names in it.
JOINED_WORD = r"\w[\w./:@#&+-]*[\w+#]"
# Not an abbreviation such as e.g.
_IDENTIFIER = re.compile(rf"(?=.*[\d./:@#_])(?!(?:[^\W\d_]\.)+[^\W\d_]$){JOINED_WORD}")
# A digit or an inner underscore: the word names one thing.
_NAMES_ONE_THING = re.compile(r"\d|\w_\w")
# Around an identifier in a question, and behind it.
_AROUND = " \t\r\n\"'`“”„‘’«»‹›"
_BEHIND = "?.!" + _AROUND
_JOINT = re.compile(r"[./:@#_-]")
_LETTER = re.compile(r"[^\W\d_]")
# Numbers with several separators: a version, an address.
_VERSION = re.compile(r"\d+(?:\.\d+){2,}")
_PERIOD = re.compile(r"(?:(?:19|20)\d\d[-/])?[QH][1-4](?:[-/](?:19|20)\d\d)?", re.IGNORECASE)


def identifier_in(question: str) -> str | None:
    """The identifier that is the whole question (INC-4821, a/b, v1.2.3, a mail address), without quotation
    marks and final punctuation; None for another question."""
    name = question.strip(_AROUND).rstrip(_BEHIND).strip(_AROUND)
    return name if len(name) <= 200 and _IDENTIFIER.fullmatch(name) else None


def is_unambiguous(identifier: str) -> bool:
    """Whether the identifier cannot be a word, a number or a period: not 401k, 24/7, Q3."""
    if _PERIOD.fullmatch(identifier):
        return False
    joined = _JOINT.search(identifier) and _LETTER.search(identifier)
    return bool(joined or _VERSION.fullmatch(identifier))


def names_one_thing(word: str) -> bool:
    """Whether one word of a question is an identifier."""
    return _NAMES_ONE_THING.search(word) is not None


def whole_word(text: str) -> str:
    """A pattern for the text as a whole word."""
    return rf"(?<!\w){re.escape(text)}(?!\w)"
