"""Parsers of Word, PowerPoint and Excel files."""

import io
import zipfile
from collections.abc import Iterator
from itertools import chain
from typing import Any

import mammoth
from openpyxl import load_workbook

from shared.ingestion.parsers.html_xml import markdown, tree
from shared.ingestion.parsers.markdown_table import MAX_CELLS, table
from shared.ingestion.parsers.parsed_file import ParsedFile, open_archive, own_title, read_member, size_error
from shared.library_patches.pptx import replace_missing_pillow
from shared.text.normalize import one_line

replace_missing_pillow()
from pptx import Presentation  # noqa: E402

STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"


def docx(data: bytes) -> ParsedFile:
    with open_archive(data) as archive:
        title = _title_of(archive)
    # The file has no pages: a printer makes them.
    html = mammoth.convert_to_html(io.BytesIO(data), style_map=STYLES, convert_image=lambda _: []).value
    return ParsedFile([(None, markdown(html))], title)


def pptx(data: bytes) -> ParsedFile:
    with open_archive(data) as archive:
        title = _title_of(archive)
    presentation = Presentation(io.BytesIO(data))
    parts: list[tuple[int | None, str]] = []
    for number, slide in enumerate(presentation.slides, 1):
        heading = slide.shapes.title
        texts = [f"# {one_line(heading.text_frame.text)}"] if heading is not None and heading.text else []
        texts += chain.from_iterable(_of_shape(shape) for shape in slide.shapes if shape != heading)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
            texts += [f"Notes: {notes.text}"] if notes.text.strip() else []
        parts.append((number, "\n\n".join(texts)))
    return ParsedFile(parts, title)


def _of_shape(shape: Any) -> Iterator[str]:
    if shape.shape_type is not None and hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _of_shape(inner)
    elif getattr(shape, "has_table", False):
        yield table([cell.text for cell in row.cells] for row in shape.table.rows)
    elif getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
        yield "\n".join(
            f"{'  ' * (paragraph.level - 1)}- {text}" if paragraph.level else text
            for paragraph in shape.text_frame.paragraphs
            if (text := one_line(paragraph.text))
        )


def xlsx(data: bytes) -> ParsedFile:
    open_archive(data).close()
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    parts: list[tuple[int | None, str]] = []
    cells = 0
    for number, sheet in enumerate(book.worksheets, 1):
        rows: list[list[str]] = []
        # The declared size may be wrong.
        sheet.reset_dimensions()
        for row in sheet.iter_rows(values_only=True):
            cells += 1 + len(row)
            if cells > MAX_CELLS:
                raise size_error()
            rows.append([_value(cell) for cell in row])
        parts.append((number, f"# {sheet.title}\n\n{table(rows)}"))
    return ParsedFile(parts)


def _value(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).removesuffix(" 00:00:00")


def _title_of(archive: zipfile.ZipFile) -> str | None:
    if "docProps/core.xml" not in archive.namelist():
        return None
    titles = tree(read_member(archive, "docProps/core.xml")).xpath("//*[local-name()='title']/text()")
    return own_title(titles[0]) if titles else None
