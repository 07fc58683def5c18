"""Entities by their form alone: addresses, handles, identifiers, code, versions and paths."""

import re
from collections.abc import Iterator

from shared.graph.capitalization import UNIT
from shared.graph.entity_types import kind_of_identifier
from shared.graph.mentions import Mention, mention_of

# The first alternative that matches wins. All repetitions are bounded, so that a search stays linear.
_IDENTIFIER = re.compile(
    r"""
    (?P<url>\b(?:https?|ftp|s3|gs|file)://[^\s<>"'`)\]]{1,300})
  | (?P<email>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})
  | (?P<handle>(?<![\w@./])@[A-Za-z](?:[\w-]|\.(?=\w)){1,60}(?:/[\w.-]{1,60})?)
  | (?P<code>(?<!`)`(?!`)[^`\n]{2,120}`)
  | (?P<ticket>(?<![\w-])[A-Z][A-Z0-9]{0,9}(?:-[A-Z]{1,4}){0,3}-\d[\d-]{0,15}(?:/[A-Z0-9]{1,6})?(?![\w-]))
  | (?P<path>(?<![\w/.<])(?:\.{0,2}/)?[\w.-]{1,60}(?:/[\w.*-]{1,60}){1,12}/?(?:\.\w{1,8})?(?![\w/]))
  | (?P<file>(?<![\w.-])[\w-]{1,60}\.(?:py|sql|ts|tsx|js|go|rs|java|rb|md|yaml|yml|json|toml|sh|csv|pdf|tf)\b)
  | (?P<snake>(?<![\w.-])[A-Za-z][A-Za-z0-9]{0,40}(?:_[A-Za-z0-9]{1,40}){1,8}(?![\w-]))
  | (?P<kebab>(?<![\w.-])[a-z][a-z0-9]{0,30}(?:-[a-z0-9]{1,30}){0,3}-
      (?:service|services|api|db|database|worker|gateway|server|team|squad|queue|job|proxy|cache|store|app
        |backend|frontend|ui|sdk|cli|cluster|bucket|topic|lambda|bot|operator|controller)(?![\w-]))
  | (?P<camel>(?<![\w.-])(?:[A-Z][a-z0-9]{1,30}(?:[A-Z][a-z0-9]{0,30}){1,6}
      |[a-z]{1,20}(?:[A-Z][a-z0-9]{1,30}){1,6}(?!:))(?![\w-]))
  | (?P<model>(?<![\w.-])(?:[A-Z]{1,6}-?\d{1,8}[A-Z]{0,2}|[A-Z][a-z]{2,20}-\d{1,6})(?![\w-]))
    """,
    re.VERBOSE | re.ASCII,
)
# From the first character with the form of an identifier to the end of the word. Most words have none: the
# first class skips them quickly.
_MAY_BE_IDENTIFIER = re.compile(
    r"[@_/`\dA-Z.-](?:(?<=[@_/`\d])|(?<=[a-z][A-Z])|(?<=[a-z]-)(?=[a-z])|(?<=\w\.)(?=[a-z]))\S*"
)
_CODE = re.compile(r"[\w@./:$*-]{2,80}(?:\(\))?")
_LETTER = re.compile(r"[^\W\d_]")
# Other words with a slash are no paths: and/or, km/h, 24/7.
_REAL_PATH = re.compile(r"\A\.{0,2}/|/.*/|[\w-]\.\w{1,8}\Z|/\Z|_")


def identifiers_in(text: str) -> list[Mention]:
    """Mentions in the order of the text. A URL, which names no entity, has an empty name."""
    return [
        mention
        for start, end in _words_with_identifiers(text)
        for match in _IDENTIFIER.finditer(text, start, end)
        if (mention := _mention(match)) is not None
    ]


def _words_with_identifiers(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the words that may contain an identifier."""
    end = 0
    for match in _MAY_BE_IDENTIFIER.finditer(text):
        start = match.start()
        while start > end and not text[start - 1].isspace():
            start -= 1
        end = match.end()
        yield start, end


def _mention(identifier: re.Match[str]) -> Mention | None:
    text, start = identifier[0], identifier.start()
    match identifier.lastgroup:
        case "url":
            return Mention(start, identifier.end(), "", "identifier")
        case "email":
            address = text.rstrip(".-")
            return Mention(start, start + len(address), address, "email")
        case "handle":
            return mention_of(identifier, "team" if "/" in text else "person")
        case "code":
            code = text[1:-1].strip()
            if not _CODE.fullmatch(code) or not _LETTER.search(code):
                return None
            return Mention(start, identifier.end(), code.removesuffix("()"), kind_of_identifier(code))
        case "path":
            path = text.rstrip(".")
            if not _REAL_PATH.search(path) or not _LETTER.search(path):
                return None
            return Mention(start, start + len(path), path, "identifier")
        case "camel":
            return None if UNIT.fullmatch(text) else mention_of(identifier, "name")
        case _:
            return mention_of(identifier, kind_of_identifier(text))
