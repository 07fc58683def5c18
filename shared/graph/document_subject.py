"""Subjects of a document by its title and its first lines; pronouns may refer to that of the title."""

import re
from dataclasses import replace

from shared.graph.capitalization import COMMON, NEVER_FIRST, WORD, is_titled
from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.mentions import Mention, mention_of
from shared.graph.name_folding import PARENTHESIS, fold
from shared.graph.types import is_name

# "Harry & Son (1984) is a film": a text that begins with a statement has the name in it as its subject.
_PREDICATE = re.compile(
    r"[\"”’*_]{0,3}(?P<details>(?:\s*\([^()]{0,200}\)|\s*,[^,()\n]{0,80}(?:\([^()]{0,200}\)\s*,?|,)){0,2})"
    r"\s+(?:(?P<be>is|are|was|were)(?P<article> (?:a|an|the|one))?"
    r"|ist|war|sind|est|était|es|era|owns|provides|handles)\b"
)
_STATEMENT = re.compile(
    r"[\W_]*(?:(?:The|Sir|Mr|Mrs|Ms|Dr|Prof)\.? )?(?P<name>[^\s\W_][^\n(,;]{1,80}?)" + _PREDICATE.pattern
)
_OTHER_NAME = re.compile(
    r"\b(?:(?:known|referred|released)\b[a-z ]{1,40}\b(?:as|name)|called|nicknamed|or)(?: the)? [\"“]?"
    r"(?P<name>[A-Z][\w.’'-]*(?: (?:of |the |de |von )?[A-Z\d][\w.’'-]*){0,5})"
)
_LIFE = re.compile(r"\b(?:born|died|née?)\b|\b[bd]\. ")
_NICKNAME = re.compile(r"[\"“]\s*([^\"”]{1,30}?)\s*[\"”]")
_MAIL_HEADER = re.compile(r"(?:[A-Z][\w-]{0,30}:[^\n]{0,998}(?:\n|\Z)){2,40}")
_SENDER = re.compile(r"^From:[ \t]{0,8}\"?(?P<name>[^\n<>@\"]{2,100}?)\"?[ \t]{0,8}<[^<>\s]{3,320}>", re.M)
_SUBJECT_LINE = re.compile(r"^Subject: *(?:(?:re|fwd?|aw|wg): *)*(?P<name>[^\s:][^\n]{1,150})", re.I | re.M)
_HEADING = re.compile(r"\s{0,9}#{1,6} +(?P<name>[^\s#][^\n]{1,150})")
_KEY = re.compile(r"[\W_]{0,9}(?P<name>[A-Z][A-Z\d]{0,9}-\d{1,9})\b(?!-)")
_IDENTIFIER = re.compile(r"[\w@][\w./@-]*")


def title_subject(title: str, opening: str) -> Mention | None:
    """The name in the title, without its parenthesis; None for a title that is no name."""
    name = PARENTHESIS.sub("", title).strip().strip("\"'“”«»`")
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


def subjects_of_opening(text: str) -> list[Mention]:
    """The names in the subject line of a mail, the first heading, a ticket's key and the first statement."""
    header = _MAIL_HEADER.match(text)
    heading = _HEADING.match(text, header.end() if header else 0)
    start = max(line.end() if line else 0 for line in (header, heading))
    key = _KEY.match(text, start)
    subjects = [mention_of(key, "identifier", "name")] if key else _subjects_of_statement(text, start)
    for line in (header and _SUBJECT_LINE.search(header[0]), heading):
        if line and (name := title_subject(line["name"], text[line.end() : line.end() + 400])):
            # Nested: the names inside a line are mentions, too.
            subjects.append(replace(mention_of(line, name.kind, "name"), name=name.name, is_nested=True))
    return subjects


def _subjects_of_statement(text: str, start: int) -> list[Mention]:
    """The name in the first statement, its other names there, and a person's name without middle names."""
    match = _STATEMENT.match(text, start, start + 500)
    if match is None or match["be"] is None or not is_name(match["name"]):
        return []
    name, words = match["name"], WORD.findall(match["name"])
    folded = [word.casefold() for word in words]
    if not words or words[0][0].islower() or (not match["article"] and COMMON.issuperset(folded)):
        return []
    is_defined = match["article"] and len(words) <= 3 and ":" not in name and folded[0] not in COMMON
    if folded[0] in NEVER_FIRST or not (is_defined or _is_shaped(name)):
        return []
    subject = mention_of(match, kind_of(name), "name")
    named = _OTHER_NAME.finditer(text, *match.span("details"))
    others = [mention_of(other, subject.kind, "name") for other in named]
    is_person = subject.kind in {"name", "person"} and not any(word[0].islower() for word in words)
    if len(words) > 2 and is_person and _LIFE.search(match["details"]):
        # The nickname or first name, with the last name.
        first = _NICKNAME.search(name)
        last = words[-2 if words[-1] in {"Jr", "Sr", "III"} else -1]
        others += [replace(subject, name=f"{first[1] if first else words[0]} {last}", is_nested=True)]
    return [subject, *others]


def _is_introduced(title: str, opening: str) -> bool:
    """Whether the text begins with a statement about the title."""
    start = opening[: len(title) + 500].lstrip('#*_"“ \n\t')
    is_first = fold(start[: len(title)]) == fold(title)
    statement = _PREDICATE.match(start, len(title)) if is_first else _STATEMENT.match(start)
    return statement is not None and (is_first or fold(statement["name"]) == fold(title))


def _is_shaped(title: str) -> bool:
    """Whether the title has the form of a name: capitalized words, one word, or a short text without case."""
    words = WORD.findall(title)
    if not 0 < len(words) <= 10 or (len(words) == 1 and words[0].casefold() in COMMON):
        return False
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(title) <= 16
    if title.endswith((".", "!", ":")) and len(words) > 3:
        return False
    if _IDENTIFIER.fullmatch(title):
        return words[0][0].isupper() or len(words) > 1 or re.search(r"[-_./\d]", title) is not None
    return is_titled(words) and (":" not in title or len(title.split(":", maxsplit=1)[0].split()) <= 3)
