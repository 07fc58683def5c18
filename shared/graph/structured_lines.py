"""Lines that say a relation without a sentence: Owner: X, dependsOn lists, rows of tables, CODEOWNERS.

They are about what their block or their row names, or else about the nearest heading, or the title.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shared.graph.entity_types import kind_of, kind_of_identifier
from shared.graph.identifier_entities import marks_of
from shared.graph.mentions import HIDDEN, Mention
from shared.graph.relation_keys import SUBJECTS, Key, key_of, spelled
from shared.graph.stopwords import COMMON
from shared.graph.types import is_name

_KEYED = re.compile(
    r"[ \t>*-]{0,12}(?:\*\*|__)?(?P<key>[^\W\d_][\w -]{1,28}?)(?:\*\*|__)?[ \t]{0,4}[:=](?:\*\*|__)?"
    r"(?P<value>[ \t][^\n]*|)$"
)
_ITEM = re.compile(r"[ \t]{0,12}[-*][ \t]+(?P<value>[^\n:]{2,80})$")
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<text>[^\n]{2,120})$")
_OWNED = re.compile(
    r"(?P<path>(?=\S*[/*.])[/*.\w][^\s#@]{0,120})[ \t]+"
    r"(?P<owners>(?:[\w.+-]{0,64}@[\w./-]{1,80}\w[ \t]*){1,8})$"
)
_RULE = re.compile(r"\|?[ \t:|-]*-{2,}[ \t:|-]*$")
_PARTED = re.compile(r"(?:,| and |;| und | et | y |\s/\s|<br>)")
_ENDS = re.compile(r"\.\s|\s#|\s—|\s\(|\s–")
_WORD = re.compile(r"[^\s]+")
_LONGEST = 400
_PLACEHOLDERS = frozenset("none null unknown tbd tba todo true false yes no open pending various all".split())  # noqa: SIM905
# A single small word may be the name of these.
_PLAIN = frozenset({"OWNED_BY", "DEPENDS_ON", "PART_OF", "REPORTS_TO"})
_TRIM = " \t\"'`[]{}*_“”<>|"


@dataclass(frozen=True, slots=True)
class LineRelation:
    """What a line says. Without a subject it is about `heading`, text[start:end], or about the title."""

    key: Key
    subject: Mention | None
    heading: tuple[int, int] | None
    objects: tuple[Mention, ...]


def lines_of(text: str) -> list[LineRelation]:
    if ":" not in text and "|" not in text and "=" not in text and "@" not in text:
        return []
    return [*_Lines().read(text)]


class _Lines:
    def __init__(self) -> None:
        self._heading: tuple[int, int] | None = None
        self._subject: Mention | None = None
        self._open: Key | None = None
        self._head: list[str] | None = None
        self._before = ""

    def read(self, text: str) -> Iterator[LineRelation]:
        start = 0
        for line in text.split("\n"):
            if len(line) <= _LONGEST:
                yield from self._line(line, start)
            self._before = line
            start += len(line) + 1

    def _line(self, line: str, start: int) -> Iterator[LineRelation]:
        if not line.strip():
            self._subject = self._open = self._head = None
        elif (heading := _HEADING.match(line)) is not None:
            self._heading = (start + heading.start("text"), start + heading.end("text"))
            self._subject = None
        elif line.count("|") > 1:
            yield from self._row(line, start)
        elif (keyed := _KEYED.match(line)) is not None:
            yield from self._keyed(keyed, start)
        elif self._open is not None and (item := _ITEM.match(line)) is not None:
            yield from self._emit(self._open, _items(item["value"], start + item.start("value"), self._open))
        elif (owned := _OWNED.match(line)) is not None:
            path = Mention(start, start + owned.end("path"), owned["path"], "identifier")
            owners = tuple(
                _owner(one, start + owned.start("owners")) for one in _WORD.finditer(owned["owners"])
            )
            yield LineRelation(Key("OWNED_BY"), path if is_name(path.name) else None, None, owners)

    def _keyed(self, keyed: re.Match[str], start: int) -> Iterator[LineRelation]:
        key_text, value = keyed["key"], keyed["value"]
        key = key_of(key_text)
        if key is not None:
            self._open = None if value.strip() else key
            yield from self._emit(key, _items(value, start + keyed.start("value"), key))
            return
        self._open = None
        if spelled(key_text) in SUBJECTS and (
            items := _items(value, start + keyed.start("value"), Key("OWNED_BY"))
        ):
            self._subject = items[0]

    def _emit(self, key: Key, objects: tuple[Mention, ...]) -> Iterator[LineRelation]:
        if objects:
            yield LineRelation(key, self._subject, None if self._subject else self._heading, objects)

    def _row(self, line: str, start: int) -> Iterator[LineRelation]:
        if _RULE.match(line):
            cells = [cell for _, cell in _cells(self._before)]
            self._head = cells if any(map(key_of, cells)) else None
            return
        if self._head is None:
            return
        cells_of_row = [*_cells(line)]
        keys = [key_of(cell) for cell in self._head]
        of = next((place for place, key in enumerate(keys) if key is None), None)
        if of is None or of >= len(cells_of_row):
            return
        place, cell = cells_of_row[of]
        subject = _items(cell, start + place, Key("OWNED_BY"))
        for key, (place, cell) in zip(keys, cells_of_row, strict=False):
            if key is not None and len(subject) == 1 and (objects := _items(cell, start + place, key)):
                yield LineRelation(key, subject[0], None, objects)


def _owner(match: re.Match[str], start: int) -> Mention:
    kind = "email" if match[0][0] != "@" else "team" if "/" in match[0] else "person"
    return Mention(start + match.start(), start + match.end(), match[0], kind)


def _cells(line: str) -> Iterator[tuple[int, str]]:
    start = len(line) - len(line.lstrip())
    if line.strip().startswith("|"):
        start += 1
    for cell in line[start:].rstrip().removesuffix("|").split("|"):
        yield start, cell
        start += len(cell) + 1


def _items(value: str, start: int, key: Key) -> tuple[Mention, ...]:
    """The names in a value, as far as it reads like names: no sentence, and nothing left open."""
    ended = _ENDS.search(value)
    value = value[: ended.start()] if ended else value
    mentions: list[Mention] = []
    reached = 0
    for part in [*_PARTED.finditer(value), None]:
        end = part.start() if part else len(value)
        piece = value[reached:end]
        name = piece.strip(_TRIM).rstrip(".")
        begin = start + reached + piece.find(name)
        if name and (spot := _item(name, begin, key)) is not None:
            mentions.append(spot)
        reached = part.end() if part else end
    if len({" " in spot.name for spot in mentions}) > 1:
        # Owner: Rosa Keane, accounts. The small word says more of her.
        mentions = [spot for spot in mentions if not spot.name.islower() or spot.kind != "name"]
    return tuple(mentions[:50])


def _item(name: str, start: int, key: Key) -> Mention | None:
    words = name.split()
    if HIDDEN in name or not is_name(name) or len(words) > 5 or name.lower() in _PLACEHOLDERS:
        return None
    marks = [mark for mark in marks_of(name) if mark.name == name]
    if marks:
        return Mention(start, start + len(name), name, marks[0].kind)
    cased = [word for word in words if word[0].isalpha() and word[0] != word[0].swapcase()]
    small = [word for word in cased if word[0].islower()]
    if small and words[0] in COMMON:
        return None
    if len(words) == 1 and small and key.type not in _PLAIN:
        return None
    if (
        len(words) > 1
        and len(small) > len(cased) // 2
        and words[-1].lower() not in {"team", "squad", "service"}
    ):
        return None
    kind = kind_of(name)
    if kind == "name" and len(words) == 1 and small:
        kind = kind_of_identifier(name) if "-" in name or "_" in name else "name"
    return Mention(start, start + len(name), name, kind)
