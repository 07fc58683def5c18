"""Tables with grouped headers and merged cells."""

from collections.abc import Sequence

import pytest

from shared.ingestion.parsers.markdown_table import has_header, titled_table

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


@pytest.mark.parametrize(
    ("rows", "is_header"),
    [
        ([("VAT", "19 %"), ("Discount", "2.5 %"), ("Shipping", "49.90 €"), ("Minimum", "none")], False),
        ([("Name:", "Skar"), ("Town:", "Oster")], False),
        # A year or a date names a column of numbers, and so does a word.
        ([("", "31.12.2026"), ("Cash", "5"), ("Loans", "7.5")], True),
        ([("Item", "2026"), ("Cash", "5"), ("Loans", "7.5")], True),
        ([("Item", "Price"), ("Cash", "5"), ("Loans", "7.5")], True),
        *(
            ([("Item", name), ("Cash", "5"), ("Loans", "7"), ("Land", "12")], True)
            for name in ("2023/24", "31.12.24", "01/2024", "2024 EUR", "2024*", "1 kg")
        ),
    ],
)
def test_a_name_and_a_value_are_no_header(rows: Sequence[Sequence[str]], is_header: bool):
    assert has_header(rows) == is_header


def test_halves_of_a_balance_sheet_are_two_tables():
    rows = [
        ["Assets", "2026", "Liabilities", "2026"],
        ["Land", "5", "Capital", "40"],
        ["Cash", "70", "", ""],
        ["Total", "75", "Total", "75"],
    ]
    left, right = titled_table(rows, ()).split("\n\n")
    assert left.splitlines()[2:] == ["| Land | 5 |", "| Cash | 70 |", "| Total | 75 |"]
    assert right == "| Liabilities | 2026 |\n| --- | --- |\n| Capital | 40 |\n| Total | 75 |"
    # Records whose columns have the same names.
    for records in (
        [["From", "Lat", "Lon", "To", "Lat", "Lon"], ["Skar", "52.5", "13.4", "Moss", "48.8", "2.3"]],
        [["1", "0", "0", "1", "0", "0"], ["1", "1", "0", "0", "0", "1"]],
        [["a", "0", "0", "b", "0", "0"], ["c", "1", "0", "d", "0", "1"], ["e", "1", "1", "f", "0", "1"]],
    ):
        assert "\n\n" not in titled_table(records, ())
    # A record with two dates.
    trips = [["From", "Date", "To", "Date"], ["Skar", "2026-05-01", "Moss", "2026-05-03"]]
    assert titled_table(trips, ()).count("Date") == 2
    assert "| Skar | 2026-05-01 | Moss | 2026-05-03 |" in titled_table(trips, ())


def test_a_title_over_all_columns_within_a_table_is_written_once():
    rows = [["Item", "Price"], ["Boats", "Boats"], ["Skiff", "10"], ["Anchors", "Anchors"], ["Bruce", "20"]]
    assert titled_table(rows, {1, 3}).splitlines()[2:] == [
        "| Boats |  |", "| Skiff | 10 |", "| Anchors |  |", "| Bruce | 20 |",
    ]  # fmt: skip
