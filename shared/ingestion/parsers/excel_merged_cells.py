"""Merged cells of an Excel sheet, which repeat their value in each cell, and the sheet's cells."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from shared.ingestion.parsers.markdown_table import MAX_CELLS
from shared.ingestion.parsers.parsed_file import size_error

Row = dict[int, str]


@dataclass(slots=True)
class Sheet:
    """The filled cells by row and column, from 1; typed: the rows with a number or date; merges: (first row,
    first column, last row, last column)."""

    rows: dict[int, Row] = field(default_factory=dict)
    typed: set[int] = field(default_factory=set)
    merges: list[tuple[int, int, int, int]] = field(default_factory=list)
    drawings: list[str] = field(default_factory=list)
    has_hidden: bool = False


def repeat_merged(sheet: Sheet) -> set[int]:
    """Repeat the value of merged cells. Return the rows with cells that span some columns."""
    grouped = set()
    widths = [max(row) for row in sheet.rows.values()]
    numbers, last_column = sorted(sheet.rows), max(widths, default=0)
    copies = 0
    for top, left, bottom, right in sheet.merges:
        text = sheet.rows.get(top, {}).get(left)
        if not text:
            continue
        if right > left:
            grouped.add(top)
        # The rows within that have other cells.
        for row in numbers[bisect_left(numbers, top) : bisect_right(numbers, bottom)]:
            for column in range(left, min(right, last_column) + 1):
                copies += 1
                if copies > MAX_CELLS:
                    raise size_error()
                sheet.rows[row].setdefault(column, text)
    return grouped
