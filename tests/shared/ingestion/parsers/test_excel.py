"""Parsing of Excel files: cells as Excel shows them, tables with headers, comments, charts, notes."""

from collections.abc import Callable, Sequence
from datetime import date, time
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.excel import xlsx
from tests.shared.ingestion.parsers.office_files import CHART, CHART_TABLE, NAMESPACES, relationships
from tests.shared.sample_files import archive, members, save

RULE = "| --- | --- |"


def file_of(rows: Sequence[Sequence[Any]], *changes: Callable[[Any], object]) -> bytes:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    for change in changes:
        change(book.active)
    return save(book)


def text_of(data: bytes) -> str:
    text = "\n\n".join(text for _, text in xlsx(data).parts)
    return text.removeprefix("# Sheet").strip()


def formatted(cell: str, code: str) -> Callable[[Any], object]:
    return lambda sheet: setattr(sheet[cell], "number_format", code)


def test_cells_are_those_that_excel_shows():
    row = [0.075, 1234.5, -310.4, 417, date(2027, 3, 5), time(8, 30), True, "#N/A", "00417"]
    codes = ["0.0%", "[$€-407] #,##0.00", r"#,##0.00;\(#,##0.00\)", "00000", "d. mmm yyyy", "hh:mm"]
    changes = [formatted(f"{chr(65 + at)}2", code) for at, code in enumerate(codes)]
    header = list("abcdefghi")
    text = "| 7.5% | € 1,234.50 | (310.40) | 00417 | 2027-03-05 | 08:30 | TRUE | #N/A | 00417 |"
    assert text_of(file_of([header, row], *changes)).splitlines()[2] == text


TABLES: list[tuple[list[list[Any]], tuple[str, ...], str]] = [
    # Titles above a table.
    (
        [["Dues 2027"], [], ["Port", "Fee"], ["Skar", 10]],
        (),
        f"Dues 2027\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |",
    ),
    (
        [["Dues"], ["in euros"], ["Port", "Fee"], ["Skar", 10]],
        (),
        f"Dues\n\nin euros\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |",
    ),
    (
        [["Dues", None], ["Port", "Fee"], ["Skar", 10]],
        ("A1:B1",),
        f"Dues\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |",
    ),
    # Merged cells and grouped headers.
    (
        [["Region", "Fee"], ["North", 1], [None, 2]],
        ("A2:A3",),
        f"| Region | Fee |\n{RULE}\n| North | 1 |\n| North | 2 |",
    ),
    (
        [["Port", "2026", None], [None, "in", "out"], ["Skar", 1, 2]],
        ("B1:C1", "A1:A2"),
        "| Port | 2026 in | 2026 out |\n| --- | --- | --- |\n| Skar | 1 | 2 |",
    ),
    # A matrix with an empty corner.
    ([[None, "Kiel"], ["Fee", 10]], (), f"|  | Kiel |\n{RULE}\n| Fee | 10 |"),
    # An empty row within a table, and two tables below each other.
    (
        [["Port", "Fee"], ["Skar", 10], [], ["Oster", 20]],
        (),
        f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n| Oster | 20 |",
    ),
    (
        [["Port", "Fee"], ["Skar", 10], [], ["Ship", "Crew"], ["Alk", 4]],
        (),
        f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\n| Ship | Crew |\n{RULE}\n| Alk | 4 |",
    ),
    (
        [["Port", "Fee"], ["Skar", 10], [], ["Source: the board"]],
        (),
        f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\nSource: the board",
    ),
    ([["Port", None, "Fee"], ["Skar", None, 10]], (), f"| Port | Fee |\n{RULE}\n| Skar | 10 |"),
    ([["a|b", "two\nlines"], [1, 2]], (), f"| a\\|b | two lines |\n{RULE}\n| 1 | 2 |"),
]


def test_tables_keep_their_header_titles_and_merged_values(subtests: pytest.Subtests):
    for rows, merged, text in TABLES:
        changes = [lambda sheet, area=area: sheet.merge_cells(area) for area in merged]
        with subtests.test(text=text):
            assert text_of(file_of(rows, *changes)) == text


def test_hidden_sheets_rows_and_comments_are_read():
    book = Workbook()
    book.active.append(["Port", "Fee"])
    book.active.append(["Skar", 10])
    book.active.row_dimensions[2].hidden = True
    book.active["B2"].comment = Comment("Provisional\nuntil June", "Ann")
    hidden = book.create_sheet("Rates")
    hidden["A1"], hidden.sheet_state = "secret", "hidden"
    assert text_of(save(book)) == (
        f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\nComment on B2 (10): Provisional until June\n\n"
        "# Rates (hidden sheet)\n\n| secret |\n| --- |"
    )


def with_sheet(content: str, **parts: str) -> bytes:
    """A workbook whose sheet has this content, with parts of drawings by name."""
    files = members(file_of([["x"]]))
    files["xl/worksheets/sheet1.xml"] = f"<worksheet {NAMESPACES}>{content}</worksheet>"
    files["xl/worksheets/_rels/sheet1.xml.rels"] = relationships({"drawing": "drawing"})
    files["xl/worksheets/_rels/drawing.xml.rels"] = relationships({"c1": "chart"})
    files |= {
        f"xl/worksheets/{name}.xml": f"<part {NAMESPACES}>{part}</part>" for name, part in parts.items()
    }
    return archive(files)


def cells(*contents: str) -> str:
    inner = "".join(f'<c r="{chr(65 + at)}1" {content}</c>' for at, content in enumerate(contents))
    return f'<sheetData><row r="1">{inner}</row></sheetData>'


def test_scripts_in_a_cell_are_characters_and_pronunciations_are_left_out():
    superscript = '<r><rPr><vertAlign val="superscript"/></rPr><t>3</t></r>'
    rich = f't="inlineStr"><is><r><t>5 m</t></r>{superscript}<rPh><t>spoken</t></rPh></is>'
    assert text_of(with_sheet(cells(rich))) == "| 5 m³ |\n| --- |"


def test_charts_and_text_boxes_are_read_and_pictures_noted():
    drawing = '<txBody><a:p><a:r><a:t>Reorder at 30</a:t></a:r></a:p></txBody><c:chart r:id="r_c1"/><pic/>'
    data = with_sheet(cells("><v>1</v>") + '<drawing r:id="r_drawing"/>', drawing=drawing, c1=CHART)
    assert text_of(data) == f"| 1 |\n| --- |\n\nReorder at 30\n\n{CHART_TABLE}"
    assert xlsx(data).notes == ["1 picture was not read."]


def test_formulas_without_a_stored_value_are_noted(subtests: pytest.Subtests):
    stored, lacking = "><f>A2+1</f><v>42</v>", "><f>SUM(B2:B9)</f><v></v>"
    for contents, text, notes in (
        ((stored, stored), "| 42 | 42 |", []),
        ((stored, lacking), "| 42 | =SUM(B2:B9) |", ["1 formula has no stored value."]),
        ((stored, stored, lacking, lacking), "| 42 | 42 | =SUM(B2:B9) | =SUM(B2:B9) |",
         ["2 formulas have no stored value."]),
        ((stored, 't="str"><f>A1</f><v></v>'), "| 42 |", []),
    ):  # fmt: skip
        parsed = xlsx(with_sheet(cells(*contents)))
        with subtests.test(text=text):
            assert parsed.parts[0][1].splitlines()[2] == text
            assert parsed.notes == notes
    with pytest.raises(UnreadableDocument, match="3 formulas of the file have no stored value") as refused:
        xlsx(with_sheet(cells(stored, lacking, lacking, lacking)))
    assert refused.value.code == "no_text"
