"""Tables beside each other on a PDF's page, such as the two halves of a balance sheet."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from shared.ingestion.parsers.pdf_tables import Line

# The least number of rows with both halves, and the most titles between a header and its rows.
ROWS, TITLES = 3, 3
# A date may name a column.
_VALUE = re.compile(r"(?!\d+[./-]\d+[./-]\d+$|(?:19|20)\d\d$)[^\w]*\d.*|[-–—]")

_Gap = tuple[float, float]


def is_value(text: str) -> bool:
    """Whether the cell is a number, or the dash in its place; a year or a date is none."""
    return _VALUE.fullmatch(text) is not None


def by_halves(lines: Sequence[Line]) -> list[Line]:
    """The lines; where tables stand beside each other, those of the left one first. Each row of both has a
    name and as many values; the header is the same, or one of them has more rows."""
    ordered: list[Line] = []
    position = first = 0
    while position < len(lines):
        gap = _gap(lines[position])
        start, end, gap = _region(lines, first, position, gap) if gap else (position, position, (0.0, 0.0))
        left, right = _divided(lines[start:end], gap)
        if end > position and _are_tables(left, right, lines[start:end]):
            del ordered[len(ordered) - (position - start) :]
            # An empty line ends the left table.
            ordered += [*left, Line(""), *right]
            position = first = end
        else:
            ordered.append(lines[position])
            position += 1
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
    """The lines from `first` on, around the first row, that the gap divides, and the gap that they share;
    none of fewer rows."""
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
    start = row
    for position in range(row - 1, first - 1, -1):
        if _crosses(lines[position], gap):
            break
        if lines[position].cells[-1].left >= gap[0]:
            start = position
    return (start, end, gap) if rows >= ROWS else (row, row, gap)


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


def _are_tables(left: Sequence[Line], right: Sequence[Line], lines: Sequence[Line]) -> bool:
    """Whether one of the halves has a row of its own, or both have the same header."""
    both = sum(_gap(line) is not None for line in lines)
    rows = (
        sum(len(line.cells) > 1 and is_value(line.cells[-1].text) for line in half) for half in (left, right)
    )
    headers = [[cell.text for cell in half[0].cells] for half in (left, right)]
    return max(rows) > both or (headers[0][-1:] == headers[1][-1:] and len(headers[0]) == len(headers[1]))


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
    return 0 <= len(line.cells) - len(header.cells) <= 1 and is_value(line.cells[-1].text)


def _rows_below(header: Line, lines: Sequence[Line], headings: Sequence[int | None], position: int) -> bool:
    """Whether titles stand between the header and the first of its rows."""
    below = position + 1
    while below < len(lines) and headings[below] is not None and below - position <= TITLES:
        below += 1
    return below > position + 1 and below < len(lines) and _is_row(lines[below], header)
