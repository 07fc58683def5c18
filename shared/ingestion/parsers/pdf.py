"""Parser of PDF: pages, paragraphs, and headings by their letters' size."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from statistics import quantiles
from typing import Any

import pypdfium2
from pypdfium2 import raw

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.limits_and_tables import ParsedFile, own_title, password_error
from shared.ingestion.parsers.ocr import is_installed, pages_of

NO_OCR = (
    "The PDF has no text, only pictures, and this deployment has no OCR (tesseract). Upload its text instead."
)
# The least size of a heading relative to the text, and its greatest length.
HEADING_SIZE, HEADING_LENGTH = 1.15, 150
# The share of the page's long lines from which on a line continues in the next one.
FULL_LINE = 0.75
# pdfium's marks for a hyphen at a line break.
_SOFT_BREAK = re.compile("[\ufffe\u0002]")
_HYPHEN = re.compile(r"(?<=[a-z])-$")
_ITEM = re.compile(r"([-*•–▪◦‣]|\(?(\d{1,3}|[a-zA-Z]|[ivx]{2,4})[.)]) ")


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    # Of its letters, in points; None for unknown.
    size: float | None


def pdf(data: bytes) -> ParsedFile:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as refused:
        has_password = "password" in str(refused).lower()
        raise (password_error() if has_password else UnreadableDocument()) from None
    pages = [_lines(page) for page in document]
    if not any(pages):
        if not is_installed():
            raise UnreadableDocument(NO_OCR, code="no_text")
        pages = [
            [_Line(line, None) for line in text.splitlines() if line.strip()] for text in pages_of(document)
        ]
    levels = _heading_levels(chain.from_iterable(pages))
    title = own_title(document.get_metadata_dict().get("Title") or "")
    parts: list[tuple[int | None, str]] = [
        (number, _paragraphs(lines, levels)) for number, lines in enumerate(pages, 1)
    ]
    return ParsedFile(parts, title)


def _lines(page: Any) -> list[_Line]:
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    # Only then do the characters of text and page have the same indexes.
    is_aligned = len(text) == textpage.count_chars()
    lines, start = [], 0
    for line in text.split("\r\n"):
        if line.strip():
            first = start + len(line) - len(line.lstrip())
            size = raw.FPDFText_GetFontSize(textpage.raw, first) if is_aligned else None
            lines.append(_Line(line.strip(), size and round(size, 1)))
        start += len(line) + 2
    textpage.close()
    page.close()
    return lines


def _heading_levels(lines: Iterable[_Line]) -> dict[float, int]:
    """The level of a heading by the size of its letters; the largest has level 1."""
    letters: Counter[float] = Counter()
    for line in lines:
        if line.size:
            letters[line.size] += len(line.text)
    if not letters:
        return {}
    usual = letters.most_common(1)[0][0]
    larger = sorted((size for size in letters if size >= HEADING_SIZE * usual), reverse=True)
    return {size: min(place, 6) for place, size in enumerate(larger, 1)}


def _paragraphs(lines: list[_Line], levels: dict[float, int]) -> str:
    """The text with lines joined that the page's width had broken."""
    lengths = [len(line.text) for line in lines]
    full = FULL_LINE * (quantiles(lengths, n=10)[-1] if len(lengths) > 1 else sum(lengths))
    paragraphs: list[str] = []
    continues = False
    for line in lines:
        text = _SOFT_BREAK.sub("", line.text)
        level = levels.get(line.size or 0) if len(text) <= HEADING_LENGTH else None
        if level:
            paragraphs.append(f"\n{'#' * level} {text}\n")
        elif continues and not _ITEM.match(text):
            hyphen = _HYPHEN.search(paragraphs[-1]) and text[:1].islower()
            paragraphs[-1] = f"{paragraphs[-1][:-1]}{text}" if hyphen else f"{paragraphs[-1]} {text}"
        else:
            paragraphs.append(text)
        continues = not level and len(line.text) >= full
    return "\n".join(paragraphs)
