"""Parser of PDF: the text of its pages, its form and comments, and notes on unread parts."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pypdfium2
from pypdfium2 import raw

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.ocr import is_installed, text_of_page
from shared.ingestion.parsers.parsed_file import ParsedFile, counted, own_title, password_error
from shared.ingestion.parsers.pdf_annotations import (
    Annotations,
    annotations_of,
    attached_files,
    with_fields,
)
from shared.ingestion.parsers.pdf_lines import lines_of
from shared.ingestion.parsers.pdf_paragraphs import heading_levels, paragraphs_of
from shared.ingestion.parsers.pdf_pictures import Picture, Pictures, pictures_of
from shared.ingestion.parsers.pdf_running_lines import without_running_lines
from shared.ingestion.parsers.pdf_tables import Line

UNREAD = (
    "Most pages of the PDF have no text, only pictures or letters that cannot be read, and {}. "
    "Upload the text instead."
)
NO_OCR, NOTHING_FOUND = "this deployment has no OCR (tesseract)", "OCR found no text in them"
XFA = (
    "The PDF is a form in the format XFA, which only Adobe Reader shows. Print it to a PDF, and upload that."
)
# A page whose words have no Unicode map to this share is not read, and neither is a scanned page with fewer
# characters, or whose text covers less of it: the line of a fax, a stamp, the number of the page.
UNREADABLE, SCAN_CHARACTERS, SCAN_TEXT = 0.5, 30, 0.02
# From as many pages on a picture at the same place is their background.
RECURRING = 3


@dataclass(slots=True)
class _Page:
    number: int
    lines: list[Line]
    unreadable: float
    pictures: Pictures
    annotations: Annotations

    def is_unread(self, backgrounds: Collection[Picture | None]) -> bool:
        if self.pictures.scan and self.pictures.scan not in backgrounds:
            cells = (abs(cell.right - cell.left) * line.height for line in self.lines for cell in line.cells)
            return sum(len(line.text) for line in self.lines) < SCAN_CHARACTERS or not (
                self.pictures.has_text_layer or sum(cells) >= SCAN_TEXT * self.pictures.area
            )
        return self.unreadable > UNREADABLE or not (self.lines or self.pictures.is_blank)


def pdf(data: bytes) -> ParsedFile:
    """PDF: text in reading order, columns one after another; tables, by drawn lines or by gaps, also of
    turned pages; fields of forms as `label: value`; comments; exponents and indices; with tesseract pages
    without text and scans

    Noted: pages without text; scans with little text (the line of a fax, a stamp); letters without a Unicode
    map; tables that could not be divided; pictures of at least 3 % of a page, also charts; attached files
    Not read: drawings of lines and shapes; page numbers; running headers and footers after the first page"""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as refused:
        has_password = "password" in str(refused).lower()
        raise (password_error() if has_password else UnreadableDocument()) from None
    form = document.get_formtype()
    if form != raw.FORMTYPE_NONE:
        document.init_forms()
    pages = [_page(document, number) for number in range(1, len(document) + 1)]
    scans = Counter(page.pictures.scan for page in pages)
    backgrounds = {scan for scan, count in scans.items() if count >= RECURRING}
    unread = [page for page in pages if page.is_unread(backgrounds)]
    blank = sum(page.pictures.is_blank and not page.lines for page in pages)
    has_ocr = is_installed()
    if has_ocr:
        read = [page for page in pages if page in unread or not page.lines if _is_read_by_ocr(document, page)]
        unread = [page for page in unread if page not in read]
    for page in unread:
        # Letters without a Unicode map are no text.
        page.lines = [] if page.unreadable > UNREADABLE else page.lines
    if not any(page.lines for page in pages) or 2 * len(unread) > len(pages) - blank:
        if form == raw.FORMTYPE_XFA_FULL:
            raise UnreadableDocument(XFA, code="no_text")
        raise UnreadableDocument(UNREAD.format(NOTHING_FOUND if has_ocr else NO_OCR), code="no_text")
    texts = without_running_lines([page.lines for page in pages])
    levels = heading_levels(chain.from_iterable(texts))
    parts: list[tuple[int | None, str]] = []
    undivided: list[int] = []
    for page, lines in zip(pages, texts, strict=True):
        text, has_undivided = paragraphs_of(lines, levels)
        undivided += [page.number] if has_undivided else []
        parts.append((page.number, "\n\n".join([text, *page.annotations.comments])))
    notes = [
        *_notes(pages, unread, undivided, "OCR found nothing" if has_ocr else "OCR is off"),
        *_note_on_files(document, pages),
    ]
    return ParsedFile(parts, own_title(document.get_metadata_dict().get("Title") or ""), notes=notes)


def _is_read_by_ocr(document: Any, page: _Page) -> bool:
    """Whether OCR finds text on the page, which takes the place of its lines."""
    lines = [Line(line) for line in text_of_page(document[page.number - 1]).splitlines() if line.strip()]
    if lines:
        page.lines, page.unreadable = lines, 0.0
    return bool(lines)


def _page(document: Any, number: int) -> _Page:
    page = document[number - 1]
    pictures, annotations = pictures_of(page), annotations_of(document, page)
    # The lines of a form frame its fields, which have their labels beside them.
    lines, unreadable = lines_of(page, [] if annotations.fields else pictures.rulings)
    read = _Page(number, with_fields(lines, annotations.fields), unreadable, pictures, annotations)
    page.close()
    return read


def _notes(
    pages: Sequence[_Page], unread: Sequence[_Page], undivided: Sequence[int], ocr: str
) -> Iterator[str]:
    without_map = [page.number for page in unread if page.unreadable > UNREADABLE]
    with_map = [page for page in unread if page.unreadable <= UNREADABLE]
    for text in ("no text", "little text beside a picture"):
        numbers = [page.number for page in with_map if bool(page.lines) == (text != "no text")]
        if numbers:
            yield f"{_named(numbers)} {'have' if len(numbers) > 1 else 'has'} {text}; {ocr}."
    if without_map:
        were = "were" if len(without_map) > 1 else "was"
        yield f"{_named(without_map)} {were} not read: no Unicode map; {ocr}."
    partly = [page.number for page in pages if 0 < page.unreadable <= UNREADABLE and page.lines]
    if partly:
        yield f"Letters of {_named(partly).lower()} are unreadable (no Unicode map)."
    if undivided:
        table = "The table on" if len(undivided) == 1 else "The tables on"
        yield f"{table} {_named(undivided).lower()} could not be split into columns."
    counts = Counter(picture for page in pages if page not in unread for picture in page.pictures.content)
    count = sum(pages_with < RECURRING for pages_with in counts.values())
    yield from counted(count, "picture was", "pictures were", "not read.")


def _note_on_files(document: Any, pages: Sequence[_Page]) -> list[str]:
    names = [*attached_files(document), *chain.from_iterable(page.annotations.files for page in pages)]
    if not names:
        return []
    if len(names) == 1:
        return [f"The attached file {names[0]} was not read."]
    return [f"{len(names)} attached files were not read: {', '.join(names)}."]


def _named(numbers: Sequence[int]) -> str:
    """Page 3; Pages 3 and 4; Pages 3, 5 and 7 to 9."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    names: list[str] = []
    for run in ranges:
        names += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    joined = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"Page {joined}" if len(numbers) == 1 else f"Pages {joined}"
