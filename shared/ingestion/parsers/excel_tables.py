"""Tables of an Excel sheet: its filled cells as Markdown."""

from collections.abc import Iterator, Sequence

from shared.ingestion.parsers.excel_merged_cells import Sheet
from shared.ingestion.parsers.markdown_table import MAX_CELLS, titled_table, with_mark
from shared.ingestion.parsers.parsed_file import size_error
from shared.text.normalize import one_line

HEADING_MARK = "## "


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
        yield _table(sheet, numbers[start:end], grouped, is_last=end == len(numbers))


def _begins_table(sheet: Sheet, numbers: Sequence[int]) -> bool:
    """Whether the rows begin with a header or a title."""
    first = sheet.rows[numbers[0]]
    follows = [number for number in numbers[1:2] if number == numbers[0] + 1]
    if len(set(first.values())) == 1:
        # A title, or a remark at the end.
        return numbers[0] not in sheet.typed
    return numbers[0] not in sheet.typed and any(number in sheet.typed for number in follows)


def _table(sheet: Sheet, numbers: Sequence[int], grouped: set[int], *, is_last: bool) -> str:
    used = sorted({column for number in numbers for column in sheet.rows[number]})
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
