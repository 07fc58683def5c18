"""Parser of Word files."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.html_xml import html
from shared.ingestion.parsers.markdown_table import titled_table
from shared.ingestion.parsers.office_xml import (
    Package,
    ScriptedText,
    alternative_text,
    attribute,
    child,
    chosen,
    drawn_paragraphs,
    equation,
    graphic,
    is_on,
    local,
    value,
)
from shared.ingestion.parsers.parsed_file import ParsedFile, counted, open_archive, read_member
from shared.ingestion.parsers.word_fields import form_value, symbol
from shared.ingestion.parsers.word_numbering import Numbering
from shared.ingestion.parsers.word_styles import Style, styles_of
from shared.text.normalize import one_line
from shared.text.roman_numerals import roman
from shared.text.superscripts import script

MAIN_PART = "word/document.xml"
# Elements with content of their own in a paragraph, and around blocks.
_WRAPPERS = {"ins", "moveTo", "hyperlink", "smartTag", "customXml", "fldSimple", "bdo", "dir", "sdt",
             "sdtContent", "oMathPara"}  # fmt: skip
# The words of a header or footer that has the number of the page alone.
_PAGE_WORDS = {
    "page", "of", "seite", "von", "página", "pagina", "de", "di", "side", "sida", "av", "af", "strona", "z",
}  # fmt: skip
# Half points above or below the line from which a short raised or lowered text is a script.
_RAISED, _SCRIPT_CHARACTERS = 4, 4


@dataclass(frozen=True, slots=True)
class _Block:
    """mark: what Markdown has before the text of a heading or of a list item without a number."""

    text: str
    mark: str = ""
    is_item: bool = False


def docx(data: bytes) -> ParsedFile:
    with open_archive(data) as archive:
        package = Package(archive)
        return _Document(package).parsed()


class _Document:
    def __init__(self, package: Package) -> None:
        self._package = package
        self._part = package.target("", "officeDocument") or MAIN_PART
        self._targets = package.targets(self._part)
        self._main_targets = self._targets
        self._styles = styles_of(self._related("styles"))
        self._numbering = Numbering(self._related("numbering"))
        self._notes = {kind: self._by_id(f"{kind}s", kind) for kind in ("footnote", "endnote", "comment")}
        # Footnotes, endnotes and comments of the paragraphs since the last block, and their numbers.
        self._pending: list[str] = []
        self._note_counts = {"footnote": 0, "endnote": 0}
        # Drawn text, charts and diagrams, which follow their paragraph.
        self._drawn: list[_Block] = []
        self._pictures = self._objects = self._symbols = self._documents = 0

    def parsed(self) -> ParsedFile:
        body = child(self._package.tree(self._part), "body")
        if body is None:
            raise UnreadableDocument
        headers, footers = self._headers_and_footers(body)
        content = list(self._blocks(body))
        notes = [
            *counted(
                self._pictures,
                "picture",
                "pictures",
                "was not read." if self._pictures == 1 else "were not read.",
            ),
            *counted(self._objects, "embedded file was", "embedded files were", "not read."),
            *counted(
                self._documents,
                "linked part of the document was",
                "linked parts of the document were",
                "not read.",
            ),
            *counted(self._symbols, "symbol", "symbols", "of a special font could not be read."),
        ]
        text = _joined([*headers, *content, *footers])
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

    def _headers_and_footers(self, body: Any) -> tuple[list[_Block], list[_Block]]:
        """The text of each header and footer that Word shows, once."""
        settings = self._related("settings")
        has_even = settings is not None and is_on(settings, "evenAndOddHeaders")
        blocks: dict[str, list[_Block]] = {"header": [], "footer": []}
        seen = set()
        for section in body.iter("{*}sectPr"):
            for reference in section.iter("{*}headerReference", "{*}footerReference"):
                kind, part = self._main_targets.get(attribute(reference, "id") or "", ("", ""))
                of = attribute(reference, "type", "default")
                if (of == "first" and not is_on(section, "titlePg")) or (of == "even" and not has_even):
                    continue
                if kind not in blocks or not self._package.has(part):
                    continue
                pictures = self._pictures
                self._targets = self._package.targets(part)
                text = _joined(self._blocks(self._package.tree(part)))
                # Logos are no content.
                self._targets, self._pictures = self._main_targets, pictures
                if text not in seen and not _is_page_number(text):
                    blocks[kind].append(_Block(text))
                seen.add(text)
        return blocks["header"], blocks["footer"]

    # -- blocks ------------------------------------------------------------------------------------------

    def _blocks(self, parent: Any) -> Iterator[_Block]:
        carried = ""
        for element in _elements(parent):
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
                joins_next = _joins_next(child(element, "pPr"))
                carried = content if joins_next else ""
                if not joins_next:
                    yield from self._paragraph(element, content)
            else:
                continue
            if not carried:
                yield from self._after()
        if carried.strip():
            yield _Block(one_line(carried))
        yield from self._after()

    def _after(self) -> Iterator[_Block]:
        drawn, notes = self._drawn, self._pending
        self._drawn, self._pending = [], []
        yield from drawn
        yield from map(_Block, notes)

    def _paragraph(self, element: Any, content: str) -> Iterator[_Block]:
        properties = child(element, "pPr")
        style_id = value(properties, "pStyle") or ""
        style = self._styles.get(style_id, Style())
        number = self._number(properties, style_id, style)
        lines = [line for line in map(one_line, content.split("\n")) if line]
        if not lines:
            return
        own_outline = value(properties, "outlineLvl")
        heading = style.heading
        if own_outline and own_outline.isdigit():
            heading = int(own_outline) + 1 if int(own_outline) < 9 else None
        if heading:
            yield _Block(" ".join(filter(None, [number, *lines])), "#" * min(heading, 6) + " ")
        elif number is None:
            yield _Block("\n".join(lines))
        else:
            indent = "" if number else "  " * self._level(properties, style_id, style)
            text = f"\n{indent}  ".join(lines)
            yield _Block(
                f"{number} {text}" if number else text, "" if number else f"{indent}- ", is_item=True
            )

    def _number(self, properties: Any, style_id: str, style: Style) -> str | None:
        list_id = value(child(properties, "numPr"), "numId") or style.list_id
        if not list_id:
            return None
        return self._numbering.next(list_id, self._level(properties, style_id, style))

    def _level(self, properties: Any, style_id: str, style: Style) -> int:
        own = value(child(properties, "numPr"), "ilvl")
        if own and own.isdigit():
            return int(own)
        if child(child(properties, "numPr"), "numId") is None and style.list_id:
            of_style = self._numbering.level_of_style(style.list_id, style_id)
            return style.level or 0 if of_style is None else of_style
        return 0

    def _table(self, element: Any) -> Iterator[_Block]:
        rows: list[list[str]] = []
        grouped = set()
        cells = [(row, list(_cells(row))) for row in _rows(element)]
        # A frame around text is no table.
        if len(cells) == 1 and len(cells[0][1]) == 1:
            yield from self._blocks(cells[0][1][0])
            return
        for row, of_row in cells:
            skipped = value(child(row, "trPr"), "gridBefore") or ""
            texts = [""] * (int(skipped) if skipped.isdigit() else 0)
            for cell in of_row:
                properties = child(cell, "tcPr")
                merged = child(properties, "vMerge")
                text = _cell_text(self._blocks(cell))
                if merged is not None and attribute(merged, "val") != "restart" and rows:
                    text = text or (rows[-1][len(texts)] if len(texts) < len(rows[-1]) else "")
                span = value(properties, "gridSpan") or ""
                width = min(int(span), 1000) if span.isdigit() else 1
                if width > 1:
                    grouped.add(len(rows))
                texts += [text] * width
            rows.append(texts)
        yield _Block(titled_table(rows, grouped))

    def _imported(self, element: Any) -> Iterator[_Block]:
        """A part in another format, which Word shows as part of the document."""
        _, part = self._targets.get(attribute(element, "id") or "", ("", ""))
        if part.lower().endswith((".htm", ".html", ".xhtml")) and self._package.has(part):
            page = html(read_member(self._package.archive, self._package.name(part)))
            yield from (_Block(text) for _, text in page.parts)
        else:
            self._documents += 1

    # -- text of a paragraph -----------------------------------------------------------------------------

    def _text(self, paragraph: Any) -> str:
        text = ScriptedText()
        for element in _inlines(paragraph):
            if local(element) == "oMath":
                text.add(f" {equation(element)} ")
            else:
                self._add_run(element, text)
        return text.text()

    def _add_run(self, run: Any, text: ScriptedText) -> None:
        properties = child(run, "rPr")
        if is_on(properties, "vanish"):
            return
        kind = self._raised(run, properties)
        for element in run:
            name = local(element)
            if name == "t":
                text.add(element.text or "", kind)
            elif name in ("tab", "ptab"):
                text.add("\t")
            elif name in ("br", "cr"):
                text.add("\n")
            elif name == "noBreakHyphen":
                text.add("-", kind)
            elif name == "sym":
                text.add(self._symbol(element), kind)
            elif name in ("footnoteReference", "endnoteReference"):
                self._add_note(element, name.removesuffix("Reference"), text)
            elif name == "commentReference":
                self._add_comment(element)
            elif name == "fldChar":
                text.add(form_value(element))
            elif name in ("drawing", "pict", "object", "AlternateContent"):
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

    def _symbol(self, element: Any) -> str:
        shown = symbol(attribute(element, "font") or "", attribute(element, "char") or "")
        self._symbols += shown is None
        return shown or ""

    def _add_note(self, reference: Any, kind: str, text: ScriptedText) -> None:
        note = self._notes[kind].get(attribute(reference, "id") or "")
        if note is None:
            return
        if attribute(reference, "customMarkFollows") in ("1", "true", "on"):
            mark = ""
        else:
            self._note_counts[kind] += 1
            number = self._note_counts[kind]
            mark = str(number) if kind == "footnote" else roman(number).lower()
            text.add(mark, "sup")
        content = self._apart(note)
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
        content = _cell_text(self._blocks(element))
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
        for inner in _drawn_elements(element):
            name = local(inner)
            if name == "txbxContent":
                pending, self._pending, drawn, self._drawn = self._pending, [], self._drawn, []
                blocks = list(self._blocks(inner))
                self._pending, self._drawn = pending, [*drawn, *blocks]
            elif name == "txBody":
                self._drawn += map(_Block, drawn_paragraphs(inner))
            elif name in ("chart", "relIds"):
                self._drawn.append(_Block(graphic(self._package, self._targets, inner)))
            elif name in ("blip", "imagedata") and attribute(inner, "embed", attribute(inner, "id")):
                self._pictures += 1
                self._drawn.append(_Block(alternative_text(element)))


def _is_page_number(text: str) -> bool:
    """Whether a header or footer has no more than the number of the page, perhaps of how many."""
    words, numbers = re.findall(r"[^\W\d]+", text.lower()), re.findall(r"\d+", text)
    is_pair = (
        len(numbers) == 2 and (bool(words) or "/" in text) and all(len(number) < 4 for number in numbers)
    )
    return _PAGE_WORDS.issuperset(words) and (len(numbers) < 2 or is_pair)


def _joined(blocks: Iterable[_Block]) -> str:
    """The blocks with empty lines between them, except between the items of a list."""
    made: list[str] = []
    was_item = False
    for block in blocks:
        if block.text.strip():
            made += ["\n" if was_item and block.is_item else "\n\n"] if made else []
            made += [block.mark, block.text]
            was_item = block.is_item
    return "".join(made)


def _cell_text(blocks: Iterable[_Block]) -> str:
    """The blocks on one line. A table in a cell is written as its rows."""
    texts = []
    for block in blocks:
        rows = block.text.split("\n") if block.text.startswith("| ") else []
        cells = [
            row[2:-2].replace("\\|", "|").replace(" | ", ", ") for row in rows if not row.startswith("| ---")
        ]
        texts.append("; ".join(cells) if rows else one_line(block.text))
    return (
        "; ".join(filter(None, texts))
        if any("|" in text for text in texts)
        else " ".join(filter(None, texts))
    )


def _elements(parent: Any) -> Iterator[Any]:
    """Paragraphs, tables and other blocks, those in content controls and insertions included."""
    for element in parent:
        name = local(element)
        if name in _WRAPPERS:
            yield from _elements(element)
        elif name == "AlternateContent":
            for inner in chosen(element):
                yield from _elements([inner])
        elif name:
            yield element


def _rows(table: Any) -> Iterator[Any]:
    for row in _elements(table):
        if local(row) == "tr" and child(child(row, "trPr"), "del") is None:
            yield row


def _cells(row: Any) -> Iterator[Any]:
    for cell in _elements(row):
        if local(cell) == "tc":
            yield cell


def _joins_next(properties: Any) -> bool:
    """Whether the paragraph is one with the next: its mark is deleted, or it is a large initial letter."""
    mark = child(properties, "rPr")
    is_initial = attribute(child(properties, "framePr"), "dropCap", "none") != "none"
    return is_initial or child(mark, "del") is not None or child(mark, "moveFrom") is not None


def _inlines(parent: Any) -> Iterator[Any]:
    """Runs and equations of a paragraph, without deletions."""
    for element in parent:
        name = local(element)
        if name in ("r", "oMath"):
            # A run within ruby text is a run of its base.
            base = element.find("{*}ruby/{*}rubyBase") if name == "r" else None
            if base is not None:
                yield from _inlines(base)
            else:
                yield element
        elif name in _WRAPPERS:
            yield from _inlines(element)
        elif name == "AlternateContent":
            yield from _inlines(chosen(element))


def _drawn_elements(element: Any) -> Iterator[Any]:
    """The elements in a drawing that have content, the first of alternatives only."""
    for inner in chosen(element) if local(element) == "AlternateContent" else element:
        name = local(inner)
        if name in ("txbxContent", "txBody", "relIds", "blip", "imagedata") or (
            name == "chart" and attribute(inner, "id")
        ):
            yield inner
        elif name:
            yield from _drawn_elements(inner)
