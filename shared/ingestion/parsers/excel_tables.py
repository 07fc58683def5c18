"""Tables of an Excel sheet: its filled cells as Markdown."""

import re
from collections.abc import Iterator, Sequence

from shared.ingestion.parsers.excel_merged_cells import Sheet
from shared.ingestion.parsers.markdown_table import MAX_CELLS, titled_table, with_mark
from shared.ingestion.parsers.parsed_file import size_error
from shared.text.normalize import one_line

HEADING_MARK = "## "
# A number other than a year.
_VALUE = re.compile(r"(?!(?:19|20)\d\d$)\W*\d")


def tables(sheet: Sheet, grouped: set[int]) -> Iterator[str]:
    """The tables of a sheet. After an empty row, a row of texts above one with numbers is another header."""
    numbers = sorted(sheet.rows)
    bottoms = {top: bottom for top, _, bottom, _ in sheet.merges}
    starts, last = [0], 0
    for index, number in enumerate(numbers[1:], 1):
        last = max(last, numbers[index - 1], bottoms.get(numbers[index - 1], 0))
        if number > last + 1 and _begins_table(sheet, numbers[index : index + 3]):
            starts.append(index)
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        for columns in _beside(sheet, numbers[start:end]):
            here = [number for number in numbers[start:end] if not columns.isdisjoint(sheet.rows[number])]
            yield _table(sheet, here, columns, grouped, is_last=end == len(numbers))


def _beside(sheet: Sheet, numbers: Sequence[int]) -> list[set[int]]:
    """The columns of each table of these rows: a table beside an empty column has two columns at least, a row
    of names in another row than the table before it, or the same names."""
    used = sorted({column for number in numbers for column in sheet.rows[number]})
    groups: list[set[int]] = []
    for column in used:
        if groups and column - 1 in groups[-1]:
            groups[-1].add(column)
        else:
            groups.append({column})
    tables: list[set[int]] = []
    for group in groups:
        if tables and not (
            len(group) > 1 < len(tables[-1]) and _has_own_header(sheet, numbers, tables[-1], group)
        ):
            tables[-1] |= group
        else:
            tables.append(group)
    return tables


def _has_own_header(sheet: Sheet, numbers: Sequence[int], left: set[int], right: set[int]) -> bool:
    rows = [[sheet.rows[number].get(column, "") for column in sorted(right)] for number in numbers]
    first = next(at for at, row in enumerate(rows) if any(row))
    top = next(at for at, number in enumerate(numbers) if not left.isdisjoint(sheet.rows[number]))
    names = [sheet.rows[numbers[top]].get(column, "") for column in sorted(left)]
    body = rows[first + 1 :]
    is_named = all(rows[first]) and not any(map(_VALUE.match, rows[first]))
    is_named = is_named and any(_VALUE.match(cell) for row in body for cell in row)
    return is_named and (first != top or rows[first] == names)


def _begins_table(sheet: Sheet, numbers: Sequence[int]) -> bool:
    """Whether the rows begin with a header or a title."""
    first = sheet.rows[numbers[0]]
    follows = [number for number in numbers[1:2] if number == numbers[0] + 1]
    if len(set(first.values())) == 1:
        # A title, or a remark at the end.
        return numbers[0] not in sheet.typed
    return numbers[0] not in sheet.typed and any(number in sheet.typed for number in follows)


def _table(
    sheet: Sheet, numbers: Sequence[int], columns: set[int], grouped: set[int], *, is_last: bool
) -> str:
    used = sorted(columns)
    if len(numbers) * len(used) > MAX_CELLS:
        raise size_error()
    if len(used) == 1 and len(numbers) < len(sheet.rows):
        # A title above tables, or remarks below them.
        lines = [one_line(sheet.rows[number][used[0]]) for number in numbers]
        return "\n".join([lines[0] if is_last else with_mark(lines[0], HEADING_MARK), *lines[1:]])
    rows: list[list[str]] = []
    grouped_here = set[int]()
    for number, previous in zip(numbers, [*numbers[:1], *numbers], strict=False):
        # One empty row in place of several.
        rows += [[]] if number > previous + 1 else []
        if number in grouped:
            grouped_here.add(len(rows))
        rows.append([sheet.rows[number].get(column, "") for column in used])
    return titled_table(rows, grouped_here, HEADING_MARK)
