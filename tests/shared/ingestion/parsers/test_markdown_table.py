"""Tables with grouped headers and merged cells."""

import pytest

from shared.ingestion.parsers.markdown_table import titled_table

ROWS = [["Pos", "Name", "Name", "Price"], ["1", "Item 1", "Item 1", "10"], ["2", "Item 2", "Item 2", "20"]]
UNITS = [["Item", "Price", "Price"], ["A", "10", "EUR"], ["B", "20", "EUR"]]
YEARS = [["Item", "Price", "Price"], ["", "2026", "2027"], ["A", "10", "12"]]


@pytest.mark.parametrize(
    ("rows", "grouped", "expected"),
    [
        (ROWS, {0, 1, 2}, ["| Pos | Name | Name | Price |", "| 1 | Item 1 | Item 1 | 10 |"]),
        (UNITS, {0}, ["| Item | Price | Price |", "| A | 10 | EUR |"]),
        (YEARS, {0}, ["| Item | Price 2026 | Price 2027 |", "| A | 10 | 12 |"]),
    ],
)
def test_only_a_row_that_names_columns_belongs_to_the_header(
    rows: list[list[str]], grouped: set[int], expected: list[str]
):
    header, _, first, *_ = titled_table(rows, grouped).splitlines()
    assert [header, first] == expected
