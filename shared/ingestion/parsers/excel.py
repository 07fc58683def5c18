"""Parser of Excel files: cells as Excel shows them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

from lxml import etree

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.excel_merged_cells import Row, Sheet, repeat_merged
from shared.ingestion.parsers.excel_sheet_parts import form_controls, headers_and_footers, rich_values
from shared.ingestion.parsers.excel_tables import tables
from shared.ingestion.parsers.markdown_table import MAX_CELLS
from shared.ingestion.parsers.number_format import (
    BUILT_IN,
    shown_number,
    shown_text,
)
from shared.ingestion.parsers.number_separators import LANGUAGE_OF_STYLE, separators_of
from shared.ingestion.parsers.office_drawings import (
    ScriptedText,
    alternative_text,
    drawn_paragraphs,
    graphic,
    struck,
)
from shared.ingestion.parsers.office_xml import (
    Package,
    attribute,
    child,
    is_on,
    local,
    refuse_entities,
    unescaped,
    value,
)
from shared.ingestion.parsers.parsed_file import ParsedFile, counted, open_archive, size_error
from shared.ingestion.parsers.symbol_fonts import symbols, unread_symbols
from shared.text.normalize import one_line

MAIN_PART = "xl/workbook.xml"
FORMULA_CHARACTERS = 100
# So many sheets and rows of each are read for the language of a file without shared texts.
SAMPLE_SHEETS, SAMPLE_ROWS = 5, 100
_SHEET_PARTS = ("col", "row", "mergeCell", "drawing", "oleObject", "headerFooter")
_DRAWN = [f"{{*}}{name}" for name in ("pic", "contentPart", "txBody", "chart", "relIds")]
_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_THREAD = re.compile(r"\[Threaded comment\].*?Comment:\s*", re.DOTALL)


def xlsx(data: bytes) -> ParsedFile:
    """Excel: all sheets, rows and columns, also hidden ones; cells as Excel shows them, dates as ISO; merged
    cells repeat their value in each row and column with other cells; titles above a table; comments;
    charts; text boxes; labels of form controls, check boxes with their state (☒, ☐), those of cells as TRUE
    and FALSE; headers and footers once

    Noted: formulas without a stored value; pictures, also in cells; charts without stored data; embedded
    files; symbols of special fonts; hidden rows and columns, which are read
    Not read: page numbers, macros, colours, choices of drop-down lists"""
    with open_archive(data) as archive:
        package = Package(archive)
        return _Book(package).parsed()


class _Book:
    def __init__(self, package: Package) -> None:
        self._package = package
        self._part = package.target("", "officeDocument") or MAIN_PART
        self._root = package.tree(self._part)
        self._from_1904 = attribute(child(self._root, "workbookPr"), "date1904") in ("1", "true")
        # Headers and footers of the sheets before, most of which repeat.
        self._margins = set[str]()
        # Texts of several fonts, which keep theirs, by index; as they are in a struck cell.
        self._rich: dict[int, str] = {}
        self._texts = self._shared_texts()
        # The font and the format code of each cell style, by the number of the style.
        self._fonts: dict[str, str] = {}
        self._codes: dict[str, str] = {}
        # The styles of struck cells.
        self._struck = set[str]()
        languages = self._read_styles()
        self._separators = separators_of(self._codes.values(), self._sample(), languages)
        self._rich_values = rich_values(package, self._part)
        self._cells = self._values = self._formulas = self._pictures = self._objects = self._hidden = 0

    def parsed(self) -> ParsedFile:
        targets = self._package.targets(self._part)
        parts: list[tuple[int | None, str]] = []
        for number, sheet in enumerate(self._root.iter("{*}sheet"), 1):
            _, part = targets.get(attribute(sheet, "id") or "", ("", ""))
            hidden = " (hidden sheet)" if sheet.get("state", "visible") != "visible" else ""
            # Sheets of macros have no part.
            content = self._sheet(part) if part else []
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
            *counted(self._hidden, "sheet has", "sheets have", "hidden rows or columns, which were read."),
            *unread_symbols(*(text for _, text in parts)),
        ]
        return ParsedFile(parts, self._package.title(), notes=notes)

    def _shared_texts(self) -> list[str]:
        part = self._package.target(self._part, "sharedStrings")
        if not part or not self._package.has(part):
            return []
        texts: list[str] = []
        for item in self._stream(part, "si"):
            if child(item, "r") is not None:
                self._rich[len(texts)] = _rich_text(item, is_struck=True)
            texts.append(_rich_text(item))
        return texts

    def _sample(self) -> Iterable[str]:
        """The texts that tell the language of the file: shared ones, or those of the first rows."""
        if self._texts:
            return self._texts
        parts = [part for kind, part in self._package.targets(self._part).values() if kind == "worksheet"]
        cells = (
            cell
            for part in parts[:SAMPLE_SHEETS]
            if self._package.has(part)
            for row in islice(self._stream(part, "row"), SAMPLE_ROWS)
            for cell in row.iterchildren("{*}c")
        )
        return (_rich_text(inline) for cell in cells if (inline := child(cell, "is")) is not None)

    def _read_styles(self) -> list[str]:
        """The language of the program by the name of the normal style, if any. Fills the fonts, the codes and
        the struck ones of the styles."""
        part = self._package.target(self._part, "styles")
        if not part or not self._package.has(part):
            return []
        root = self._package.tree(part)
        codes = dict(BUILT_IN)
        for format_ in root.iter("{*}numFmt"):
            with suppress(ValueError):
                codes[int(format_.get("numFmtId", ""))] = format_.get("formatCode", "")
        fonts = child(root, "fonts")
        names = [value(font, "name") or "" for font in (() if fonts is None else fonts)]
        are_struck = [is_on(font, "strike") for font in (() if fonts is None else fonts)]
        styles = child(root, "cellXfs")
        for index, style in enumerate(() if styles is None else styles.iter("{*}xf")):
            with suppress(ValueError):
                self._codes[str(index)] = codes.get(int(style.get("numFmtId", "")), "")
            with suppress(ValueError, IndexError):
                font = int(style.get("fontId", ""))
                self._fonts[str(index)] = names[font]
                self._struck |= {str(index)} if are_struck[font] else set()
        named = (style.get("name") for style in root.iter("{*}cellStyle") if style.get("builtinId") == "0")
        return [LANGUAGE_OF_STYLE[name] for name in named if name in LANGUAGE_OF_STYLE]

    def _stream(self, part: str, *names: str) -> Iterator[Any]:
        """The elements of these names, one at a time."""
        if not self._package.has(part):
            raise UnreadableDocument
        with self._package.archive.open(self._package.name(part)) as file:
            events = etree.iterparse(
                file, tag=[f"{{*}}{name}" for name in names], resolve_entities=False, no_network=True,
                load_dtd=False, huge_tree=False,
            )  # fmt: skip
            try:
                for _, element in events:
                    refuse_entities(element)
                    # The content of alternatives for older programs is there twice.
                    if next(element.iterancestors("{*}Fallback"), None) is None:
                        yield element
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
            except etree.XMLSyntaxError:
                raise UnreadableDocument from None

    # -- a sheet -----------------------------------------------------------------------------------------

    def _sheet(self, part: str) -> list[str]:
        sheet = Sheet()
        row_number, margins = 0, list[str]()
        for element in self._stream(part, *_SHEET_PARTS):
            name = local(element)
            sheet.has_hidden |= name in ("col", "row") and element.get("hidden") in ("1", "true")
            if name == "row":
                number = element.get("r", "")
                row_number = int(number) if number.isdecimal() else row_number + 1
                self._read_row(element, row_number, sheet)
            elif name == "mergeCell":
                if area := _area(element.get("ref", "")):
                    sheet.merges.append(area)
            elif name == "drawing":
                sheet.drawings.append(attribute(element, "id") or "")
            elif name == "headerFooter":
                margins += [text for text in headers_and_footers(element) if text not in self._margins]
            elif name == "oleObject":
                self._objects += 1
        self._margins |= set(margins)
        self._hidden += sheet.has_hidden and bool(sheet.rows)
        targets = self._package.targets(part)
        grouped = repeat_merged(sheet)
        texts = list(tables(sheet, grouped))
        texts += self._comments(targets, sheet)
        controls = [
            text
            for kind, drawing in targets.values()
            if kind == "vmlDrawing" and self._package.has(drawing)
            for text in form_controls(self._package, drawing)
        ]
        labels = {label.lstrip("☒☐ ") for label in controls}
        for drawing in sheet.drawings:
            drawn = self._drawing(targets.get(drawing, ("", ""))[1])
            texts += [text for text in drawn if text not in labels]
        return list(filter(None, [*texts, "\n".join(controls), *margins]))

    def _read_row(self, element: Any, number: int, sheet: Sheet) -> None:
        row: Row = {}
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
                is_struck = cell.get("s", "0") in self._struck and not self._is_rich(cell)
                row[column] = struck(text) if is_struck else text
                if is_typed:
                    sheet.typed.add(number)
        if row:
            sheet.rows.setdefault(number, {}).update(row)

    def _shown(self, cell: Any) -> tuple[str, bool]:
        """The cell's text, and whether it is a number, a date or a truth value."""
        kind, style = cell.get("t", "n"), cell.get("s", "0")
        text = next((stored.text for stored in cell.iterchildren("{*}v")), None) or ""
        code, font = self._codes.get(style, ""), self._fonts.get(style)
        if kind == "inlineStr":
            inline = child(cell, "is")
            is_rich = self._is_rich(cell)
            text = "" if inline is None else _rich_text(inline, is_struck=is_rich and style in self._struck)
            font = None if is_rich else font
        elif not text:
            if (formula := child(cell, "f")) is not None and kind != "str":
                self._formulas += 1
                formula_text = one_line(formula.text or "")[:FORMULA_CHARACTERS]
                return (f"={formula_text}" if formula_text else ""), False
            return "", False
        if text:
            self._values += 1
        if kind == "s":
            if not text.isdecimal() or int(text) >= len(self._texts):
                raise UnreadableDocument
            index = int(text)
            text = (self._rich if index in self._rich and style in self._struck else self._texts)[index]
            font = font if index not in self._rich else None
        elif kind == "b":
            return ("TRUE" if text.strip() == "1" else "FALSE"), True
        elif kind == "n":
            with suppress(ValueError, ArithmeticError):
                number = float(text)
                return shown_number(
                    number, code, from_1904=self._from_1904, separators=self._separators
                ), True
        elif kind == "d":
            return text.removesuffix("T00:00:00").replace("T", " "), True
        elif kind == "e":
            text = self._rich_value(cell.get("vm", ""), text)
        elif kind == "str":
            text = unescaped(text)
        return shown_text(symbols(text, font), code), False

    def _is_rich(self, cell: Any) -> bool:
        """Whether the text of the cell has fonts of its own."""
        if cell.get("t") == "inlineStr":
            return child(child(cell, "is"), "r") is not None
        number = getattr(child(cell, "v"), "text", None) or ""
        return cell.get("t") == "s" and number.isdecimal() and int(number) in self._rich

    def _rich_value(self, number: str, text: str) -> str:
        """The text of a rich value, in place of the error that the cell has for older programs."""
        index = int(number) - 1 if number.isdecimal() else -1
        if not 0 <= index < len(self._rich_values):
            return text
        kind, fields = self._rich_values[index]
        if kind.lower().endswith("image"):
            self._pictures += 1
            return f"Picture: {fields['Text']}" if fields.get("Text") else ""
        return fields.get("_DisplayString") or text

    def _comments(self, targets: Mapping[str, tuple[str, str]], sheet: Sheet) -> Iterator[str]:
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
        for element in self._package.tree(part).iter(*_DRAWN):
            name = local(element)
            if name in ("pic", "contentPart"):
                self._pictures += 1
                yield alternative_text(element)
            elif name == "txBody":
                yield "\n".join(drawn_paragraphs(element))
            elif attribute(element, "id" if name == "chart" else "dm"):
                text = graphic(self._package, targets, element, self._separators)
                self._pictures += name == "chart" and not text
                yield text


def _rich_text(item: Any, *, is_struck: bool = False) -> str:
    """The text of runs, without the pronunciation of Asian characters. `is_struck`: of runs without
    properties, which are those of the cell."""
    text = ScriptedText()
    for element in item:
        name = local(element)
        if name == "t":
            text.add(unescaped(element.text or ""))
        elif name == "r":
            properties = child(element, "rPr")
            aligned = value(properties, "vertAlign")
            content = child(element, "t")
            kind = {"superscript": "sup", "subscript": "sub"}.get(aligned or "", "")
            stored = unescaped((content.text if content is not None else None) or "")
            of_run = is_struck if properties is None else is_on(properties, "strike")
            text.add(symbols(stored, value(properties, "rFont")), kind, of_run)
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
