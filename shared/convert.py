"""A file's bytes to Markdown. What a file is, its bytes say: names and content types are only believed of
texts, which all look alike. Texts are read here; everything else, apart (sandbox.py).
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from shared.clean import clean, shows_nothing
from shared.errors import UnreadableDocument, UnsupportedFileType
from shared.readers.common import BYTE_ORDER_MARKS, MAX_CHARACTERS, table, too_large
from shared.sandbox import read_apart

# By the end of a name, and by what it was sent as.
EXTENSIONS = {
    ".txt": "text", ".text": "text", ".log": "text", ".md": "markdown", ".markdown": "markdown",
    ".csv": "csv", ".tsv": "csv", ".json": "json", ".html": "html", ".htm": "html", ".xhtml": "html",
    ".xml": "xml", ".pdf": "pdf", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx", ".epub": "epub",
}  # fmt: skip
_OFFICE = "application/vnd.openxmlformats-officedocument."
CONTENT_TYPES = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/json": "json",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/pdf": "pdf",
    f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}presentationml.presentation": "pptx",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    "application/epub+zip": "epub",
}
# Read here; and those whose bytes say what they are, where of the others only a name does.
TEXTS = {"text", "markdown", "csv", "json"}
SELF_EVIDENT = {"pdf", "docx", "pptx", "xlsx", "epub"}
# What an archive of that kind has in it.
MEMBERS = {"word/document.xml": "docx", "ppt/presentation.xml": "pptx", "xl/workbook.xml": "xlsx"}
# How files begin that are not read here, whatever they are called, and what may be done about it.
BEGINNINGS = {
    b"\xd0\xcf\x11\xe0": "an old Office file, or one with a password: save it as DOCX, PPTX or XLSX without",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"RIFF": "a sound or a picture",
    b"ID3": "a sound",
    b"\x1f\x8b": "an archive: bring what is in it",
    b"{\\rtf": "an RTF file: save it as DOCX",
}
SUPPORTED = "PDF, DOCX, PPTX, XLSX, EPUB, HTML, XML, CSV, JSON, Markdown and plain text"
MAX_DEPTH = 32
BETWEEN_PARTS = "\n\n"
_HEADING = re.compile(r"\s*# +(\S.*)")


@dataclass(frozen=True, slots=True)
class Converted:
    """A document's text without anything invisible, as what it was read, what it calls itself, and where its
    pages begin: (character, number), in order."""

    text: str
    kind: str
    title: str | None = None
    pages: tuple[tuple[int, int], ...] = ()


def convert(data: bytes, filename: str | None, content_type: str | None) -> Converted:
    """Raises UnsupportedFileType for what is not read here, UnreadableDocument for what is not what it seems,
    and for what has no text."""
    if not data.strip():
        raise UnreadableDocument("The file is empty.", code="empty_file")
    kind = _kind(data, filename, content_type)
    if kind in TEXTS:
        text = _text(data, kind)
        heading = _HEADING.match(text) if kind == "markdown" else None
        return _joined(kind, [(None, text)], heading[1] if heading else "")
    said = read_apart(kind, data)
    return _joined(kind, said["parts"], said["title"] or "")


def _joined(kind: str, parts: Iterable[tuple[int | None, str]], title: str) -> Converted:
    texts, pages, length = [], [], 0
    for number, part in parts:
        text = clean(part).strip("\n")
        if shows_nothing(text):
            continue
        if number is not None:
            pages.append((length, number))
        texts.append(text)
        length += len(text) + len(BETWEEN_PARTS)
    if not texts:
        raise UnreadableDocument("There is no text in the file.", code="empty_file")
    title = " ".join(clean(title).split())[:512]
    return Converted(
        BETWEEN_PARTS.join(texts), kind, None if shows_nothing(title) else title, tuple(pages)
    )  # fmt: skip


def _kind(data: bytes, filename: str | None, content_type: str | None) -> str:
    declared = (content_type or "").partition(";")[0].strip().lower()
    named = EXTENSIONS.get(PurePath(filename or "").suffix.lower()) or CONTENT_TYPES.get(declared)
    if data.startswith(b"%PDF-") or (named == "pdf" and b"%PDF-" in data[:1024]):
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return _kind_of_archive(data)
    for beginning, name in BEGINNINGS.items():
        if data.startswith(beginning):
            raise UnsupportedFileType(f"This is {name}. What is read here is {SUPPORTED}.")
    if named in SELF_EVIDENT:
        raise UnreadableDocument(f"This is not a whole {named.upper()} file, whatever it is called.")
    if named is None:
        raise UnsupportedFileType(f"What is read here is {SUPPORTED}, told by the file's name.")
    return named


def _kind_of_archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise UnreadableDocument("The file is not whole.") from None
    if "META-INF/container.xml" in names:
        return "epub"
    found = next((kind for member, kind in MEMBERS.items() if member in names), None)
    if found is None:
        message = f"This is an archive: bring what is in it. What is read here is {SUPPORTED}."
        raise UnsupportedFileType(message)
    return found


def _text(data: bytes, kind: str) -> str:
    text = _decoded(data)
    match kind:
        case "json":
            text = _indented(text)
        case "csv":
            text = _table(text)
    if len(text) > MAX_CHARACTERS:
        raise too_large()
    return text


def _decoded(data: bytes) -> str:
    mark = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(mark)
    except UnicodeDecodeError:
        raise UnreadableDocument("The file is not text in UTF-8 or UTF-16.", code="not_text") from None
    if "\0" in text:
        raise UnreadableDocument("The file has NUL bytes: it is not text.", code="not_text")
    return text


def _table(text: str) -> str:
    """Comma-separated values, or what else separates them, as a Markdown table."""
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:8192], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        return table(csv.reader(io.StringIO(text, newline=""), dialect))
    except csv.Error:
        raise UnreadableDocument("The file is not CSV.", code="not_csv") from None


def _indented(text: str) -> str:
    """JSON a line a value, so that passages end between values."""
    try:
        value = json.loads(text)
        # Deep ones would grow by their indentation, a hundredfold and more.
        if _depth(value) <= MAX_DEPTH:
            return json.dumps(value, ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        pass
    raise UnreadableDocument(f"The file is not JSON, or nests deeper than {MAX_DEPTH}.", code="not_json")


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
