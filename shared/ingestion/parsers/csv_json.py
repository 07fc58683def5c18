"""Parsers of CSV and JSON."""

import csv as lines
import io
import json as values
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from statistics import median_high
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.markdown_table import SAMPLE_ROWS, has_header, table
from shared.ingestion.parsers.parsed_file import MAX_CHARACTERS, ParsedFile, decode_text, size_error
from shared.ingestion.parsers.text_encodings import text_and_notes
from shared.text.normalize import one_line

MAX_DEPTH = 32
# The beginning of a file, by which the separator and the header are detected.
SAMPLE_CHARACTERS = 65_536
SEPARATORS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"\s*sep=([,;\t|])\r?\n", re.IGNORECASE)
# A separator within text has a space behind it. A divided cell begins or ends with a quotation mark.
_WRONG_CELL = re.compile(r'\t|[,;|](?=\S)|^"|"$')
# The pattern takes long for long cells.
NUMBER_CHARACTERS = 40
_WRITTEN_NUMBER = re.compile(r'"\ue000(-?\d[\d.eE+-]*)"')
_NUMBER = re.compile(r"\W*\d[\d.,'\s]*\W*(?:[A-Za-z]{1,3})?\W*")


def _is_number(cell: str) -> bool:
    return len(cell) <= NUMBER_CHARACTERS and _NUMBER.fullmatch(cell) is not None


def csv(data: bytes) -> ParsedFile:
    """CSV: tables, by the separator that makes the rows alike, `sep=` included; lines above a header as text;
    an empty header where the first row has values

    Noted: an encoding that was detected"""
    text, notes = text_and_notes(data)
    if named := _SEPARATOR_LINE.match(text):
        text, separators = text[named.end() :], named[1]
    else:
        separators = SEPARATORS
    try:
        dialect = max(_dialects(separators), key=partial(_consistency, text[:SAMPLE_CHARACTERS]))
        rows = list(lines.reader(io.StringIO(text, newline=""), **dialect))
    except lines.Error:
        raise UnreadableDocument(
            "The file is not CSV. Save it as CSV, or give it another type.", code="not_csv"
        ) from None
    between = ", " if dialect["delimiter"] == "," else " "
    parts: list[str] = []
    for block in _blocks(rows):
        start = _header_row(block[:SAMPLE_ROWS]) if _width(block) > 1 or not parts else len(block)
        titles = [one_line(between.join(filter(None, row))) for row in block[:start]]
        is_named = has_header(block[start : start + SAMPLE_ROWS])
        parts += ["\n".join(filter(None, titles)), table(block[start:], has_header=is_named)]
    return ParsedFile([(None, "\n\n".join(filter(None, parts)))], notes=notes)


def _blocks(rows: list[list[str]]) -> list[list[list[str]]]:
    """The tables of the file, with their titles. After an empty line, a row without a number begins another
    table if it has another number of cells or a row with a number follows."""
    groups = [
        (is_filled, [*group]) for is_filled, group in groupby(rows, lambda row: any(map(str.strip, row)))
    ]
    filled = [block for is_filled, block in groups if is_filled]
    if len(filled) > 2 and all(len(block) == 1 for block in filled):
        # The file has doubled line ends.
        return [[block[0] for block in filled]]
    blocks: list[list[list[str]]] = []
    width = 0
    for is_filled, block in groups:
        if is_filled and (not blocks or _begins_table(block, width)):
            blocks.append([])
            width = 0
        if blocks:
            blocks[-1] += block
            width = max(width, _width(block))
    return blocks


def _begins_table(block: list[list[str]], width: int) -> bool:
    """`width`: that of the table before."""
    first, *below = block
    # Above a wider table, names and values are its titles.
    if any(map(_is_number, first)) or width <= min(2, _width(block) - 1):
        return False
    return _width([first]) != width or any(map(_is_number, below[0] if below else ()))


def _width(rows: Iterable[list[str]]) -> int:
    return max((sum(1 for cell in row if cell.strip()) for row in rows), default=0)


def _dialects(separators: str) -> Iterator[dict[str, Any]]:
    """The likeliest first. A quotation mark may be a character like others."""
    for quotes in ({"quotechar": '"'}, {"quotechar": "'"}, {"quoting": lines.QUOTE_NONE}):
        for separator in separators:
            yield {"delimiter": separator, "skipinitialspace": True, **quotes}


def _consistency(text: str, dialect: dict[str, Any]) -> float:
    """The share of rows with the commonest number of cells, times the share of whole cells."""
    rows = [row for row in lines.reader(io.StringIO(text, newline=""), **dialect) if any(row)]
    if len(text) == SAMPLE_CHARACTERS:
        rows = rows[:-1]
    widths = Counter(len(row) for row in rows if len(row) > 1)
    if not widths:
        return 0
    cells = [cell for row in rows for cell in row]
    whole = sum(not _WRONG_CELL.search(cell) or _is_number(cell) for cell in cells)
    return max(widths.values()) / len(rows) * whole / len(cells)


def _header_row(rows: list[list[str]]) -> int:
    """The index of the first row of the table. Titles above it fill fewer cells: half as many, or a blank row
    follows them."""
    filled = [sum(1 for cell in row if cell.strip()) for row in rows]
    # Of the cells, not the rows: a short table may have as many titles as rows.
    usual = median_high([count for count in filled for _ in range(count)] or [0])
    start = 0
    for index, (row, count) in enumerate(zip(rows, filled, strict=True)):
        if count >= usual:
            break
        cells = [cell.strip() for cell in row]
        # A row with gaps is a header of groups.
        begins = next((at for at, cell in enumerate(cells) if cell), 0)
        # A row below one that is no title is the second of a header.
        has_few = count <= usual / 2 or cells[begins].startswith("# ")
        is_title = index == start and has_few and all(cells[begins : begins + count])
        if count == 0 or is_title:
            start = index + 1
    return start


def json(data: bytes) -> ParsedFile:
    """JSON: one value on each line, so that passages end between values; numbers as they are written; of
    notebooks the texts, the code, what it printed, and tables

    Noted: files in base64, which are left out; pictures of notebooks"""
    text = decode_text(data)
    try:
        value = values.loads(text, parse_float=_as_written, parse_int=_as_written)
        # The indentation of deep values would make the text a hundred times longer.
        deep = _depth(value) > MAX_DEPTH
    except (ValueError, RecursionError):
        deep = True
    if deep:
        message = (
            f"The file is not JSON, or has more than {MAX_DEPTH} levels. Correct it, or upload it as text."
        )
        raise UnreadableDocument(message, code="not_json")
    if isinstance(value, dict) and "nbformat" in value:
        from shared.ingestion.parsers.notebook import notebook

        # Other versions and broken notebooks stay JSON.
        with suppress(AttributeError, KeyError, TypeError):
            return notebook(value)
    parts, length = [], 0
    for part in values.JSONEncoder(ensure_ascii=False, indent=1).iterencode(value):
        parts.append(part)
        length += len(part)
        if length > MAX_CHARACTERS:
            raise size_error()
    return ParsedFile([(None, _WRITTEN_NUMBER.sub(r"\1", "".join(parts)))])


def _as_written(number: str) -> str:
    # A private-use character, which no number and hardly a text has.
    return f"\ue000{number}"


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
