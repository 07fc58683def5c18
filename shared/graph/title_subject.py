"""What a document's title names, if it names one thing: that is what its text speaks of as he, she and it."""

import re

from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.stopwords import COMMON, SMALL
from shared.graph.tokens import WORD
from shared.graph.types import is_name

_PARENTHESIS = re.compile(r"(?<=\S)\s*[(（]([^()（）]{0,80})[)）]\s*\Z")
# Behind what a text begins with, these say that it is what the text is about.
_IS = re.compile(
    r"[\"'”’]?\s*(?:\([^()]{0,160}\)\s*)?,?\s*(?:is|are|was|were|ist|war|sind|est|était|es|era|owns|provides|handles)\b"
)
_IDENTIFIER = re.compile(r"[\w@][\w./@-]*")
_MOST_WORDS = 10


def subject_of(title: str, opening: str) -> Mention | None:
    """The one thing that the title names, without its parenthesis; its place is of no text."""
    whole = _PARENTHESIS.sub("", title).strip().strip("\"'“”«»`")
    if not is_name(whole) or "\n" in whole:
        return None
    head = whole.split(", ", maxsplit=1)[0]
    opens = _opens(whole, opening) or (head != whole and _is_shaped(head) and _opens(head, opening))
    if not (opens or _is_shaped(whole)):
        return None
    kind = kind_of(whole)
    if kind == "name" and _IDENTIFIER.fullmatch(whole) and re.search(r"[-_./]", whole):
        kind = kind_of_identifier(whole)
    return Mention(0, len(whole), whole, kind)


def _is_shaped(title: str) -> bool:
    """All its words have capitals but small ones; or one word, or a short one of a script without case."""
    words = WORD.findall(title)
    if not 0 < len(words) <= _MOST_WORDS or (len(words) == 1 and words[0].casefold() in COMMON):
        return False
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(title) <= 16
    if title.endswith((".", "!", ":")) and len(words) > 3:
        return False
    if _IDENTIFIER.fullmatch(title):
        return words[0][0].isupper() or len(words) > 1 or re.search(r"[-_./\d]", title) is not None
    if ":" in title and len(title.split(":", maxsplit=1)[0].split()) > 3:
        return False
    return words[0][0].isupper() and all(not word[0].islower() or word.casefold() in SMALL for word in words)


def _opens(title: str, opening: str) -> bool:
    """Whether the text begins with it and goes on with what it is."""
    start = opening.lstrip("#*_ \n\t")[: len(title) + 260]
    if fold(start[: len(title)]) != fold(title):
        return False
    return _IS.match(start, len(title)) is not None
