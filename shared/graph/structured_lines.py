"""Relations in structured lines: key: value, lists below a key, tables, CODEOWNERS.

The subject is the name of the block or the row, or else the nearest heading, or else the title.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.graph.alias_resolution import AliasMap
from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.identifier_entities import identifiers_in
from shared.graph.mentions import HIDDEN, Mention
from shared.graph.relation_keys import SUBJECT_KEYS, Key, key_of, normalize_key
from shared.graph.stopwords import COMMON
from shared.graph.types import Relation, is_name

_KEY_LINE = re.compile(
    r"[ \t>*-]{0,12}(?:\*\*|__)?(?P<key>[^\W\d_][\w -]{1,28}?)(?:\*\*|__)?[ \t]{0,4}[:=](?:\*\*|__)?"
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
_WORD = re.compile(r"[^\s]+")
_MAX_LINE = 400
_PLACEHOLDERS = frozenset("none null unknown tbd tba todo true false yes no open pending various all".split())  # noqa: SIM905
# The values of these keys may be one lowercase word.
_LOWERCASE_VALUES = frozenset({"OWNED_BY", "DEPENDS_ON", "PART_OF", "REPORTS_TO"})
_TRIM = " \t\"'`[]{}*_“”<>|"
# Confidence by the source of the subject.
_OF_LINE, _OF_HEADING, _OF_TITLE = 0.9, 0.85, 0.8


@dataclass(frozen=True, slots=True)
class LineRelation:
    """The relations of a line. Without a `subject` it is the heading, text[start:end], or the title."""

    key: Key
    subject: Mention | None
    heading: tuple[int, int] | None
    objects: tuple[Mention, ...]


def relation_lines_in(text: str) -> list[LineRelation]:
    if ":" not in text and "|" not in text and "=" not in text and "@" not in text:
        return []
    return [*_LineParser().read(text)]


def relations_of_lines(
    lines: Sequence[LineRelation], mentions: Sequence[Mention], aliases: AliasMap, title: Mention | None
) -> Iterator[Relation]:
    for line in lines:
        subject, confidence = line.subject, _OF_LINE
        if subject is None and line.heading is not None:
            subject, confidence = _heading_subject(*line.heading, mentions), _OF_HEADING
        if subject is None:
            subject, confidence = title, _OF_TITLE
        if subject is None:
            continue
        subject_name = aliases.resolve(subject).name
        for each in line.objects:
            pair = subject_name, aliases.resolve(each).name
            first, second = pair if line.key.is_forward else reversed(pair)
            yield Relation(first, line.key.type, second, confidence)


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
        self._list_key: Key | None = None
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
            self._subject = self._list_key = self._table_header = None
        elif (heading := _HEADING.match(line)) is not None:
            self._heading = (start + heading.start("text"), start + heading.end("text"))
            self._subject = None
        elif line.count("|") > 1:
            yield from self._row(line, start)
        elif (key_line := _KEY_LINE.match(line)) is not None:
            yield from self._key_line(key_line, start)
        elif self._list_key is not None and (item := _ITEM.match(line)) is not None:
            yield from self._relation_lines(
                self._list_key, _names_in_value(item["value"], start + item.start("value"), self._list_key)
            )
        elif (codeowners_line := _CODEOWNERS_LINE.match(line)) is not None:
            path = Mention(start, start + codeowners_line.end("path"), codeowners_line["path"], "identifier")
            owners = tuple(
                _owner(one, start + codeowners_line.start("owners"))
                for one in _WORD.finditer(codeowners_line["owners"])
            )
            yield LineRelation(Key("OWNED_BY"), path if is_name(path.name) else None, None, owners)

    def _key_line(self, key_line: re.Match[str], start: int) -> Iterator[LineRelation]:
        key_text, value = key_line["key"], key_line["value"]
        key = key_of(key_text)
        if key is not None:
            self._list_key = None if value.strip() else key
            yield from self._relation_lines(key, _names_in_value(value, start + key_line.start("value"), key))
            return
        self._list_key = None
        if normalize_key(key_text) in SUBJECT_KEYS and (
            items := _names_in_value(value, start + key_line.start("value"), Key("OWNED_BY"))
        ):
            self._subject = items[0]

    def _relation_lines(self, key: Key, objects: tuple[Mention, ...]) -> Iterator[LineRelation]:
        if objects:
            yield LineRelation(key, self._subject, None if self._subject else self._heading, objects)

    def _row(self, line: str, start: int) -> Iterator[LineRelation]:
        if _TABLE_RULE.match(line):
            cells = [cell for _, cell in _cells_of(self._previous_line)]
            self._table_header = cells if any(map(key_of, cells)) else None
            return
        if self._table_header is None:
            return
        cells_of_row = [*_cells_of(line)]
        keys = [key_of(cell) for cell in self._table_header]
        subject_column = next((place for place, key in enumerate(keys) if key is None), None)
        if subject_column is None or subject_column >= len(cells_of_row):
            return
        place, cell = cells_of_row[subject_column]
        subject = _names_in_value(cell, start + place, Key("OWNED_BY"))
        for key, (place, cell) in zip(keys, cells_of_row, strict=False):
            if (
                key is not None
                and len(subject) == 1
                and (objects := _names_in_value(cell, start + place, key))
            ):
                yield LineRelation(key, subject[0], None, objects)


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


def _names_in_value(value: str, start: int, key: Key) -> tuple[Mention, ...]:
    """The names in a value, as far as it reads like names: no sentence, and nothing left open."""
    value_end = _VALUE_END.search(value)
    value = value[: value_end.start()] if value_end else value
    mentions: list[Mention] = []
    position = 0
    for part in [*_SEPARATOR.finditer(value), None]:
        end = part.start() if part else len(value)
        piece = value[position:end]
        name = piece.strip(_TRIM).rstrip(".")
        begin = start + position + piece.find(name)
        if name and (mention := _name_in_value(name, begin, key)) is not None:
            mentions.append(mention)
        position = part.end() if part else end
    if len({" " in mention.name for mention in mentions}) > 1:
        # Owner: Rosa Keane, accounts. The small word says more of her.
        mentions = [mention for mention in mentions if not mention.name.islower() or mention.kind != "name"]
    return tuple(mentions[:50])


def _name_in_value(name: str, start: int, key: Key) -> Mention | None:
    words = name.split()
    if HIDDEN in name or not is_name(name) or len(words) > 5 or name.lower() in _PLACEHOLDERS:
        return None
    identifiers = [identifier for identifier in identifiers_in(name) if identifier.name == name]
    if identifiers:
        return Mention(start, start + len(name), name, identifiers[0].kind)
    cased = [word for word in words if word[0].isalpha() and word[0] != word[0].swapcase()]
    lowercase = [word for word in cased if word[0].islower()]
    if lowercase and words[0] in COMMON:
        return None
    if len(words) == 1 and lowercase and key.type not in _LOWERCASE_VALUES:
        return None
    if (
        len(words) > 1
        and len(lowercase) > len(cased) // 2
        and words[-1].lower() not in {"team", "squad", "service"}
    ):
        return None
    kind = kind_of(name)
    if kind == "name" and len(words) == 1 and lowercase:
        kind = kind_of_identifier(name) if "-" in name or "_" in name else "name"
    return Mention(start, start + len(name), name, kind)
