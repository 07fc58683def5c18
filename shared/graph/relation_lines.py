"""Relations in structured lines: key: value, lists below a key, tables, CODEOWNERS.

The subject is the name in the first line of the block or in the row, or else the nearest heading, or else the
title.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shared.graph.alias_resolution import AliasMap
from shared.graph.capitalization import COMMON
from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.identifier_entities import identifiers_in
from shared.graph.mentions import Mention
from shared.graph.relation_forms import KEYS
from shared.graph.types import Relation, is_name

_LINE = re.compile(r"^.{0,400}$", re.MULTILINE)
_KEY_LINE = re.compile(
    r"[ >*-]{0,6}(?:\*\*|__)?(?P<key>[^\W\d_][\w -]{1,28}?)(?:\*\*|__)?[ \t]{0,4}[:=](?:\*\*|__)?"
    r"(?P<value>[ \t].*|)$"
)
_ITEM = re.compile(r"[ \t]{0,12}[-*][ \t]+(?P<value>[^:]{2,80})$")
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<text>.{2,120})$")
_CODEOWNERS_LINE = re.compile(
    r"(?P<path>(?=\S*[/*.])[/*.\w][^\s#@]{0,120})[ \t]+"
    r"(?P<owners>(?:[\w.+-]{0,64}@[\w./-]{1,80}\w[ \t]*){1,8})$"
)
_TABLE_RULE = re.compile(r"\|?[ \t:|-]*-{2,}[ \t:|-]*$")
_CELL = re.compile(r"[^|]+")
_VALUE_END = re.compile(r"\.\s|\s[#—(–•·]")
_SEPARATOR = re.compile(r",| and |;| und | et | y |\s/\s|<br>")
_SURROUNDED = re.compile(r"[\s\"'`\[\]{}*_“”<>|]*(?P<name>.*?)[\s\"'`\[\]{}*_“”<>|.]*")
_PLACEHOLDERS = frozenset("none null unknown tbd tba todo true false yes no open pending various all".split())  # noqa: SIM905
# The values of these keys may be one lowercase word, as those of names.
_LOWERCASE_VALUES = frozenset({None, "OWNED_BY", "DEPENDS_ON", "PART_OF", "REPORTS_TO"})
# Keys of names. In the first line of a block the name is the subject of its lines.
_NAME_KEYS = frozenset(
    {"name", "service", "system", "component", "repository", "repo", "project", "app", "module", "ticket"}
)
_APART = re.compile(r"(?<=[a-z])(?=[A-Z])|[\W_]+")


@dataclass(frozen=True, slots=True)
class LineRelation:
    """The relations of a line; without a `type` only its names. Without a `subject` it is the heading,
    text[start:end], or the title."""

    objects: Sequence[Mention]
    type: str | None = None
    subject: Mention | None = None
    heading: tuple[int, int] | None = None


def relation_lines_in(text: str) -> Iterator[LineRelation]:
    heading: tuple[int, int] | None = None
    subject: Mention | None = None
    list_type: str | None = None
    header: list[str] = []
    previous = ""
    for match in _LINE.finditer(text):
        line, start, opens_block = match[0], match.start(), not previous.strip()
        if not line.strip():
            subject, list_type, header = None, None, []
        elif heading_line := _HEADING.match(line):
            heading = (start + heading_line.start("text"), start + heading_line.end("text"))
            subject = None
        elif line.count("|") > 1:
            if _TABLE_RULE.match(line):
                header = [_normalized(cell[0]) for cell in _cells_of(previous)]
            else:
                yield from _relations_of_row(header, line, start)
        elif key_line := _KEY_LINE.match(line):
            key, value = _normalized(key_line["key"]), key_line["value"]
            value_start = start + key_line.start("value")
            list_type = None if value.strip() else KEYS.get(key)
            if key in KEYS:
                yield LineRelation(
                    _names_in_value(value, value_start, KEYS[key]), KEYS[key], subject, heading
                )
            elif key in _NAME_KEYS and (names := _names_in_value(value, value_start, None)):
                subject = names[0] if opens_block else subject
                yield LineRelation(names)
        elif list_type is not None and (item := _ITEM.match(line)):
            objects = _names_in_value(item["value"], start + item.start("value"), list_type)
            yield LineRelation(objects, list_type, subject, heading)
        elif owners_line := _CODEOWNERS_LINE.match(line):
            yield _relation_of_owners(owners_line, start)
        elif opens_block and len(line) < 20:
            # A ticket begins with its key.
            subject = next((each for each in _identifiers_at(line, start) if each.name == line.strip()), None)
        previous = line


def relations_of_lines(
    lines: Sequence[LineRelation], mentions: Sequence[Mention], aliases: AliasMap, title: Mention | None
) -> Iterator[Relation]:
    for line in lines:
        subject = line.subject or _heading_subject(line.heading, mentions) or title
        if subject is not None and line.type is not None:
            for each in line.objects:
                names = aliases.resolved(subject).name, aliases.resolved(each).name
                yield Relation(names[0], line.type, names[1])


def _heading_subject(heading: tuple[int, int] | None, mentions: Sequence[Mention]) -> Mention | None:
    """The first name that fills more than half of the heading."""
    start, end = heading or (0, 0)
    for mention in mentions:
        if start <= mention.start and mention.end <= end and 2 * (mention.end - mention.start) > end - start:
            return mention
    return None


def _relation_of_owners(line: re.Match[str], start: int) -> LineRelation:
    path = Mention(start, start + line.end("path"), line["path"], "identifier")
    owners = _identifiers_at(line["owners"], start + line.start("owners"))
    # A star alone means the whole repository, which the line does not name.
    return LineRelation(owners, "OWNED_BY", path) if is_name(path.name) else LineRelation(owners)


def _relations_of_row(header: Sequence[str], line: str, start: int) -> Iterator[LineRelation]:
    """The relations of a table's row: its subject is in the first column without a key of relations."""
    columns = list(zip(header, _cells_of(line), strict=False))
    subjects = [
        _names_in_value(cell[0], start + cell.start(), "OWNED_BY") for key, cell in columns if key not in KEYS
    ]
    for key, cell in columns:
        if key in KEYS and subjects and len(subjects[0]) == 1:
            objects = _names_in_value(cell[0], start + cell.start(), KEYS[key])
            yield LineRelation(objects, KEYS[key], subjects[0][0])


def _cells_of(line: str) -> list[re.Match[str]]:
    return [*_CELL.finditer(line, len(line) - len(line.lstrip()), len(line.rstrip()))]


def _normalized(key: str) -> str:
    """ "depends on" for dependsOn, depends_on and Depends-On."""
    return _APART.sub(" ", key).strip().lower()


def _names_in_value(value: str, start: int, type_: str | None) -> list[Mention]:
    """The names in a value; for a relation none where a part with a capital is no name."""
    value = _SEPARATOR.sub(lambda separator: "," * len(separator[0]), _VALUE_END.split(value)[0])
    mentions: list[Mention] = []
    for piece in re.finditer("[^,]+", value):
        name = _SURROUNDED.fullmatch(value, *piece.span())
        if name is None or not name["name"]:
            continue
        mention = _name_in_value(name["name"], start + name.start("name"), type_)
        is_description = name["name"].islower() and name["name"].split()[0] not in COMMON
        if mention is not None:
            mentions.append(mention)
        elif type_ is not None and not (mentions and is_description):
            return []
    if len({" " in mention.name for mention in mentions}) > 1:
        # A lower-case part describes the person, as in: Owner: Rosa Keane, accounts.
        mentions = [mention for mention in mentions if not mention.name.islower() or mention.kind != "name"]
    return mentions[:50]


def _identifiers_at(text: str, start: int) -> list[Mention]:
    return [replace(each, start=start + each.start, end=start + each.end) for each in identifiers_in(text)]


def _name_in_value(name: str, start: int, type_: str | None) -> Mention | None:
    words = name.split()
    if ": " in name or not is_name(name) or len(words) > 5 or name.lower() in _PLACEHOLDERS:
        return None
    end = start + len(name)
    if identifiers := [each for each in _identifiers_at(name, start) if each.name == name]:
        return identifiers[0]
    if name[0].isdigit():
        # A date, or a number of things.
        return None
    cased = [word for word in words if word[0].isalpha() and word[0] != word[0].swapcase()]
    lowercase = [word for word in cased if word[0].islower()]
    if len(words) == 1 and lowercase:
        if words[0] in COMMON or type_ not in _LOWERCASE_VALUES:
            return None
        return Mention(start, end, name, kind_of_identifier(name) if re.search("[-_]", name) else "name")
    if lowercase and (words[0] in COMMON or 2 * len(lowercase) > len(cased)):
        return None
    return Mention(start, end, name, kind_of(name))
