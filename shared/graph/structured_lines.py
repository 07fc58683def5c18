"""Relations in structured lines: key: value, lists below a key, tables, CODEOWNERS.

The subject is the name in the first line of the block or in the row, or else the nearest heading, or else the
title.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shared.graph.alias_resolution import AliasMap
from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.identifier_entities import identifiers_in
from shared.graph.mentions import HIDDEN, Mention
from shared.graph.relation_words import KEYS
from shared.graph.stopwords import COMMON
from shared.graph.types import STRUCTURED_LINE, Relation, is_name

_KEY_LINE = re.compile(
    r"[ >*-]{0,6}(?:\*\*|__)?(?P<key>[^\W\d_][\w -]{1,28}?)(?:\*\*|__)?[ \t]{0,4}[:=](?:\*\*|__)?"
    r"(?P<value>[ \t][^\n]*|)$"
)
_ITEM = re.compile(r"[ \t]{0,12}[-*][ \t]+(?P<value>[^\n:]{2,80})$")
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<text>[^\n]{2,120})$")
_CODEOWNERS_LINE = re.compile(
    r"(?P<path>(?=\S*[/*.])[/*.\w][^\s#@]{0,120})[ \t]+"
    r"(?P<owners>(?:[\w.+-]{0,64}@[\w./-]{1,80}\w[ \t]*){1,8})$"
)
_TABLE_RULE = re.compile(r"\|?[ \t:|-]*-{2,}[ \t:|-]*$")
_SEPARATOR = re.compile(r"(?:,| and |;| und | et | y |\s/\s|<br>)")
_VALUE_END = re.compile(r"\.\s|\s#|\s—|\s\(|\s–")
_WORD = re.compile(r"\S+")
_MAX_LINE = 400
_PLACEHOLDERS = frozenset("none null unknown tbd tba todo true false yes no open pending various all".split())  # noqa: SIM905
# The values of these keys may be one lowercase word.
_LOWERCASE_VALUES = frozenset({None, "OWNED_BY", "DEPENDS_ON", "PART_OF", "REPORTS_TO"})
# Keys of names. In the first line of a block the name is the subject of its lines.
_NAME_KEYS = frozenset(
    {"name", "service", "system", "component", "repository", "repo", "project", "app", "module", "ticket"}
)
_TRIM = " \t\"'`[]{}*_“”<>|"
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class LineRelation:
    """The relations of a line; without a `type` only its names. Without a `subject` it is the heading,
    text[start:end], or the title."""

    type: str | None
    subject: Mention | None
    heading: tuple[int, int] | None
    objects: tuple[Mention, ...]


def relation_lines_in(text: str) -> list[LineRelation]:
    return [*_LineParser().read(text)] if re.search("[:|=@]", text) else []


def relations_of_lines(
    lines: Sequence[LineRelation], mentions: Sequence[Mention], aliases: AliasMap, title: Mention | None
) -> Iterator[Relation]:
    for line in lines:
        subject = line.subject
        if subject is None and line.heading is not None:
            subject = _heading_subject(*line.heading, mentions)
        subject = subject or title
        if subject is None or line.type is None:
            continue
        for each in line.objects:
            yield Relation(
                aliases.resolve(subject).name, line.type, aliases.resolve(each).name, STRUCTURED_LINE
            )


def _heading_subject(start: int, end: int, mentions: Sequence[Mention]) -> Mention | None:
    """The first name that fills more than half of the heading, unless it is a date."""
    for mention in mentions:
        if start <= mention.start and mention.end <= end and 2 * (mention.end - mention.start) > end - start:
            return None if mention.kind == "date" else mention
    return None


class _LineParser:
    def __init__(self) -> None:
        self._heading: tuple[int, int] | None = None
        self._subject: Mention | None = None
        self._list_type: str | None = None
        self._table_header: list[str] | None = None
        self._previous_line = ""

    def read(self, text: str) -> Iterator[LineRelation]:
        start = 0
        for line in text.split("\n"):
            if len(line) <= _MAX_LINE:
                yield from self._line(line, start)
            self._previous_line = line
            start += len(line) + 1

    def _line(self, line: str, start: int) -> Iterator[LineRelation]:
        if not line.strip():
            self._subject = self._list_type = self._table_header = None
        elif (heading := _HEADING.match(line)) is not None:
            self._heading = (start + heading.start("text"), start + heading.end("text"))
            self._subject = None
        elif line.count("|") > 1:
            yield from self._row(line, start)
        elif (key_line := _KEY_LINE.match(line)) is not None:
            yield from self._key_line(key_line, start)
        elif self._list_type is not None and (item := _ITEM.match(line)) is not None:
            yield from self._of_block(self._list_type, item["value"], start + item.start("value"))
        elif (codeowners_line := _CODEOWNERS_LINE.match(line)) is not None:
            path = Mention(start, start + codeowners_line.end("path"), codeowners_line["path"], "identifier")
            owners = tuple(
                _owner(one, start + codeowners_line.start("owners"))
                for one in _WORD.finditer(codeowners_line["owners"])
            )
            # A star alone stands for the whole repository, which the line does not name.
            has_name = is_name(path.name)
            yield LineRelation("OWNED_BY" if has_name else None, path if has_name else None, None, owners)
        elif not self._previous_line.strip() and len(line) < 20:
            # A ticket begins with its key.
            self._subject = next(
                (each for each in _identifiers_at(line, start) if each.name == line.strip()), None
            )

    def _key_line(self, key_line: re.Match[str], start: int) -> Iterator[LineRelation]:
        key, value, start = _normalized(key_line["key"]), key_line["value"], start + key_line.start("value")
        self._list_type = KEYS.get(key) if not value.strip() else None
        if key in KEYS:
            yield from self._of_block(KEYS[key], value, start)
        elif key in _NAME_KEYS and (names := _names_in_value(value, start, None)):
            if not self._previous_line.strip():
                self._subject = names[0]
            yield LineRelation(None, None, None, names)

    def _of_block(self, type_: str, value: str, start: int) -> Iterator[LineRelation]:
        if objects := _names_in_value(value, start, type_):
            yield LineRelation(type_, self._subject, None if self._subject else self._heading, objects)

    def _row(self, line: str, start: int) -> Iterator[LineRelation]:
        if _TABLE_RULE.match(line):
            self._table_header = [_normalized(cell) for _, cell in _cells_of(self._previous_line)]
            return
        header, cells = self._table_header or [], [*_cells_of(line)]
        column = next((place for place, key in enumerate(header) if key not in KEYS), len(cells))
        if column >= len(cells):
            return
        subject = _names_in_value(cells[column][1], start + cells[column][0], "OWNED_BY")
        for key, (place, cell) in zip(header, cells, strict=False):
            if (
                key in KEYS
                and len(subject) == 1
                and (objects := _names_in_value(cell, start + place, KEYS[key]))
            ):
                yield LineRelation(KEYS[key], subject[0], None, objects)


def _normalized(key: str) -> str:
    """ "depends on" for dependsOn, depends_on and Depends-On."""
    return _APART.sub(" ", _CAMEL.sub(" ", key)).strip().lower()


def _owner(match: re.Match[str], start: int) -> Mention:
    kind = "email" if match[0][0] != "@" else "team" if "/" in match[0] else "person"
    return Mention(start + match.start(), start + match.end(), match[0], kind)


def _cells_of(line: str) -> Iterator[tuple[int, str]]:
    start = len(line) - len(line.lstrip())
    if line.strip().startswith("|"):
        start += 1
    for cell in line[start:].rstrip().removesuffix("|").split("|"):
        yield start, cell
        start += len(cell) + 1


def _names_in_value(value: str, start: int, type_: str | None) -> tuple[Mention, ...]:
    """The names in a value; for a relation none where a part is no name."""
    value_end = _VALUE_END.search(value)
    value = value[: value_end.start()] if value_end else value
    mentions: list[Mention] = []
    position = 0
    for part in [*_SEPARATOR.finditer(value), None]:
        end = part.start() if part else len(value)
        piece = value[position:end]
        name = piece.strip(_TRIM).rstrip(".")
        begin = start + position + piece.find(name)
        if name.strip(HIDDEN):
            mention = _name_in_value(name, begin, type_)
            if mention is None and type_ is not None:
                return ()
            mentions += [mention] if mention else []
        position = part.end() if part else end
    if len({" " in mention.name for mention in mentions}) > 1:
        # Owner: Rosa Keane, accounts. The small word says more of her.
        mentions = [mention for mention in mentions if not mention.name.islower() or mention.kind != "name"]
    return tuple(mentions[:50])


def _identifiers_at(text: str, start: int) -> list[Mention]:
    return [replace(each, start=start + each.start, end=start + each.end) for each in identifiers_in(text)]


def _name_in_value(name: str, start: int, type_: str | None) -> Mention | None:
    words = name.split()
    if HIDDEN in name or ": " in name or not is_name(name) or len(words) > 5 or name.lower() in _PLACEHOLDERS:
        return None
    end = start + len(name)
    if identifiers := [each for each in _identifiers_at(name, start) if each.name == name]:
        return identifiers[0]
    cased = [word for word in words if word[0].isalpha() and word[0] != word[0].swapcase()]
    lowercase = [word for word in cased if word[0].islower()]
    if len(words) == 1 and lowercase:
        if words[0] in COMMON or type_ not in _LOWERCASE_VALUES:
            return None
        return Mention(start, end, name, kind_of_identifier(name) if re.search("[-_]", name) else "name")
    ends_with_noun = words[-1].lower() in {"team", "squad", "service"}
    if lowercase and (words[0] in COMMON or (2 * len(lowercase) > len(cased) and not ends_with_noun)):
        return None
    return Mention(start, end, name, kind_of(name))
