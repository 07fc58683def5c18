"""A file's bytes to text. What a file is, its bytes say: names and content types are only believed of texts,
which all look alike."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from shared.errors import UnreadableDocument, UnsupportedFileType

# By the end of a name, and by what it was sent as.
EXTENSIONS = {
    ".txt": "text", ".text": "text", ".log": "text", ".md": "markdown", ".markdown": "markdown",
    ".csv": "csv", ".tsv": "csv", ".json": "json",
}  # fmt: skip
CONTENT_TYPES = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/json": "json",
}
# How other files begin, whatever they are called.
BEGINNINGS = {
    b"%PDF-": "PDF",
    b"PK\x03\x04": "ZIP (DOCX, PPTX, XLSX, EPUB)",
    b"\xd0\xcf\x11\xe0": "old Office",
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"RIFF": "WAV or WebP",
    b"ID3": "MP3",
    b"\x1f\x8b": "gzip",
    b"{\\rtf": "RTF",
}
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
SUPPORTED = "plain text, Markdown, CSV and JSON"
MAX_CHARACTERS = 20_000_000
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Converted:
    """A document's text, and as what it was read."""

    text: str
    kind: str


def convert(data: bytes, filename: str | None, content_type: str | None) -> Converted:
    """Raises UnsupportedFileType for what is not read here, UnreadableDocument for what is not what it
    seems."""
    if not data.strip():
        raise UnreadableDocument("The file is empty.", code="empty_file")
    kind = _kind(data, filename, content_type)
    text = _decoded(data)
    text = _indented(text) if kind == "json" else text
    if len(text) > MAX_CHARACTERS:
        raise UnreadableDocument("The text has more than 20 million characters.", code="file_too_large")
    return Converted(text, kind)


def _kind(data: bytes, filename: str | None, content_type: str | None) -> str:
    for beginning, name in BEGINNINGS.items():
        if data.startswith(beginning):
            raise UnsupportedFileType(f"This is a {name} file. What is read here is {SUPPORTED}.")
    declared = (content_type or "").partition(";")[0].strip().lower()
    kind = EXTENSIONS.get(PurePath(filename or "").suffix.lower()) or CONTENT_TYPES.get(declared)
    if kind is None:
        raise UnsupportedFileType(f"What is read here is {SUPPORTED}, told by the file's name.")
    return kind


def _decoded(data: bytes) -> str:
    mark = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(mark)
    except UnicodeDecodeError:
        raise UnreadableDocument("The file is not text in UTF-8 or UTF-16.", code="not_text") from None
    if "\0" in text:
        raise UnreadableDocument("The file has NUL bytes: it is not text.", code="not_text")
    return text


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
