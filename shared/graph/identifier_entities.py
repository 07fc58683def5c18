"""What names something by its form alone: addresses, handles, identifiers, code, versions and paths."""

import re

from shared.graph.entity_types import kind_of_identifier
from shared.graph.mentions import Mention, spot_of
from shared.graph.tokens import UNIT

# In one pass over the text; what comes first wins. No form can be tried for longer than it is written.
_MARKS = re.compile(
    r"""
    (?P<url>\b(?:https?|ftp|s3|gs|file)://[^\s<>"'`)\]]{1,300})
  | (?P<email>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})
  | (?P<handle>(?<![\w@./])@[A-Za-z][\w-]{1,60}(?:/[\w.-]{1,60})?)
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
# Most words are none, which is soon seen.
_WORD = re.compile(r"\S+")
_MARKED = re.compile(r"[@_/`\d]|[a-z][A-Z]|[a-z]-[a-z]|\w\.[a-z]")
_CODE = re.compile(r"[\w@./:$*-]{2,80}(?:\(\))?")
_LETTER = re.compile(r"[^\W\d_]")
# Both sides of a slash are words: and/or, km/h, 24/7.
_REAL_PATH = re.compile(r"\A\.{0,2}/|/.*/|[\w-]\.\w{1,8}\Z|/\Z|_")


def marks_of(text: str) -> list[Mention]:
    """URLs are taken but name nothing: their name is empty."""
    mentions: list[Mention] = []
    for word in _WORD.finditer(text):
        if _MARKED.search(word[0]):
            spots = (_spot(mark, str(mark.lastgroup)) for mark in _MARKS.finditer(text, *word.span()))
            mentions += [spot for spot in spots if spot is not None]
    return mentions


def _spot(mark: re.Match[str], form: str) -> Mention | None:
    text = mark[0]
    match form:
        case "url":
            return Mention(mark.start(), mark.end(), "", "identifier")
        case "email":
            trimmed = text.rstrip(".-")
            return Mention(mark.start(), mark.start() + len(trimmed), trimmed, "email")
        case "handle":
            return spot_of(mark, "team" if "/" in text else "person")
        case "code":
            inner = text[1:-1].strip()
            if not _CODE.fullmatch(inner) or not _LETTER.search(inner):
                return None
            return Mention(mark.start(), mark.end(), inner.removesuffix("()"), kind_of_identifier(inner))
        case "path":
            trimmed = text.rstrip(".")
            if not _REAL_PATH.search(trimmed) or not _LETTER.search(trimmed):
                return None
            return Mention(mark.start(), mark.start() + len(trimmed), trimmed, "identifier")
        case "camel":
            return None if UNIT.fullmatch(text) else spot_of(mark, "name")
        case _:
            return spot_of(mark, kind_of_identifier(text))
