"""Rows of a PDF's table whose names or values stand over several columns, or too close to each other."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from shared.ingestion.parsers.pdf_tables import Cell, Line, columns_of, end_of_table, has_number, rows_of

# The most rows and lines above the values; the greatest distances of two rows, and of two lines of a name, in
# heights of a line.
MAX_ROWS, MAX_LINES, DISTANCE, LEADING = 3, 12, 2.0, 1.3
# The greatest length of a row of names; the most words of names that stand close to each other, and the least
# ratio of the gaps between them to those within one.
MAX_CHARACTERS, MAX_WORDS, WIDER = 150, 12, 1.25
# More columns have no header of several rows. It bounds the time.
MAX_COLUMNS = 50

_Columns = Sequence[tuple[float, float]]
# The cells of a row, each with its columns.
_Placed = Sequence[tuple[Sequence[int], Cell]]


def with_divided_rows(lines: Sequence[Line]) -> list[Line]:
    """The lines, where the header of a table is one line with a name for each column, and the values of a row
    that stand close to each other are divided where the columns of the other rows are."""
    divided: list[Line] = []
    position = first = 0
    while position < len(lines):
        end = end_of_table(lines, position) if len(lines[position].cells) > 1 else position
        if end < position + 2:
            divided.append(lines[position])
            position += 1
            continue
        count = _names_at_top(lines[position:end])
        rows = [*lines[position + count : end]]
        columns = [(left, right) for left, right, _ in columns_of(rows, rows_of(rows))]
        while end < len(lines) and (row := _divided_values(lines[end], rows[-1], columns)):
            rows.append(row)
            end += 1
        above = [*divided[first:], *lines[position : position + count]]
        for number in range(min(len(above), MAX_LINES), count and count - 1, -1):
            if header := _header(above[-number:], rows[0], columns):
                above[-number:] = header
                break
        divided[first:] = [*above, *rows]
        position, first = end, len(divided)
    return divided


def _names_at_top(table: Sequence[Line]) -> int:
    """How many of the first lines have the names of groups, and those of the columns below them."""
    widest = max(len(line.cells) for line in table)
    for count, line in enumerate(table[: min(MAX_ROWS, len(table) - 2)], 1):
        if any(has_number(cell.text) for cell in line.cells):
            break
        if len(line.cells) >= widest - 1:
            return count
    return 0


def _header(lines: Sequence[Line], below: Line, columns: _Columns) -> list[Line]:
    """The lines above a row as one line of names and others of values; nothing for other lines."""
    if not 1 < len(columns) <= MAX_COLUMNS:
        return []
    levels: dict[float, list[Line]] = {}
    for line in lines:
        if not line.cells or line.is_whole or len(line.text) > MAX_CHARACTERS:
            return []
        at = next((at for at in levels if abs(at - line.baseline) < line.height / 2), line.baseline)
        levels.setdefault(at, []).append(line)
    names, values, lowest = list[str](), list[Line](), below
    placed_below: _Placed = ()
    for level, row in sorted(levels.items()):
        cells = sorted((cell for line in row for cell in line.cells), key=lambda cell: cell.left)
        placed = _placed(cells, columns, row[0].height)
        is_value = any(has_number(cell.text) for cell in cells)
        # A single name is the first line of the one below it.
        is_part = bool(names) and len(cells) in (1, len(columns))
        distance = (LEADING if is_part else DISTANCE) * row[0].height
        if (
            not 0 < level - below.baseline < distance
            or len(levels) > MAX_ROWS
            or not placed
            or (
                len(cells) == 1
                and not (names and _is_first_line(placed[0], placed_below, columns, row[0].height / 4))
            )
            or (row[0].size or 0) > 1.1 * (below.size or 0)
            or (is_value and (names or any(len(of) > 1 for of, _ in placed)))
        ):
            return []
        if is_value:
            values.insert(0, _line(row[-1], [(of[0], cell.text) for of, cell in placed], columns))
        else:
            lowest = lowest if names else row[-1]
            names, placed_below = _joined(names, placed, columns, row[0].height), placed
        below = replace(row[-1], baseline=level)
    if names and sum(map(bool, names)) < max(2, len(columns) - 1):
        return []
    return ([_line(lowest, [*enumerate(names)], columns)] if names else []) + values


def _is_first_line(
    single: tuple[Sequence[int], Cell], below: _Placed, columns: _Columns, tolerance: float
) -> bool:
    """Whether a single cell is the first line of a name below it, and no caption or unit of the table: it is
    no wider than the column and that name."""
    of, cell = single
    edges = [columns[of[0]], *((name.left, name.right) for at, name in below if of[0] in at)]
    left, right = min(left for left, _ in edges), max(right for _, right in edges)
    is_within = left - tolerance <= cell.left and cell.right <= right + tolerance
    is_caption = cell.text.startswith("(") or cell.text.endswith(":")
    return of[0] > 0 and is_within and not is_caption


def _line(line: Line, texts: Sequence[tuple[int, str]], columns: _Columns) -> Line:
    cells = tuple(Cell(text, *columns[at]) for at, text in texts if text)
    return replace(line, text=" ".join(cell.text for cell in cells), cells=cells)


def _divided_values(line: Line, above: Line, columns: _Columns) -> Line | None:
    """The row of values below another one, if some stand close to each other."""
    placed = _placed(line.cells, columns, line.height) if line.cells and len(columns) > 1 else []
    is_next = 0 < above.baseline - line.baseline < DISTANCE * line.height
    if not is_next or len(placed) <= len(line.cells) or any(len(of) > 1 for of, _ in placed):
        return None
    is_row = sum(has_number(cell.text) for _, cell in placed) > 1
    return _line(line, [(of[0], cell.text) for of, cell in placed], columns) if is_row else None


def _placed(cells: Sequence[Cell], columns: _Columns, height: float) -> _Placed:
    """The cells, divided between columns where their gaps allow it; nothing if two have the same column."""
    placed: list[tuple[Sequence[int], Cell]] = []
    for cell in cells:
        of = [at for at, (left, right) in enumerate(columns) if cell.left < right and left < cell.right]
        if not of:
            distances = [max(left - cell.right, cell.left - right) for left, right in columns]
            of = [distances.index(min(distances))] if min(distances) < height else []
        placed += _parts(cell, of, columns) if len(of) > 1 else [(of, cell)]
    used = [at for of, _ in placed for at in of]
    return placed if all(of for of, _ in placed) and len({*used}) == len(used) else []


def _parts(cell: Cell, of: Sequence[int], columns: _Columns) -> _Placed:
    """The parts of the cell in its columns, between its widest gaps; the cell if no gaps are wider."""
    words = cell.words[:MAX_WORDS]
    gaps = [following.left - word.right for word, following in pairwise(words)]
    cuts: Sequence[int] = ()
    if len(of) <= len(words) == len(cell.words):
        cuts = max(combinations(range(len(gaps)), len(of) - 1), key=lambda cuts: min(gaps[at] for at in cuts))
    inner = max((gap for at, gap in enumerate(gaps) if at not in cuts), default=0.0)
    if not cuts or min(gaps[at] for at in cuts) < WIDER * inner:
        return [(of, cell)]
    parts = [words[start:end] for start, end in pairwise([0, *(cut + 1 for cut in cuts), len(words)])]
    divided = [Cell(" ".join(word.text for word in part), part[0].left, part[-1].right) for part in parts]
    are_apart = all(
        part.left < columns[at][1] and columns[at][0] < part.right
        for part, at in zip(divided, of, strict=True)
    )
    return [([at], part) for part, at in zip(divided, of, strict=True)] if are_apart else [(of, cell)]


def _joined(names: Sequence[str], placed: _Placed, columns: _Columns, height: float) -> list[str]:
    """The names of the columns, those of their groups before them. Groups have the same names below them, or
    stand in the middle of theirs."""
    above = [""] * len(columns)
    size, rest = divmod(len(columns) - 1, len(placed))
    parts = [tuple(names[1 + size * at : 1 + size * (at + 1)]) for at in range(len(placed))]
    if names and len(placed) > 1 < size and not rest and len({*parts}) == 1:
        above[1:] = [cell.text for _, cell in placed for _ in range(size)]
    else:
        for of, cell in placed:
            others = {at for places, other in placed if other is not cell for at in places}
            middle = (cell.left + cell.right) / 2
            groups = (
                range(start, end + 1)
                for start, end in combinations(range(1, len(columns)), 2)
                if abs((columns[start][0] + columns[end][1]) / 2 - middle) < height / 2
            )
            fitting = (group for group in groups if {*of} <= {*group} and others.isdisjoint(group))
            for at in next(fitting, of) if names and len(placed) > 1 else of:
                above[at] = cell.text
    return [" ".join(filter(None, pair)) for pair in zip(above, names or [""] * len(above), strict=True)]
