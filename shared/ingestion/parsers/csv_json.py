"""Tables of comma-separated values, and JSON: small files of either may become very large texts."""

import csv as lines
import io
import json as values
from collections.abc import Iterable

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.base import MAX_CHARACTERS, Reading, decoded, table, too_large

MAX_DEPTH = 32
# Of a table, from which what separates its cells is guessed.
LOOKED_AT = 8192


def csv(data: bytes) -> Reading:
    """Comma-separated values, or what else separates them, as a Markdown table."""
    text = decoded(data)
    try:
        dialect: type[lines.Dialect] = lines.Sniffer().sniff(text[:LOOKED_AT], delimiters=",;\t|")
    except lines.Error:
        dialect = lines.excel
    try:
        return Reading([(None, table(lines.reader(io.StringIO(text, newline=""), dialect)))])
    except lines.Error:
        raise UnreadableDocument("The file is not CSV.", code="not_csv") from None


def json(data: bytes) -> Reading:
    """A line a value, so that passages end between values."""
    text = decoded(data)
    try:
        value = values.loads(text)
        # Deep ones would grow by their indentation, a hundredfold and more.
        deep = _depth(value) > MAX_DEPTH
    except (ValueError, RecursionError):
        deep = True
    if deep:
        message = f"The file is not JSON, or nests deeper than {MAX_DEPTH}."
        raise UnreadableDocument(message, code="not_json")
    written, length = [], 0
    for part in values.JSONEncoder(ensure_ascii=False, indent=1).iterencode(value):
        written.append(part)
        length += len(part)
        if length > MAX_CHARACTERS:
            raise too_large()
    return Reading([(None, "".join(written))])


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
