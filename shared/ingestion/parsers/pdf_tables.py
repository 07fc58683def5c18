"""Tables of a PDF's page: consecutive lines whose cells stand below each other.

A PDF has letters and their positions, no rows and columns. The cells of a line are separated by gaps; a
cell of several lines is joined by the distances of its lines, or because another cell of its row stands
beside it.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, groupby, pairwise, takewhile
from math import inf
from operator import or_
from statistics import median

from shared.ingestion.parsers.markdown_table import MAX_HEADER_ROWS, names_of_columns, table

# Columns of prose have longer cells.
CELL_LENGTH = 40
# Lines of one cell are nearer to each other than rows, relative to the usual distance of rows.
DISTANCE_IN_CELL = 0.85
# As many lines before a line tell its row: the time grows with the lines, not with their square.
RECENT = 50
# The least number of lines with cells and numbers that are a table.
UNDIVIDED_ROWS = 3
# Names of bold fonts.
BOLD = re.compile(r"bold|black|heavy|cmbx", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:\d{1,2}[./-]\d{1,2}[./-])?(?:19|20)\d\d(?:-\d\d-\d\d)?\b")
_CURRENCY = re.compile(r"[€$£¥]|\b(?:EUR|USD|GBP|CHF)\b")
# The beginning of a line that is an item of a list.
ITEM = re.compile(r"([-*•–▪◦‣]|\(?(\d{1,3}|[a-zA-Z]|[ivx]{2,4})[.)]) ")


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a line between large gaps, and its horizontal interval in points. `words`: its words, if they
    are known."""

    text: str
    left: float
    right: float
    words: tuple["Cell", ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """`size`: of its letters, in points; None for unknown. `baseline` and `height` are in points; `font` is
    that of the last cell, `mark_font` that of a first cell of one letter. `is_whole`: whether it is a
    paragraph of its own. `clause`: the number of a line in bold letters, such as "4.1". `is_table`: whether
    the text is a table in Markdown."""

    text: str
    size: float | None = None
    cells: tuple[Cell, ...] = ()
    baseline: float = 0.0
    height: float = 0.0
    font: str = ""
    mark_font: str = ""
    is_whole: bool = False
    clause: str = ""
    is_table: bool = False


# The interval of each column, and the lines that have a cell in it, as bits.
_Columns = list[tuple[float, float, int]]


def tables_in(lines: Sequence[Line]) -> list[tuple[range, str]]:
    """The positions of the lines of each table, and its Markdown."""
    tables: list[tuple[range, str]] = []
    start = 0
    while start < len(lines):
        # Cells of one line that overlap belong to no table: the line is skipped.
        end = max(start + 1, end_of_table(lines, start)) if len(lines[start].cells) > 1 else start + 1
        if end > start + 1 and (markdown := _markdown(lines[start:end])):
            tables.append((range(start, end), markdown))
        start = end
    return tables


def has_undivided_table(lines: Sequence[Line]) -> bool:
    """Whether several of the lines, which belong to no table, have the cells and numbers of one."""
    rows = (
        len(line.cells) > 2
        and 2 * sum(any(map(str.isdigit, cell.text)) for cell in line.cells[1:]) >= len(line.cells) - 1
        for line in lines
    )
    return any(is_row and len([*group]) >= UNDIVIDED_ROWS for is_row, group in groupby(rows))


def end_of_table(lines: Sequence[Line], start: int) -> int:
    """The end of the lines from `start` on whose cells stand in columns."""
    columns: _Columns = []
    end = start
    for position in range(start, len(lines)):
        if not lines[position].cells or (widened := _widened(columns, lines[position], position)) is None:
            break
        columns = widened
        # A single cell may begin the text behind the table.
        if len(lines[position].cells) > 1 or _is_near(
            lines[max(start, position - RECENT) : position], lines[position]
        ):
            end = position + 1
    return end


def _widened(columns: _Columns, line: Line, number: int) -> _Columns | None:
    """The columns with the cells of the line; None if a cell stands in two columns that another line divides,
    or two cells in one. A header beside its values is no column of its own."""
    widened = list(columns)
    used: set[int] = set()
    for cell in line.cells:
        overlapping = [
            position
            for position, (left, right, _) in enumerate(widened)
            if cell.left < right and left < cell.right
        ]
        lines = [widened[position][2] for position in overlapping]
        if used & {*overlapping} or any(one & other for one, other in combinations(lines, 2)):
            return None
        cells = [widened[position] for position in overlapping] + [(cell.left, cell.right, 1 << number)]
        column = (
            min(left for left, _, _ in cells),
            max(right for _, right, _ in cells),
            reduce(or_, (bits for _, _, bits in cells)),
        )
        position = overlapping[0] if overlapping else len(widened)
        widened[position : position + 1] = [column]
        # Positions are those of the cells before: a joined column stays, without an interval.
        for other in overlapping[1:]:
            widened[other] = (inf, -inf, 0)
        used.add(position)
    return widened


def _is_near(before: Sequence[Line], line: Line) -> bool:
    """Whether the line is as near to the one before as lines of one cell."""
    usual = distance_of_rows(before)
    return bool(before and usual) and _distance(before[-1], line) < DISTANCE_IN_CELL * usual


def distance_of_rows(lines: Sequence[Line]) -> float:
    """The usual distance of two rows with several cells each, 0 for unknown."""
    distances = [
        _distance(one, other) for one, other in pairwise(lines) if len(one.cells) > 1 and len(other.cells) > 1
    ]
    return median(distances) if distances else 0.0


def _distance(one: Line, other: Line) -> float:
    return abs(one.baseline - other.baseline)


def _markdown(lines: Sequence[Line]) -> str:
    """The lines as a table or list; empty for other lines in columns, such as prose."""
    rows = rows_of(lines)
    columns = columns_of(lines, rows)
    texts = [_texts(row, columns) for row in rows]
    filled = [text for row in texts for text in row if text]
    is_prose = sum(len(text) > CELL_LENGTH for text in filled) * 2 > len(filled)
    several = sum(sum(map(bool, row)) > 1 for row in texts)
    marks = {row[0] for row in texts if row[0]} if len(columns) == 2 else set()
    if len(marks) == 1 and _is_bullet(marks.pop(), lines):
        return _list(texts)
    if is_prose or len(columns) < 2 or several < (2 if len(columns) > 2 else 3):
        return ""
    header = _header_rows(texts) if _has_header(rows, texts) else 0
    names = [names_of_columns(texts[:header])] if header else []
    return table([*names, *texts[header:]], has_header=bool(header))


def _is_bullet(mark: str, lines: Sequence[Line]) -> bool:
    """Whether a character is the bullet of a list: no digit and no currency sign, and a letter only in a font
    of its own."""
    if len(mark) == 1 and mark.isalpha():
        fonts = {line.mark_font for line in lines if line.cells[0].text == mark}
        others = {line.font for line in lines if line.cells[-1].text != mark}
        return not (fonts & others or any(map(BOLD.search, fonts)))
    return len(mark) == 1 and not mark.isalnum() and unicodedata.category(mark) != "Sc"


def _list(texts: Sequence[Sequence[str]]) -> str:
    items: list[str] = []
    for mark, text in texts:
        if mark or not items:
            items.append(f"- {text}")
        else:
            items[-1] += f" {text}"
    return "\n".join(items)


def columns_of(lines: Sequence[Line], rows: Sequence[Sequence[Line]]) -> _Columns:
    """The columns from left to right. A header may stand beside its values: where all rows of one line have
    as many cells, their order decides."""
    several = [cells for row in rows if len(cells := _cells_of_one_line(row)) > 1]
    if len({len(cells) for cells in several}) == 1:
        return [
            (min(cell.left for cell in cells), max(cell.right for cell in cells), 0)
            for cells in zip(*several, strict=True)
        ]
    columns: _Columns = []
    for number, line in enumerate(lines):
        columns = _widened(columns, line, number) or columns
    return sorted(column for column in columns if column[0] < column[1])


def _cells_of_one_line(row: Sequence[Line]) -> list[Cell]:
    """The cells of a row from left to right; none where a cell has several lines."""
    if any(_distance(row[0], line) >= line.height / 2 for line in row):
        return []
    return sorted((cell for line in row for cell in line.cells), key=lambda cell: cell.left)


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    usual = distance_of_rows(lines)
    rows: list[list[Line]] = []
    for line in lines:
        # Another cell of the row has a line beside this one.
        beside = (
            position
            for position in range(max(0, len(rows) - RECENT), len(rows))
            if any(_distance(other, line) < line.height / 2 for other in rows[position][-RECENT:])
        )
        first = next(beside, None)
        if first is None and rows and 1 in {len(rows[-1][-1].cells), len(line.cells)}:
            is_near = _distance(rows[-1][-1], line) < DISTANCE_IN_CELL * usual
            first = len(rows) - 1 if is_near else None
        if first is None:
            rows.append([line])
        else:
            rows[first:] = [[other for row in rows[first:] for other in row] + [line]]
    return rows


def _texts(row: Sequence[Line], columns: _Columns) -> list[str]:
    if len(cells := _cells_of_one_line(row)) == len(columns):
        return [cell.text for cell in cells]
    texts = [""] * len(columns)
    for cell in (cell for line in row for cell in line.cells):
        overlaps = [min(cell.right, right) - max(cell.left, left) for left, right, _ in columns]
        position = overlaps.index(max(overlaps))
        texts[position] = f"{texts[position]} {cell.text}".strip()
    return texts


def _has_header(rows: Sequence[Sequence[Line]], texts: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: its font differs, or values below it have digits, and it has
    none."""
    first, *others = texts
    fonts = [font for font, _ in groupby(row[-1].font for row in rows)]
    if len(fonts) == 2 and rows[0][-1].font != rows[1][-1].font:
        return True
    numeric = [
        column
        for column in range(1, len(first))
        if sum(has_number(row[column]) for row in others) * 2 > len(others)
    ]
    if not numeric:
        return len(first) > 2
    # "Year 1" names a column of numbers, "from 99" does not.
    numbered = [
        column
        for column in numeric
        if first[column][:1].isalpha()
        and not _CURRENCY.search(first[column])
        and 2 * sum(row[column][:1].isalpha() for row in others) < len(others)
    ]
    least = 2 if first[0] else 1
    return len(numbered) >= least or any(not has_number(first[column]) for column in numeric)


def _header_rows(texts: Sequence[Sequence[str]]) -> int:
    """The first row, and rows below it without a name and a number, such as the units of the columns."""
    below = takewhile(lambda row: not (row[0] or any(map(has_number, row))), texts[1:MAX_HEADER_ROWS])
    return 1 + sum(1 for _ in below)


def has_number(cell: str) -> bool:
    """Whether a cell has a digit besides years and dates, which may name a column."""
    return any(map(str.isdigit, _YEAR.sub("", cell)))
