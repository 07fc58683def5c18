"""Parsers of CSV and JSON."""

import csv as lines
import io
import json as values
from collections.abc import Iterable

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.markdown_table import table
from shared.ingestion.parsers.parsed_file import MAX_CHARACTERS, ParsedFile, decode_text, size_error

MAX_DEPTH = 32
# The beginning of a file, by which the separator is detected.
SNIFFED_CHARACTERS = 8192


def csv(data: bytes) -> ParsedFile:
    """The values as a Markdown table. The separator may be another than a comma."""
    text = decode_text(data)
    try:
        dialect: type[lines.Dialect] = lines.Sniffer().sniff(text[:SNIFFED_CHARACTERS], delimiters=",;\t|")
    except lines.Error:
        dialect = lines.excel
    try:
        return ParsedFile([(None, table(lines.reader(io.StringIO(text, newline=""), dialect)))])
    except lines.Error:
        raise UnreadableDocument(
            "The file is not CSV. Save it as CSV, or give it another type.", code="not_csv"
        ) from None


def json(data: bytes) -> ParsedFile:
    """One value on each line, so that passages end between values."""
    text = decode_text(data)
    try:
        value = values.loads(text)
        # The indentation of deep values would make the text a hundred times longer.
        deep = _depth(value) > MAX_DEPTH
    except (ValueError, RecursionError):
        deep = True
    if deep:
        message = (
            f"The file is not JSON, or has more than {MAX_DEPTH} levels. Correct it, or upload it as text."
        )
        raise UnreadableDocument(message, code="not_json")
    parts, length = [], 0
    for part in values.JSONEncoder(ensure_ascii=False, indent=1).iterencode(value):
        parts.append(part)
        length += len(part)
        if length > MAX_CHARACTERS:
            raise size_error()
    return ParsedFile([(None, "".join(parts))])


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
