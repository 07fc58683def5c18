"""Identifiers in questions: INC-4821, a/b, v1.2.3.

graph/identifier_entities.py and generation/grounding/facts.py have patterns of their own: the graph needs the
form of each identifier in running text, grounding a normal form of it.
"""

import re

# One word with the separators of paths, addresses and names in it.
JOINED_WORD = r"\w[\w./:@#&+-]*[\w+#]"
_IDENTIFIER = re.compile(rf"(?=.*[\d./:@#_]){JOINED_WORD}")
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


def is_identifier(text: str) -> bool:
    """Whether the text is one identifier (INC-4821, a/b, v1.2.3, a mail address), not a question."""
    return len(text) <= 200 and _IDENTIFIER.fullmatch(text) is not None


def identifier_in(question: str) -> str | None:
    """The identifier that is the whole question, without quotation marks and final punctuation; None for
    another question, or a text that may be a word or a number: 401k, 24/7, Q3."""
    name = question.strip(_AROUND).rstrip(_BEHIND).strip(_AROUND)
    joined = _JOINT.search(name) and _LETTER.search(name) and not _PERIOD.fullmatch(name)
    return name if (joined or _VERSION.fullmatch(name)) and is_identifier(name) else None


def names_one_thing(word: str) -> bool:
    """Whether one word of a question is an identifier."""
    return _NAMES_ONE_THING.search(word) is not None


def whole_word(text: str) -> str:
    """A pattern for the text as a whole word."""
    return rf"(?<!\w){re.escape(text)}(?!\w)"
