"""Subjects of a document by its title and its first lines; pronouns may refer to that of the title."""

import re

from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.mentions import Mention, mention_of
from shared.graph.name_folding import fold
from shared.graph.stopwords import COMMON
from shared.graph.types import is_name
from shared.graph.words_and_capitals import WORD, is_titled

_PARENTHESIS = re.compile(r"(?<=\S)\s*[(（]([^()（）]{0,80})[)）]\s*\Z")
# Words that follow the subject of a text where the text introduces it.
_INTRODUCTION = re.compile(
    r"[\"'”’]?\s*(?:\([^()]{0,160}\)\s*)?,?\s*(?:is|are|was|were|ist|war|sind|est|était|es|era|owns|provides|handles)\b"
)
# "Harry & Son (1984) is a film": a text that begins with a definition has the defined name as its subject.
_DEFINITION = re.compile(
    r"[\W_]*(?:The )?(?P<name>[^\s\W_][^\n(,:;]{1,80}?)\s*(?:\([^()]{0,200}\))?(?:\s*,[^,\n]{0,80},)?"
    r"\s+(?:is|are|was|were)\s+(?:a|an|the|one)\b"
)
_MAIL_HEADER = re.compile(r"(?:[A-Z][\w-]{0,30}:[^\n]{0,998}(?:\n|\Z)){2,40}")
_SENDER = re.compile(
    r"^From:[ \t]{0,8}\"?(?P<name>[^\n<>@\"]{2,100}?)\"?[ \t]{0,8}<[^<>\s]{3,320}>", re.MULTILINE
)
_IDENTIFIER = re.compile(r"[\w@][\w./@-]*")
_MAX_WORDS = 10


def title_subject(title: str, opening: str) -> Mention | None:
    """The name in the title, without its parenthesis; None for a title that is no name."""
    name = _PARENTHESIS.sub("", title).strip().strip("\"'“”«»`")
    if not is_name(name) or "\n" in name or not (_is_shaped(name) or _is_introduced(name, opening)):
        return None
    kind = kind_of(name)
    if kind == "name" and _IDENTIFIER.fullmatch(name) and re.search(r"[-_./]", name):
        kind = kind_of_identifier(name)
    return Mention(0, len(name), name, kind)


def sender_of_mail(text: str) -> list[Mention]:
    header = _MAIL_HEADER.match(text)
    sender = header and _SENDER.search(header[0])
    return [mention_of(sender, "person", "name")] if sender and is_name(sender["name"]) else []


def defined_subject(text: str) -> list[Mention]:
    """The name that the text defines with its first words."""
    match = _DEFINITION.match(text[:400])
    if match is None or not is_name(match["name"]):
        return []
    name, words = match["name"], WORD.findall(match["name"])
    if not words or not (words[0][0].isupper() or words[0][0].isdigit()) or words[0].casefold() in COMMON:
        return []
    if len(words) > 3 and not _is_shaped(name):
        return []
    return [mention_of(match, kind_of(name), "name")]


def _is_shaped(title: str) -> bool:
    """Whether the title has the form of a name: capitalized words, one word, or a short text without case."""
    words = WORD.findall(title)
    if not 0 < len(words) <= _MAX_WORDS or (len(words) == 1 and words[0].casefold() in COMMON):
        return False
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(title) <= 16
    if title.endswith((".", "!", ":")) and len(words) > 3:
        return False
    if _IDENTIFIER.fullmatch(title):
        return words[0][0].isupper() or len(words) > 1 or re.search(r"[-_./\d]", title) is not None
    if ":" in title and len(title.split(":", maxsplit=1)[0].split()) > 3:
        return False
    return is_titled(words)


def _is_introduced(title: str, opening: str) -> bool:
    """Whether the text begins with the title and a verb such as "is"."""
    start = opening.lstrip("#*_ \n\t")[: len(title) + 260]
    if fold(start[: len(title)]) != fold(title):
        return False
    return _INTRODUCTION.match(start, len(title)) is not None
