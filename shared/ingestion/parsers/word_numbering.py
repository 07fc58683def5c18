"""Automatic numbers of headings, clauses and list items, as Word shows them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shared.ingestion.parsers.office_drawings import letters
from shared.ingestion.parsers.office_xml import attribute, child, is_on, value
from shared.text.roman_numerals import roman

LEVELS = 9
_CHINESE = "〇一二三四五六七八九"
_CARDINALS = (
    "Zero One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen Sixteen "
    "Seventeen Eighteen Nineteen Twenty"
)
_ORDINALS = (
    "Zeroth First Second Third Fourth Fifth Sixth Seventh Eighth Ninth Tenth Eleventh Twelfth Thirteenth "
    "Fourteenth Fifteenth Sixteenth Seventeenth Eighteenth Nineteenth Twentieth"
)


@dataclass(frozen=True, slots=True)
class Level:
    """start: the first number; text: such as "%1.%2"; restart: the number of the level that restarts it, 0
    for none, None for any above."""

    start: int = 1
    format: str = "decimal"
    text: str = ""
    style: str | None = None
    is_legal: bool = False
    restart: int | None = None


@dataclass(slots=True)
class _List:
    """A list's own levels and first numbers beside those of its definition, whose counts it shares."""

    definition: str
    levels: dict[int, Level] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """The counters of a document. Paragraphs must be numbered in their order."""

    def __init__(self, root: Any) -> None:
        """root: of word/numbering.xml, or None."""
        self._definitions: dict[str, dict[int, Level]] = {}
        self._lists: dict[str, _List] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._started: set[tuple[str, int]] = set()
        if root is None:
            return
        styled, linked = {}, {}
        for definition in root.iter("{*}abstractNum"):
            id_ = attribute(definition, "abstractNumId") or ""
            self._definitions[id_] = dict(_levels(definition))
            if style := value(definition, "styleLink"):
                styled[style] = id_
            if style := value(definition, "numStyleLink"):
                linked[id_] = style
        for list_ in root.iter("{*}num"):
            id_ = value(list_, "abstractNumId") or ""
            made = _List(styled.get(linked.get(id_, ""), id_))
            for override in list_.iter("{*}lvlOverride"):
                made.levels |= dict(_levels(override))
                if (start := value(override, "startOverride")) and start.isdecimal():
                    made.starts[int(attribute(override, "ilvl", "0") or 0)] = int(start)
            self._lists[attribute(list_, "numId") or ""] = made

    def level_of_style(self, list_id: str, style: str) -> int | None:
        """The level of a list that belongs to a paragraph style."""
        levels = (index for index in range(LEVELS) if self._level(list_id, index).style == style)
        return next(levels, None)

    def next(self, list_id: str, index: int) -> str | None:
        """The number of the next paragraph at a level, "" for a bullet; None without a list."""
        list_ = self._lists.get(list_id)
        if list_ is None:
            return None
        counts = self._counts[list_.definition]
        if index in list_.starts and (list_id, index) not in self._started:
            counts[index] = list_.starts[index] - 1
        self._started.add((list_id, index))
        level = self._level(list_id, index)
        counts[index] = counts.get(index, level.start - 1) + 1
        for deeper in range(index + 1, LEVELS):
            restart = self._level(list_id, deeper).restart
            if restart is None or index < restart:
                counts.pop(deeper, None)
        if level.format == "bullet":
            return ""
        text = level.text
        for shown in range(index + 1):
            if f"%{shown + 1}" in text:
                above = self._level(list_id, shown)
                number = counts.get(shown, above.start)
                is_decimal = level.is_legal and above.format not in ("decimal", "decimalZero")
                text = text.replace(
                    f"%{shown + 1}", _number(number, "decimal" if is_decimal else above.format)
                )
        return text.strip()

    def _level(self, list_id: str, index: int) -> Level:
        list_ = self._lists.get(list_id)
        if list_ is None:
            return Level()
        return list_.levels.get(index) or self._definitions.get(list_.definition, {}).get(index, Level())


def _levels(element: Any) -> Iterator[tuple[int, Level]]:
    for level in element.iter("{*}lvl"):
        start, restart = value(level, "start"), value(level, "lvlRestart")
        format_ = level.find(".//{*}numFmt")
        yield (
            int(attribute(level, "ilvl", "0") or 0),
            Level(
                int(start) if start and start.isdecimal() else 0,
                attribute(format_, "val", "decimal") or "decimal",
                attribute(child(level, "lvlText"), "val", "") or "",
                value(level, "pStyle"),
                is_on(level, "isLgl"),
                int(restart) if restart and restart.isdecimal() else None,
            ),
        )


def _number(number: int, format_: str) -> str:
    """Formats of other scripts are decimal."""
    match format_:
        case "none":
            return ""
        case "decimalZero":
            return f"{number:02d}"
        case "upperRoman" | "lowerRoman":
            return roman(number) if format_ == "upperRoman" else roman(number).lower()
        case "upperLetter" | "lowerLetter" if number > 0:
            return letters(number) if format_ == "upperLetter" else letters(number).lower()
        case "ordinal":
            last = (
                "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
            )
            return f"{number}{last}"
        case "cardinalText" if 0 <= number <= 20:
            return _CARDINALS.split()[number]
        case "ordinalText" if 0 <= number <= 20:
            return _ORDINALS.split()[number]
        case "decimalEnclosedCircle" | "decimalEnclosedCircleChinese" if 1 <= number <= 20:
            return chr(0x245F + number)
    if ("chinese" in format_.lower() or "japanese" in format_.lower()) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        return ("" if not tens else "十" if tens == 1 else f"{_CHINESE[tens]}十") + (
            _CHINESE[ones] if ones else ""
        )
    return str(number)
