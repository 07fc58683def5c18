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
            here = [
                number
                for number in numbers[start:end]
                if any(column in sheet.rows[number] for column in columns)
            ]
            yield _table(sheet, here, columns, grouped, is_last=end == len(numbers))


def _beside(sheet: Sheet, numbers: Sequence[int]) -> list[set[int]]:
    """The columns of each table of these rows: a table beside an empty column has two columns at least, and
    a header of its own."""
    used = sorted({column for number in numbers for column in sheet.rows[number]})
    groups: list[list[int]] = []
    for column in used:
        if groups and column - 1 == groups[-1][-1]:
            groups[-1].append(column)
        else:
            groups.append([column])
    tables: list[set[int]] = []
    for index, group in enumerate(groups):
        if tables and not _has_own_header(sheet, numbers, groups[index - 1], group):
            tables[-1] |= set(group)
        else:
            tables.append(set(group))
    return tables


def _has_own_header(sheet: Sheet, numbers: Sequence[int], left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether the first row of the right columns, which names them, has the same names at the left, or values
    of a table whose names stand above. Otherwise the columns may belong to the table at the left."""
    if len(left) < 2 or len(right) < 2:
        return False
    first = next(at for at, number in enumerate(numbers) if any(at in sheet.rows[number] for at in right))
    header, beside = ([sheet.rows[numbers[first]].get(at, "") for at in side] for side in (right, left))
    if not _has_names(header) or not any(
        _VALUE.match(sheet.rows[number].get(at, "")) for number in numbers[first + 1 :] for at in right
    ):
        return False
    return beside == header or (
        any(map(_VALUE.match, beside))
        and any(_has_names([sheet.rows[number].get(at, "") for at in left]) for number in numbers[:first])
    )


def _has_names(row: Sequence[str]) -> bool:
    return all(row) and len({*row}) == len(row) and not any(map(_VALUE.match, row))


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
