"""Parser of Word files."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.markdown_table import titled_table
from shared.ingestion.parsers.number_separators import separators_of_package
from shared.ingestion.parsers.office_drawings import (
    ScriptedText,
    alternative_text,
    drawn_paragraphs,
    graphic,
)
from shared.ingestion.parsers.office_equations import equation
from shared.ingestion.parsers.office_xml import (
    Package,
    attribute,
    child,
    is_on,
    is_page_number,
    local,
    value,
)
from shared.ingestion.parsers.parsed_file import (
    ParsedFile,
    clause_number,
    counted,
    is_sentence,
    open_archive,
    parser_of,
    read_member,
)
from shared.ingestion.parsers.symbol_fonts import symbol, symbols, unread_symbols
from shared.ingestion.parsers.word_blocks import Block, cell_text, joined
from shared.ingestion.parsers.word_elements import (
    cells,
    drawn_elements,
    elements,
    form_value,
    inlines,
    joins_next,
    rows,
    texts_of_fields,
)
from shared.ingestion.parsers.word_numbering import Numbering
from shared.ingestion.parsers.word_styles import Style, font_of, styles_of, switches_of
from shared.text.normalize import one_line
from shared.text.roman_numerals import roman
from shared.text.superscripts import script

MAIN_PART = "word/document.xml"
# Parsers of the formats that a document may contain as a part, by the ends of their names.
_IMPORTED = {"htm": "html", "html": "html", "xhtml": "html", "txt": "text", "docx": "docx"}
# Half points above or below the line from which a short raised or lowered text is a script.
_RAISED, _SCRIPT_CHARACTERS = 4, 4
# The bit of a table's look (ECMA-376, 17.4.55) for a first row with a style of its own.
FIRST_ROW = 0x20


def docx(data: bytes) -> ParsedFile:
    """Word: text with the automatic numbers of headings and clauses; headers, footers and watermarks once;
    footnotes, endnotes, comments; tracked changes as accepted; text boxes; tables; charts and diagrams;
    equations; inserted Word, HTML and text documents

    Noted: pictures; charts without stored data; equations of the old editor, some of fields; embedded files;
    inserted documents of other formats; symbols of special fonts
    Not read: page numbers, deleted and hidden text, logos in headers"""
    with open_archive(data) as archive:
        package = Package(archive)
        return _Document(package).parsed()


class _Document:
    def __init__(self, package: Package) -> None:
        self._package = package
        self._part = package.target("", "officeDocument") or MAIN_PART
        self._targets = package.targets(self._part)
        self._main_targets = self._targets
        self._separators = separators_of_package(package)
        self._styles = styles_of(self._related("styles"))
        self._numbering = Numbering(self._related("numbering"))
        self._notes = {kind: self._by_id(f"{kind}s", kind) for kind in ("footnote", "endnote", "comment")}
        # Footnotes, endnotes and comments of the paragraphs since the last block, and their numbers.
        self._pending: list[str] = []
        self._marks: dict[str, dict[str, str]] = {"footnote": {}, "endnote": {}}
        # Drawn text, charts and diagrams, which follow their paragraph.
        self._drawn: list[Block] = []
        self._pictures = self._objects = self._documents = self._equations = 0
        self._notes_of_imported: list[str] = []

    def parsed(self) -> ParsedFile:
        body = child(self._package.tree(self._part), "body")
        if body is None:
            raise UnreadableDocument
        headers, footers = self._headers_and_footers(body)
        text = joined([*headers, *self._blocks(body), *footers])
        notes = [
            *counted(
                self._pictures,
                "picture",
                "pictures",
                "was not read." if self._pictures == 1 else "were not read.",
            ),
            *counted(self._equations, "equation in a field was", "equations in fields were", "not read."),
            *counted(self._objects, "embedded file was", "embedded files were", "not read."),
            *counted(
                self._documents,
                "linked part of the document was",
                "linked parts of the document were",
                "not read.",
            ),
            *self._notes_of_imported,
            *unread_symbols(text),
        ]
        if self._pictures and not text:
            raise UnreadableDocument(
                "The file has pictures and no text. Upload a file with text, or the pictures one by one.",
                code="no_text",
            )
        return ParsedFile([(None, text)], self._package.title(), notes=notes)

    def _related(self, kind: str) -> Any:
        part = self._package.target(self._part, kind)
        return self._package.tree(part) if part and self._package.has(part) else None

    def _by_id(self, kind: str, name: str) -> dict[str, Any]:
        root = self._related(kind)
        return (
            {} if root is None else {attribute(note, "id") or "": note for note in root.iter(f"{{*}}{name}")}
        )

    def _headers_and_footers(self, body: Any) -> tuple[list[Block], list[Block]]:
        """The text of each header and footer that Word shows, once."""
        settings = self._related("settings")
        has_even = settings is not None and is_on(settings, "evenAndOddHeaders")
        blocks: dict[str, list[Block]] = {"header": [], "footer": []}
        # Of each kind and type; a section without one has that of the section before.
        parts: dict[tuple[str, str], str] = {}
        seen = set()
        for section in body.iter("{*}sectPr"):
            for reference in section.iter("{*}headerReference", "{*}footerReference"):
                kind, part = self._main_targets.get(attribute(reference, "id") or "", ("", ""))
                if kind in blocks and self._package.has(part):
                    parts[kind, attribute(reference, "type", "default") or ""] = part
            for (kind, of), part in parts.items():
                if (of == "first" and not is_on(section, "titlePg")) or (of == "even" and not has_even):
                    continue
                if part in seen:
                    continue
                pictures = self._pictures
                self._targets = self._package.targets(part)
                text = joined(self._blocks(self._package.tree(part)))
                # Logos are no content.
                self._targets, self._pictures = self._main_targets, pictures
                if text not in seen and not is_page_number(text):
                    blocks[kind].append(Block(text))
                seen |= {part, text}
        return blocks["header"], blocks["footer"]

    # -- blocks ------------------------------------------------------------------------------------------

    def _blocks(self, parent: Any) -> Iterator[Block]:
        carried = ""
        for element in elements(parent):
            name = local(element)
            if name == "tbl":
                yield from self._table(element)
            elif name == "altChunk":
                yield from self._imported(element)
            elif name == "subDoc":
                self._documents += 1
            elif name == "p":
                content = carried + self._text(element)
                # A paragraph whose mark is deleted has no number of its own.
                is_joined = joins_next(child(element, "pPr"))
                carried = content if is_joined else ""
                if not is_joined:
                    yield from self._paragraph(element, content)
            else:
                continue
            if not carried:
                yield from self._after()
        if carried.strip():
            yield Block(one_line(carried))
        yield from self._after()

    def _after(self) -> Iterator[Block]:
        drawn, notes = self._drawn, self._pending
        self._drawn, self._pending = [], []
        yield from drawn
        yield from map(Block, notes)

    def _paragraph(self, element: Any, content: str) -> Iterator[Block]:
        properties = child(element, "pPr")
        style_id = value(properties, "pStyle") or ""
        style = self._styles.get(style_id, Style())
        number = self._number(properties, style_id, style)
        lines = [line for line in map(one_line, content.split("\n")) if line]
        if not lines:
            return
        own_outline = value(properties, "outlineLvl")
        heading = style.heading
        if own_outline and own_outline.isdecimal():
            heading = int(own_outline) + 1 if int(own_outline) < 9 else None
        if heading:
            title = " ".join(filter(None, [number, *lines]))
            # Contracts give their clauses the styles of headings.
            yield Block(title, "" if is_sentence(title) else "#" * min(heading, 6) + " ")
            return
        level = self._level(properties, style_id, style) if number is not None else 0
        indent = "" if number else "  " * level
        text = ("\n" if number is None else f"\n{indent}  ").join(lines)
        text = f"{number} {text}" if number else text
        # An automatic number is no amount.
        clause = clause_number(text.replace(" ", ". ", 1) if number and number.isdecimal() else text)
        is_clause = clause and number != "" and self._is_bold(element, style)
        yield Block(
            text,
            f"{indent}- " if number == "" else "",
            is_item=number is not None,
            clause=(level or clause.count(".")) + 2 if is_clause else 0,
        )

    def _is_bold(self, paragraph: Any, style: Style) -> bool:
        runs = (run for run in inlines(paragraph) if "".join(run.itertext()).strip())
        return all(switches_of(child(run, "rPr"), self._styles, style).get("b") for run in runs)

    def _number(self, properties: Any, style_id: str, style: Style) -> str | None:
        list_id = value(child(properties, "numPr"), "numId") or style.list_id
        if not list_id:
            return None
        return self._numbering.next(list_id, self._level(properties, style_id, style))

    def _level(self, properties: Any, style_id: str, style: Style) -> int:
        own = value(child(properties, "numPr"), "ilvl")
        if own and own.isdecimal():
            return int(own)
        if child(child(properties, "numPr"), "numId") is None and style.list_id:
            of_style = self._numbering.level_of_style(style.list_id, style_id)
            return style.level or 0 if of_style is None else of_style
        return 0

    def _table(self, element: Any) -> Iterator[Block]:
        lines: list[list[str]] = []
        grouped = set()
        cells_of_rows = [(row, list(cells(row))) for row in rows(element)]
        # A frame around text is no table.
        if len(cells_of_rows) == 1 and len(cells_of_rows[0][1]) == 1:
            yield from self._blocks(cells_of_rows[0][1][0])
            return
        for row, of_row in cells_of_rows:
            skipped = value(child(row, "trPr"), "gridBefore") or ""
            texts = [""] * (int(skipped) if skipped.isdecimal() else 0)
            for cell in of_row:
                properties = child(cell, "tcPr")
                merged = child(properties, "vMerge")
                text = cell_text(self._blocks(cell))
                if merged is not None and attribute(merged, "val") != "restart" and lines:
                    text = text or (lines[-1][len(texts)] if len(texts) < len(lines[-1]) else "")
                span = value(properties, "gridSpan") or ""
                width = min(int(span), 1000) if span.isdecimal() else 1
                if width > 1:
                    grouped.add(len(lines))
                texts += [text] * width
            lines.append(texts)
        has_labels = not _has_marked_header(element) and all(
            len(of_row) == 2 and self._is_bold_cell(of_row[0]) and not self._is_bold_cell(of_row[1])
            for _, of_row in cells_of_rows
        )
        yield Block(titled_table(lines, grouped, is_named=False if has_labels else None))

    def _is_bold_cell(self, cell: Any) -> bool:
        """Whether all text of the cell is bold."""
        paragraphs = [
            paragraph for paragraph in cell.iterchildren("{*}p") if "".join(paragraph.itertext()).strip()
        ]
        styles = (value(child(paragraph, "pPr"), "pStyle") or "" for paragraph in paragraphs)
        return bool(paragraphs) and all(
            self._is_bold(paragraph, self._styles.get(style, Style()))
            for paragraph, style in zip(paragraphs, styles, strict=True)
        )

    def _imported(self, element: Any) -> Iterator[Block]:
        """A part in another format, which Word shows as part of the document."""
        _, part = self._targets.get(attribute(element, "id") or "", ("", ""))
        kind = _IMPORTED.get(part.lower().rpartition(".")[2])
        if kind is None or not self._package.has(part):
            self._documents += 1
            return
        imported = parser_of(kind)(read_member(self._package.archive, self._package.name(part)))
        self._notes_of_imported += imported.notes
        yield from (Block(text) for _, text in imported.parts)

    # -- text of a paragraph -----------------------------------------------------------------------------

    def _text(self, paragraph: Any) -> str:
        text = ScriptedText()
        style = self._styles.get(value(child(paragraph, "pPr"), "pStyle") or "", Style())
        of_fields = texts_of_fields(paragraph)
        for element in inlines(paragraph):
            if local(element) == "oMath":
                text.add(f" {equation(element)} ")
            else:
                self._add_run(element, style, text, of_fields)
        return text.text()

    def _add_run(
        self, run: Any, of_paragraph: Style, text: ScriptedText, of_fields: Mapping[Any, str]
    ) -> None:
        properties = child(run, "rPr")
        font = font_of(properties, self._styles, of_paragraph)
        switches = switches_of(properties, self._styles, of_paragraph)
        if switches.get("vanish"):
            return
        is_struck = bool(switches.get("strike") or switches.get("dstrike"))
        kind = self._raised(run, properties)
        for element in run:
            name = local(element)
            if element in of_fields:
                # Fields whose result Word does not store.
                of_field = of_fields[element]
                text.add(of_field, "" if of_field.startswith("$") else kind, is_struck)
                self._equations += of_field == "" and name == "instrText"
            elif name == "t":
                text.add(symbols(element.text or "", font), kind, is_struck)
            elif name in ("tab", "ptab"):
                text.add("\t")
            elif name in ("br", "cr"):
                text.add("\n")
            elif name == "noBreakHyphen":
                text.add("-", kind, is_struck)
            elif name in ("sym", "symEx"):
                text.add(symbol(element), kind, is_struck)
            elif name in ("footnoteReference", "endnoteReference"):
                self._add_note(element, name.removesuffix("Reference"), text)
            elif name == "commentReference":
                self._add_comment(element)
            elif name == "fldChar":
                text.add(form_value(element))
            elif name in ("drawing", "pict", "object"):
                self._draw(element)

    def _raised(self, run: Any, properties: Any) -> str:
        aligned = value(properties, "vertAlign")
        if aligned in ("superscript", "subscript"):
            return "sup" if aligned == "superscript" else "sub"
        with suppress(TypeError, ValueError):
            height = int(value(properties, "position") or 0)
            if abs(height) >= _RAISED and len("".join(run.itertext())) <= _SCRIPT_CHARACTERS:
                return "sup" if height > 0 else "sub"
        return "" if aligned else self._styles.get(value(properties, "rStyle") or "", Style()).raised

    def _add_note(self, reference: Any, kind: str, text: ScriptedText) -> None:
        id_, marks = attribute(reference, "id") or "", self._marks[kind]
        if id_ not in self._notes[kind]:
            return
        is_new = id_ not in marks
        if is_new and attribute(reference, "customMarkFollows") in ("1", "true", "on"):
            marks[id_] = ""
        elif is_new:
            number = sum(map(bool, marks.values())) + 1
            marks[id_] = str(number) if kind == "footnote" else roman(number).lower()
        mark = marks[id_]
        text.add(mark, "sup" if mark else "")
        # The note follows its first reference, and may refer to itself.
        if not is_new:
            return
        content = self._apart(self._notes[kind][id_])
        self._pending.append(f"{script('sup', mark, 'x')} {content}".strip())

    def _add_comment(self, reference: Any) -> None:
        comment = self._notes["comment"].get(attribute(reference, "id") or "")
        if comment is not None and (content := self._apart(comment)):
            author = one_line(attribute(comment, "author") or "")
            self._pending.append(f"Comment{f' by {author}' if author else ''}: {content}")

    def _apart(self, element: Any) -> str:
        """The text of a note on one line, whose own notes and drawings are not those of the paragraph."""
        pending, drawn = self._pending, self._drawn
        self._pending, self._drawn = [], []
        content = cell_text(self._blocks(element))
        self._pending, self._drawn = pending, drawn
        return content

    def _draw(self, element: Any) -> None:
        """Collect drawn text, charts and diagrams; count the pictures and embedded files."""
        if local(element) == "object":
            equations = [
                ole for ole in element.iter("{*}OLEObject") if "Equation" in (ole.get("ProgID") or "")
            ]
            self._pictures += len(equations)
            self._objects += not equations
            return
        for inner in drawn_elements(element):
            name = local(inner)
            if name == "txbxContent":
                pending, self._pending, drawn, self._drawn = self._pending, [], self._drawn, []
                blocks = list(self._blocks(inner))
                self._pending, self._drawn = pending, [*drawn, *blocks]
            elif name == "txBody":
                self._drawn += map(Block, drawn_paragraphs(inner))
            elif name in ("chart", "relIds"):
                text = graphic(self._package, self._targets, inner, self._separators)
                self._pictures += name == "chart" and not text
                self._drawn.append(Block(text))
            elif name == "textpath":
                self._drawn.append(Block(one_line(attribute(inner, "string") or "")))
            elif any(attribute(inner, name) for name in ("embed", "link", "id", "href")):
                self._pictures += 1
                self._drawn.append(Block(alternative_text(element)))


def _has_marked_header(table: Any) -> bool:
    """Whether the table marks its first row as a header, on each page or by its style."""
    look = child(child(table, "tblPr"), "tblLook")
    with suppress(ValueError):
        if int(attribute(look, "val") or "", 16) & FIRST_ROW:
            return True
    is_repeated = is_on(child(next(rows(table), None), "trPr"), "tblHeader")
    return is_repeated or attribute(look, "firstRow") in ("1", "true", "on")
