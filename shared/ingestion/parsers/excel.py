"""Parser of Excel files: cells as Excel shows them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lxml import etree

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.markdown_table import MAX_CELLS, titled_table
from shared.ingestion.parsers.number_format import BUILT_IN, shown_number, shown_text
from shared.ingestion.parsers.office_xml import (
    Package,
    ScriptedText,
    attribute,
    child,
    drawn_paragraphs,
    graphic,
    local,
    value,
)
from shared.ingestion.parsers.parsed_file import ParsedFile, counted, open_archive, size_error
from shared.text.normalize import one_line

MAIN_PART = "xl/workbook.xml"
FORMULA_CHARACTERS = 100
_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_THREAD = re.compile(r"\[Threaded comment\].*?Comment:\s*", re.DOTALL)

_Row = dict[int, str]


@dataclass(slots=True)
class _Sheet:
    """The filled cells by row and column, from 1; typed: the rows with a number or date; merges: (first row,
    first column, last row, last column)."""

    rows: dict[int, _Row] = field(default_factory=dict)
    typed: set[int] = field(default_factory=set)
    merges: list[tuple[int, int, int, int]] = field(default_factory=list)
    drawings: list[str] = field(default_factory=list)


def xlsx(data: bytes) -> ParsedFile:
    with open_archive(data) as archive:
        package = Package(archive)
        return _Book(package).parsed()


class _Book:
    def __init__(self, package: Package) -> None:
        self._package = package
        self._part = package.target("", "officeDocument") or MAIN_PART
        self._root = package.tree(self._part)
        self._from_1904 = attribute(child(self._root, "workbookPr"), "date1904") in ("1", "true")
        self._texts = self._shared_texts()
        self._codes = self._format_codes()
        self._cells = self._values = self._formulas = self._pictures = self._objects = 0

    def parsed(self) -> ParsedFile:
        targets = self._package.targets(self._part)
        parts: list[tuple[int | None, str]] = []
        for number, sheet in enumerate(self._root.iter("{*}sheet"), 1):
            _, part = targets.get(attribute(sheet, "id") or "", ("", ""))
            hidden = " (hidden sheet)" if sheet.get("state", "visible") != "visible" else ""
            content = self._sheet(part) if part and self._package.has(part) else []
            parts.append((number, "\n\n".join([f"# {one_line(sheet.get('name', ''))}{hidden}", *content])))
        if not parts:
            raise UnreadableDocument
        if self._formulas > self._values:
            raise UnreadableDocument(
                f"{self._formulas} formulas of the file have no stored value. Open it in Excel or "
                "LibreOffice, save it, and upload it again.",
                code="no_text",
            )
        notes = [
            *counted(self._formulas, "formula has", "formulas have", "no stored value."),
            *counted(self._pictures, "picture was", "pictures were", "not read."),
            *counted(self._objects, "embedded file was", "embedded files were", "not read."),
        ]
        return ParsedFile(parts, self._package.title(), notes=notes)

    def _shared_texts(self) -> list[str]:
        part = self._package.target(self._part, "sharedStrings")
        if not part or not self._package.has(part):
            return []
        return [_rich_text(item) for item in self._stream(part, "si")]

    def _format_codes(self) -> dict[str, str]:
        """The format code of each cell style, by the number of the style."""
        part = self._package.target(self._part, "styles")
        if not part or not self._package.has(part):
            return {}
        root = self._package.tree(part)
        codes = dict(BUILT_IN)
        for format_ in root.iter("{*}numFmt"):
            with suppress(ValueError):
                codes[int(format_.get("numFmtId", ""))] = format_.get("formatCode", "")
        styles = child(root, "cellXfs")
        numbers = [style.get("numFmtId", "") for style in (() if styles is None else styles.iter("{*}xf"))]
        return {
            str(index): codes.get(int(number), "") for index, number in enumerate(numbers) if number.isdigit()
        }

    def _stream(self, part: str, *names: str) -> Iterator[Any]:
        """The elements of these names, one at a time."""
        with self._package.archive.open(self._package.name(part)) as file:
            events = etree.iterparse(
                file, tag=[f"{{*}}{name}" for name in names], resolve_entities=False, no_network=True,
                load_dtd=False, huge_tree=False,
            )  # fmt: skip
            try:
                for _, element in events:
                    yield element
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
            except etree.XMLSyntaxError:
                raise UnreadableDocument from None

    # -- a sheet -----------------------------------------------------------------------------------------

    def _sheet(self, part: str) -> list[str]:
        sheet = _Sheet()
        row_number = 0
        for element in self._stream(part, "row", "mergeCell", "drawing", "legacyDrawing", "oleObject"):
            name = local(element)
            if name == "row":
                number = element.get("r", "")
                row_number = int(number) if number.isdigit() else row_number + 1
                self._read_row(element, row_number, sheet)
            elif name == "mergeCell":
                if area := _area(element.get("ref", "")):
                    sheet.merges.append(area)
            elif name == "drawing":
                sheet.drawings.append(attribute(element, "id") or "")
            elif name == "oleObject":
                self._objects += 1
        targets = self._package.targets(part)
        grouped = _repeat_merged(sheet)
        texts = list(_tables(sheet, grouped))
        texts += self._comments(targets, sheet)
        for drawing in sheet.drawings:
            texts += self._drawing(targets.get(drawing, ("", ""))[1])
        return list(filter(None, texts))

    def _read_row(self, element: Any, number: int, sheet: _Sheet) -> None:
        row: _Row = {}
        column = 0
        self._cells += 1
        for cell in element.iterchildren("{*}c"):
            self._cells += 1
            if self._cells > MAX_CELLS:
                raise size_error()
            letters = cell.get("r", "").rstrip("0123456789")
            column = _column(letters) if letters else column + 1
            text, is_typed = self._shown(cell)
            if text:
                row[column] = text
                if is_typed:
                    sheet.typed.add(number)
        if row:
            sheet.rows[number] = row

    def _shown(self, cell: Any) -> tuple[str, bool]:
        """The cell's text, and whether it is a number, a date or a truth value."""
        kind = cell.get("t", "n")
        text = next((stored.text for stored in cell.iterchildren("{*}v")), None) or ""
        code = self._codes.get(cell.get("s", "0"), "")
        if kind == "inlineStr":
            inline = child(cell, "is")
            text = "" if inline is None else _rich_text(inline)
        elif not text:
            if (formula := child(cell, "f")) is not None and kind != "str":
                self._formulas += 1
                formula_text = one_line(formula.text or "")[:FORMULA_CHARACTERS]
                return (f"={formula_text}" if formula_text else ""), False
            return "", False
        if text:
            self._values += 1
        if kind == "s":
            text = self._texts[int(text)] if text.isdigit() and int(text) < len(self._texts) else ""
        elif kind == "b":
            return ("TRUE" if text.strip() == "1" else "FALSE"), True
        elif kind == "n":
            with suppress(ValueError, ArithmeticError):
                return shown_number(float(text), code, from_1904=self._from_1904), True
        elif kind == "d":
            return text.removesuffix("T00:00:00").replace("T", " "), True
        return shown_text(text, code), False

    def _comments(self, targets: Mapping[str, tuple[str, str]], sheet: _Sheet) -> Iterator[str]:
        """Comments and notes with the cells that they belong to."""
        threads: list[tuple[str, str]] = []
        legacy: list[tuple[str, str]] = []
        for kind, part in targets.values():
            if kind not in ("comments", "threadedComment") or not self._package.has(part):
                continue
            for comment in self._package.tree(part).iter("{*}comment", "{*}threadedComment"):
                content = child(comment, "text")
                text = "" if content is None else _rich_text(content) or content.text or ""
                (threads if kind == "threadedComment" else legacy).append((comment.get("ref", ""), text))
        threaded = {reference for reference, _ in threads}
        for reference, text in [*threads, *((at, text) for at, text in legacy if at not in threaded)]:
            place = _REFERENCE.fullmatch(reference)
            shown = sheet.rows.get(int(place[2]), {}).get(_column(place[1]), "") if place else ""
            of = f"{reference} ({one_line(shown)})" if shown else reference
            if line := one_line(_THREAD.sub("", text)):
                yield f"Comment on {of}: {line}"

    def _drawing(self, part: str) -> Iterator[str]:
        """The text boxes, charts and diagrams of a drawing."""
        if not part or not self._package.has(part):
            return
        targets = self._package.targets(part)
        for element in self._package.tree(part).iter("{*}pic", "{*}txBody", "{*}chart", "{*}relIds"):
            name = local(element)
            if name == "pic":
                self._pictures += 1
            elif name == "txBody":
                yield "\n".join(drawn_paragraphs(element))
            elif attribute(element, "id" if name == "chart" else "dm"):
                yield graphic(self._package, targets, element)


def _rich_text(item: Any) -> str:
    """The text of runs, without the pronunciation of Asian characters."""
    text = ScriptedText()
    for element in item:
        name = local(element)
        if name == "t":
            text.add(element.text or "")
        elif name == "r":
            aligned = value(child(element, "rPr"), "vertAlign")
            content = child(element, "t")
            kind = {"superscript": "sup", "subscript": "sub"}.get(aligned or "", "")
            text.add((content.text if content is not None else None) or "", kind)
    return text.text()


@lru_cache(20_000)
def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _area(reference: str) -> tuple[int, int, int, int] | None:
    places = [_REFERENCE.fullmatch(place) for place in reference.split(":")]
    if len(places) != 2 or not places[0] or not places[1]:
        return None
    (first, top), (last, bottom) = (place.groups() for place in places if place)
    return int(top), _column(first), int(bottom), _column(last)


def _repeat_merged(sheet: _Sheet) -> set[int]:
    """Repeat the value of merged cells. Return the rows with cells that span some columns."""
    grouped = set()
    widths = [max(row) for row in sheet.rows.values()]
    last_row, last_column = max(sheet.rows, default=0), max(widths, default=0)
    copies = 0
    for top, left, bottom, right in sheet.merges:
        text = sheet.rows.get(top, {}).get(left)
        if not text:
            continue
        if right > left:
            grouped.add(top)
        for row in range(top, min(bottom, last_row) + 1):
            for column in range(left, min(right, last_column) + 1):
                copies += 1
                if copies > MAX_CELLS:
                    raise size_error()
                sheet.rows.setdefault(row, {}).setdefault(column, text)
    return grouped


def _tables(sheet: _Sheet, grouped: set[int]) -> Iterator[str]:
    """The tables of a sheet. After an empty row, a row of texts above one with numbers is another header."""
    numbers = sorted(sheet.rows)
    starts = [0]
    for index, number in enumerate(numbers[1:], 1):
        if number > numbers[index - 1] + 1 and _begins_table(sheet, numbers[index : index + 3]):
            starts.append(index)
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield _table(sheet, numbers[start:end], grouped)


def _begins_table(sheet: _Sheet, numbers: Sequence[int]) -> bool:
    """Whether the rows begin with a header or a title."""
    first = sheet.rows[numbers[0]]
    follows = [number for number in numbers[1:2] if number == numbers[0] + 1]
    if len(set(first.values())) == 1:
        # A title, or a remark at the end.
        return numbers[0] not in sheet.typed
    return numbers[0] not in sheet.typed and any(number in sheet.typed for number in follows)


def _table(sheet: _Sheet, numbers: Sequence[int], grouped: set[int]) -> str:
    used = sorted({column for number in numbers for column in sheet.rows[number]})
    if len(numbers) * len(used) > MAX_CELLS:
        raise size_error()
    rows = [[sheet.rows[number].get(column, "") for column in used] for number in numbers]
    if len(used) == 1 and len(numbers) < len(sheet.rows):
        # A title above tables, or remarks below them.
        return "\n".join(one_line(row[0]) for row in rows)
    return titled_table(rows, {index for index, number in enumerate(numbers) if number in grouped})
