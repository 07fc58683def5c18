"""Tables beside each other on a PDF's page, such as the two halves of a balance sheet."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from shared.ingestion.parsers.pdf_tables import Line, distance_of_rows

# The least number of rows with both halves, and the most titles between a header and its rows.
ROWS, TITLES = 3, 3
# The greatest distance of a header from the rows, relative to that of the rows, and of the right edges of a
# name of a column and its values, in points.
DISTANCE, NEAR = 2.0, 3.0
# A year, a date or a currency.
_PERIOD = re.compile(
    r"(?:(?:\d{1,2}[./-]\d{1,2}[./-](?:\d\d)?\d\d"
    r"|(?:(?:\d{1,2}\.? )?[^\W\d_]{3,9}\.? )?(?:19|20)\d\d(?:[/-]\d\d)?"
    r"|T?(?:[€$£]|EUR|USD|GBP|CHF))\s*){1,4}"
)
# A date may name a column.
_VALUE = re.compile(rf"(?!{_PERIOD.pattern}$)[^\w]*\d.*|[-–—]")

_Gap = tuple[float, float]


def is_value(text: str) -> bool:
    """Whether the cell is a number, or the dash in its place; a year or a date is none."""
    return _VALUE.fullmatch(text) is not None


def by_halves(lines: Sequence[Line]) -> list[Line]:
    """The lines; where tables stand beside each other, those of the left one first. Each row of both has a
    name and as many values, and their columns have the same years, dates or currencies."""
    ordered: list[Line] = []
    position = first = 0
    while position < len(lines):
        gap = _gap(lines[position])
        start, end, gap = (
            _region(lines, first, position, gap) if gap else (position, position + 1, (0.0, 0.0))
        )
        if start < position:
            left, right = _divided(lines[start:end], gap)
            del ordered[len(ordered) - (position - start) :]
            # Empty lines divide the tables from each other and from the text around them.
            ordered += [Line(""), *left, Line(""), *right, Line("")]
            first = end
        else:
            ordered += lines[position:end]
        position = end
    return ordered


def _gap(line: Line) -> _Gap | None:
    """The gap between the halves of a row: each has a name and as many values."""
    count = len(line.cells)
    if count < 4 or count % 2:
        return None
    half = count // 2
    texts = [cell.text for cell in line.cells]
    for name, *values in (texts[:half], texts[half:]):
        if not (name[:1].isalpha() and all(map(is_value, values))):
            return None
    return line.cells[half - 1].right, line.cells[half].left


def _region(lines: Sequence[Line], first: int, row: int, gap: _Gap) -> tuple[int, int, _Gap]:
    """The rows from the first one on that the gap divides, with their header and a title, which stand from
    `first` on, and the gap that they share. Without a header the lines begin with the row."""
    rows, end = 1, row + 1
    for position in range(row + 1, len(lines)):
        if _crosses(lines[position], gap):
            break
        if other := _gap(lines[position]):
            shared = (max(gap[0], other[0]), min(gap[1], other[1]))
            if shared[0] >= shared[1]:
                break
            gap, rows = shared, rows + 1
        if len(lines[position].cells) > 1 or lines[position].cells[0].left > gap[0]:
            end = position + 1
    if rows < ROWS:
        return row, row + 1, gap
    above = header = row
    usual = distance_of_rows(lines[row:end])
    # Titles may stand between the header, of one or two lines, and its rows.
    for position in range(row - 1, max(first, row - TITLES - 2) - 1, -1):
        distance = lines[position].baseline - lines[position + 1].baseline
        if _crosses(lines[position], gap) or distance > DISTANCE * usual:
            break
        above = position
        header = position if _has_same_periods(lines[position], len(lines[row].cells) // 2 - 1) else header
    has_title = above < header < row and lines[header - 1].cells[-1].left >= gap[0]
    return header - has_title, end, gap


def _crosses(line: Line, gap: _Gap) -> bool:
    return (
        not line.cells
        or line.is_whole
        or any(cell.left < gap[0] and cell.right > gap[1] for cell in line.cells)
    )


def _divided(lines: Sequence[Line], gap: _Gap) -> tuple[list[Line], list[Line]]:
    middle = sum(gap) / 2
    halves: tuple[list[Line], list[Line]] = ([], [])
    for line in lines:
        for half, is_right in zip(halves, (False, True), strict=True):
            cells = tuple(cell for cell in line.cells if ((cell.left + cell.right) / 2 > middle) == is_right)
            if cells:
                half.append(replace(line, text=" ".join(cell.text for cell in cells), cells=cells))
    return halves


def _has_same_periods(line: Line, values: int) -> bool:
    """Whether the line has the same years, dates or currencies above the values of both halves."""
    names = [cell.text for cell in line.cells]
    own = names[-values:]
    return names[: len(names) // 2][-values:] == own and all(map(_PERIOD.fullmatch, own))


def with_headers_below_titles(
    lines: Sequence[Line], headings: Sequence[int | None]
) -> Iterator[tuple[Line, int | None]]:
    """The lines with their heading levels, where the header of a table stands below the titles between it and
    its rows, and is repeated below further titles between its rows."""
    header: Line | None = None
    for position, (line, level) in enumerate(zip(lines, headings, strict=True)):
        is_header = level is None and _is_header(line)
        if is_header:
            header = line if _rows_below(line, lines, headings, position) else None
            if header:
                continue
        elif level is None and header and len(line.cells) > len(header.cells) + 1:
            header = None
        is_below_title = level is None and position and headings[position - 1] is not None
        # The first line may name a group of rows.
        rows = lines[position : position + (2 if len(line.cells) == 1 else 1)]
        if header and is_below_title and _is_row(rows[-1], header):
            yield replace(header, baseline=line.baseline + 1.5 * line.height), None
        yield line, level


def _is_header(line: Line) -> bool:
    return len(line.cells) > 1 and not line.is_whole and not any(is_value(cell.text) for cell in line.cells)


def _is_row(line: Line, header: Line) -> bool:
    """Whether the header, whose first cell is empty or whose others are several years or dates, has the right
    edges of the row's values."""
    pairs = zip(reversed(header.cells), reversed(line.cells[1:]), strict=False)
    has_names = len(header.cells) == len(line.cells) - 1 or (
        len(header.cells) == len(line.cells) > 2
        and all(_PERIOD.fullmatch(cell.text) for cell in header.cells[1:])
    )
    return (
        has_names
        and is_value(line.cells[-1].text)
        and all(abs(one.right - other.right) <= NEAR for one, other in pairs)
    )


def _rows_below(header: Line, lines: Sequence[Line], headings: Sequence[int | None], position: int) -> bool:
    """Whether titles stand between the header and the first of its rows."""
    below = position + 1
    while below < len(lines) and headings[below] is not None and below - position <= TITLES:
        below += 1
    return below > position + 1 and below < len(lines) and _is_row(lines[below], header)
