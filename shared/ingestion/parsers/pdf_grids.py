"""Tables of a PDF's page whose cells are divided by drawn lines.

The lines that cross each other are a grid. Two places of a grid without a line between them are one cell.
"""

import ctypes
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter, neg
from typing import Any, NamedTuple

from pypdfium2 import raw

from shared.ingestion.parsers.markdown_table import titled_table
from shared.ingestion.parsers.pdf_columns import Box, Word, WordLine

# The greatest thickness of a line, and the distance in points within which lines are the same or meet.
THICKNESS, NEAR = 3.0, 3.0
# The greatest numbers of points in a drawing, of lines on a page and of places in a grid bound the time.
MAX_POINTS, MAX_RULINGS, MAX_PLACES = 2_000, 1_000, 5_000
POINTS_OF_RECTANGLE = 5
# A longer cell is a part of the page's layout.
CELL_CHARACTERS = 1_000
# The least share of cells with a text, and how often the text of merged cells is repeated at most: charts and
# plans have lines that divide no cells.
MIN_FILLED_SHARE, MAX_REPEATS = 0.25, 5
# So many lines with a short value each, in one cell, are rows of a table that only divides its columns.
ROWS, VALUE = 3, re.compile(r"(?=.{0,20}$).*\d.*|[-–—]")
# A word that the end of a line divides; "Vor-" before "und Nachname" is none.
_LINE_BREAK = re.compile(r"(?<=[a-z])-\n(?!(?:und|oder|bis|and|or|et|ou)\b)(?=[a-z])|[\ufffe\x02][ \n]")

# a, b, c, d, e and f of PDF.
Matrix = tuple[float, float, float, float, float, float]
_Places = dict[tuple[int, int], int]


class Grid(NamedTuple):
    """The edges of the columns from left to right, of the rows from top to bottom, and the number of the cell
    of each place (row, column)."""

    columns: Sequence[float]
    rows: Sequence[float]
    cells: _Places


def rulings_of(path: Any, matrix: Matrix) -> Iterator[Box]:
    """The horizontal and vertical lines of a drawing, thin rectangles included. `matrix`: that of the group
    with the drawing."""
    fill, is_stroked = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(path, fill, is_stroked)
    if not (fill.value or is_stroked.value):
        return
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(path, *edges)
    left, bottom, right, top = (edge.value for edge in edges)
    if min(right - left, top - bottom) <= THICKNESS:
        yield _box(_on_page([(left, bottom), (right, top)], matrix))
        return
    count = raw.FPDFPath_CountSegments(path)
    if count <= MAX_POINTS and (is_stroked.value or count > POINTS_OF_RECTANGLE):
        for points in _figures(path, count, matrix_of(path, matrix)):
            box = _box(points)
            if min(box[2] - box[0], box[3] - box[1]) <= THICKNESS:
                yield box
            elif is_stroked.value:
                yield from map(_box, pairwise(points))


def matrix_of(item: Any, matrix: Matrix) -> Matrix:
    """The matrix of the objects of a group, or of the points of a drawing, in a group with the matrix."""
    own = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(item, own)
    a, b, c, d, e, f = matrix
    return (
        own.a * a + own.b * c, own.a * b + own.b * d, own.c * a + own.d * c, own.c * b + own.d * d,
        own.e * a + own.f * c + e, own.e * b + own.f * d + f,
    )  # fmt: skip


def _on_page(points: Iterable[tuple[float, float]], matrix: Matrix) -> list[tuple[float, float]]:
    a, b, c, d, e, f = matrix
    return [(x * a + y * c + e, x * b + y * d + f) for x, y in points]


def _figures(path: Any, count: int, matrix: Matrix) -> Iterator[list[tuple[float, float]]]:
    """The points of each figure of the drawing that has no curves."""
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[float, float]] = []
    has_curve = False
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            if len(points) > 1 and not has_curve:
                yield _on_page(points, matrix)
            points, has_curve = [], False
        has_curve = has_curve or kind == raw.FPDF_SEGMENT_BEZIERTO
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        points.append((x.value, y.value))
        if raw.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if len(points) > 1 and not has_curve:
        yield _on_page(points, matrix)


def _box(points: Iterable[tuple[float, float]]) -> Box:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def with_grids(lines: Sequence[WordLine], rulings: Sequence[Box]) -> tuple[list[WordLine], list[str]]:
    """The lines without the words in grids, and the tables of these. In the place of the words of a table is
    a line of one word, whose `first` is -1 for the first table, -2 for the second."""
    turns = [line.turn for line in lines]
    if not rulings or not turns:
        return [*lines], []
    turn = max(set(turns), key=turns.count)
    rest, tables = [*lines], list[str]()
    for grid in _grids([_upright(turn(box)) for box in rulings]):
        inside = [_places(grid, line, turn) for line in rest]
        if not any(inside) or not (markdown := _markdown(grid, rest, inside)):
            continue
        tables.append(markdown)
        box = Word(markdown, grid.columns[0], grid.columns[-1], -len(tables))
        height = grid.rows[0] - grid.rows[-1]
        outside: list[WordLine] = []
        is_placed = False
        for line, places in zip(rest, inside, strict=True):
            words = [word for _, word in places]
            if words and not is_placed:
                is_placed = True
                place = line._replace(words=[box], bottom=grid.rows[-1], height=height)
                outside.append(place._replace(ends_raised=False, has_gaps=False))
            if others := [word for word in line.words if word not in words] if words else line.words:
                outside.append(line._replace(words=others))
        rest = outside
    return rest, tables


def _upright(box: Box) -> Box:
    one, other, three, four = box
    return min(one, three), min(other, four), max(one, three), max(other, four)


def _grids(boxes: Iterable[Box]) -> Iterator[Grid]:
    """The grids of at least two rows and two columns."""
    across = [(bottom + top) / 2 for left, bottom, right, top in boxes if top - bottom <= THICKNESS]
    down = [(left + right) / 2 for left, bottom, right, top in boxes if right - left <= THICKNESS]
    level, upright = _snapped(across), _snapped(down)
    rows = _joined((level[(b + t) / 2], x, r) for x, b, r, t in boxes if t - b <= THICKNESS and r - x > NEAR)
    sides = _joined(
        (upright[(x + r) / 2], b, t) for x, b, r, t in boxes if r - x <= THICKNESS and t - b > NEAR
    )
    if not rows or not sides or len(rows) + len(sides) > MAX_RULINGS:
        return
    for group_across, group_down in _crossing(rows, sides):
        xs = {x for x, *_ in group_down}
        ys = {y for y, *_ in group_across}
        ends = [end for _, *interval in group_across for end in interval]
        xs |= {end for end in (min(ends), max(ends)) if all(abs(end - x) > NEAR for x in xs)}
        ends = [end for _, *interval in group_down for end in interval]
        ys |= {end for end in (min(ends), max(ends)) if all(abs(end - y) > NEAR for y in ys)}
        if len(xs) > 2 and len(ys) > 2 and (len(xs) - 1) * (len(ys) - 1) <= MAX_PLACES:
            columns, levels = sorted(xs), sorted(ys, reverse=True)
            cells = _cells(columns, levels, group_across, group_down)
            if cells:
                yield Grid(columns, levels, cells)


def _snapped(positions: Iterable[float]) -> dict[float, float]:
    """For each position that of the first one of those that are near to each other."""
    snapped: dict[float, float] = {}
    start = before = float("-inf")
    for position in sorted(positions):
        start = start if position - before <= NEAR and position - start <= 2 * NEAR else position
        before = position
        snapped[position] = start
    return snapped


_Ruling = tuple[float, float, float]


def _joined(rulings: Iterable[_Ruling]) -> list[_Ruling]:
    """Lines at the same position that touch are one."""
    joined: list[_Ruling] = []
    for position, start, end in sorted(rulings):
        if joined and joined[-1][0] == position and start - joined[-1][2] <= NEAR:
            joined[-1] = (position, joined[-1][1], max(end, joined[-1][2]))
        else:
            joined.append((position, start, end))
    return joined


def _crossing(
    rows: Sequence[_Ruling], sides: Sequence[_Ruling]
) -> Iterator[tuple[list[_Ruling], list[_Ruling]]]:
    """The groups of lines that cross or meet each other."""
    crossed = [
        [
            number
            for number, (x, low, high) in enumerate(sides)
            if left - NEAR <= x <= right + NEAR and low - NEAR <= y <= high + NEAR
        ]
        for y, left, right in rows
    ]
    group_of_side: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for row, numbers in enumerate(crossed):
        if not numbers:
            continue
        members[row] = [row]
        for other in {group_of_side[number] for number in numbers if number in group_of_side}:
            members[row] += members.pop(other)
        for number, group in group_of_side.items():
            group_of_side[number] = group if group in members else row
        group_of_side |= dict.fromkeys(numbers, row)
    for group, own in members.items():
        yield (
            [rows[row] for row in own],
            [sides[number] for number, of in group_of_side.items() if of == group],
        )


def _cells(
    columns: Sequence[float], levels: Sequence[float], rows: Sequence[_Ruling], sides: Sequence[_Ruling]
) -> _Places:
    """The number of the cell of each place; none if a cell is no rectangle."""
    below = {
        (at, column)
        for y, left, right in rows
        for at in [min(range(len(levels)), key=lambda at: abs(levels[at] - y))]
        for column, (one, other) in enumerate(pairwise(columns))
        if left - NEAR <= (one + other) / 2 <= right + NEAR
    }
    beside = {
        (row, at)
        for x, low, high in sides
        for at in [min(range(len(columns)), key=lambda at: abs(columns[at] - x))]
        for row, (one, other) in enumerate(pairwise(levels))
        if low - NEAR <= (one + other) / 2 <= high + NEAR
    }
    cells: _Places = {}
    for row in range(len(levels) - 1):
        for column in range(len(columns) - 1):
            if (row, column) in cells:
                continue
            right, bottom = column + 1, row + 1
            while right < len(columns) - 1 and (row, right) not in beside and (row, right) not in cells:
                right += 1
            while bottom < len(levels) - 1 and not any((bottom, at) in below for at in range(column, right)):
                bottom += 1
            places = [(one, other) for one in range(row, bottom) for other in range(column, right)]
            if any(place in cells for place in places):
                return {}
            cells |= dict.fromkeys(places, len(cells) + row * len(columns))
    return cells


def _places(grid: Grid, line: WordLine, turn: Callable[[Box], Box]) -> list[tuple[int, Word]]:
    """The words of the line that are in the grid, and the row and cell of each."""
    y = line.bottom + line.height / 2
    if line.turn is not turn or line.words[0].first < 0 or not grid.rows[-1] < y < grid.rows[0]:
        return []
    row = bisect_left(grid.rows, -y, key=neg) - 1
    columns = ((bisect_right(grid.columns, (word.left + word.right) / 2) - 1, word) for word in line.words)
    return [
        (grid.cells[row, column], word) for column, word in columns if 0 <= column < len(grid.columns) - 1
    ]


class _CellLine(NamedTuple):
    """`row`: that of the grid. `has_gap`: whether a gap as of two columns is between two words."""

    row: int
    bottom: int
    text: str
    has_gap: bool


def _markdown(grid: Grid, lines: Sequence[WordLine], inside: Sequence[Sequence[tuple[int, Word]]]) -> str:
    """The table of the grid; empty for another drawing, such as a chart, a frame or the layout of a page."""
    cells: dict[int, list[_CellLine]] = {}
    for line, places in zip(lines, inside, strict=True):
        for cell, group in groupby(sorted(places, key=itemgetter(0)), key=itemgetter(0)):
            words = [word for _, word in group]
            in_order = sorted(words, key=lambda word: word.left)
            gaps = (following.left - word.right for word, following in pairwise(in_order))
            row = bisect_left(grid.rows, -line.bottom - line.height / 2, key=neg) - 1
            text = " ".join(word.text for word in words)
            part = _CellLine(row, round(line.bottom), text, max(gaps, default=0) >= line.height)
            cells.setdefault(cell, []).append(part)
    if len(cells) < MIN_FILLED_SHARE * len({*grid.cells.values()}) or _is_undivided(cells.values()):
        return ""
    texts = {
        cell: _LINE_BREAK.sub("\ufffe", "\n".join(part.text for part in parts)).replace("\n", " ")
        for cell, parts in cells.items()
    }
    boxes = dict.fromkeys(grid.cells[0, column] for column in range(len(grid.columns) - 1))
    below = {(row - 1, column): cell for (row, column), cell in grid.cells.items() if row}
    header = {cell for (row, _), cell in below.items() if not row}
    is_apart = len(boxes) < len(header) and boxes.keys().isdisjoint(header)
    if is_apart and all(len(cells.get(box, ())) >= ROWS for box in boxes):
        # Boxes of several lines on top of a table with more columns are no names of these.
        others = [[place for place in places if place[0] not in boxes] for places in inside]
        if lower := _markdown(Grid(grid.columns, grid.rows[1:], below), lines, others):
            return "\n\n".join([*(texts[box] for box in boxes), lower])
    # A column without a text of its own divides cells elsewhere on the page.
    columns = [
        column
        for column in range(len(grid.columns) - 1)
        if not column
        or any(
            grid.cells[row, column] in texts and grid.cells[row, column] != grid.cells[row, column - 1]
            for row in range(len(grid.rows) - 1)
        )
    ]
    rows, grouped = list[list[str]](), set[int]()
    for row in range(len(grid.rows) - 1):
        numbers = [grid.cells[row, column] for column in columns]
        rows.append([texts.get(number, "") for number in numbers])
        if len(set(numbers)) == 1:
            # A title within the table.
            rows[-1][1:] = [""] * (len(numbers) - 1)
        elif len(set(numbers)) < len(numbers):
            grouped.add(row)
    has_rows = sum(sum(map(bool, row)) > 1 for row in rows) > 1
    length, repeated = (sum(map(len, of)) for of in (texts.values(), chain.from_iterable(rows)))
    if max(map(len, texts.values())) > CELL_CHARACTERS or repeated > MAX_REPEATS * length or not has_rows:
        return ""
    return titled_table(rows, grouped)


def _is_undivided(cells: Iterable[Sequence[_CellLine]]) -> bool:
    """Whether a cell has rows or columns that no line divides: text beside several rows, several lines with
    gaps, or values beside those of another cell."""
    values: list[set[int]] = []
    for lines in cells:
        if len({line.row for line in lines}) >= ROWS or sum(line.has_gap for line in lines) >= max(
            ROWS, len(lines) / 2
        ):
            return True
        if len(lines) >= ROWS and all(VALUE.fullmatch(line.text) for line in lines):
            values.append({line.bottom for line in lines})
    values.sort(key=max)
    return any(len(one & other) >= ROWS for one, other in pairwise(values))
