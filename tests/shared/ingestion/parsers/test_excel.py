"""Parsing of Excel files: cells as Excel shows them, tables with headers, comments, charts, notes."""

from collections.abc import Callable, Sequence
from datetime import date, time
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.styles import Font

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
    ([["Dues 2027"], [], ["Port", "Fee"], ["Skar", 10]], (),
     f"## Dues 2027\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |"),
    ([["Dues"], ["in euros"], ["Port", "Fee"], ["Skar", 10]], (),
     f"## Dues\n\nin euros\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |"),
    ([["Dues", None], ["Port", "Fee"], ["Skar", 10]], ("A1:B1",),
     f"## Dues\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |"),
    ([["All dues are in euros."], ["Port", "Fee"], ["Skar", 10]], (),
     f"All dues are in euros.\n\n| Port | Fee |\n{RULE}\n| Skar | 10 |"),
    # No header.
    ([["D-1", "Seal", 3], ["D-2", "Filter", 18]], (),
     f"|  |  |  |\n{RULE} --- |\n| D-1 | Seal | 3 |\n| D-2 | Filter | 18 |"),
    # Merged cells and grouped headers.
    ([["Region", "Fee"], ["North", 1], [None, 2]], ("A2:A3",),
     f"| Region | Fee |\n{RULE}\n| North | 1 |\n| North | 2 |"),
    ([["Port", "2026", None], [None, "in", "out"], ["Skar", 1, 2]], ("B1:C1", "A1:A2"),
     "| Port | 2026 in | 2026 out |\n| --- | --- | --- |\n| Skar | 1 | 2 |"),
    # A matrix with an empty corner.
    ([[None, "Kiel"], ["Fee", 10]], (), f"|  | Kiel |\n{RULE}\n| Fee | 10 |"),
    # An empty row within a table, and two tables below each other.
    ([["Port", "Fee"], ["Skar", 10], [], ["Oster", 20]], (),
     f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n| Oster | 20 |"),
    ([["Port", "Fee"], ["Skar", 10], [], ["Ship", "Crew"], ["Alk", 4]], (),
     f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\n| Ship | Crew |\n{RULE}\n| Alk | 4 |"),
    ([["Port", "Fee"], ["Skar", 10], [], ["Source: the board"]], (),
     f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\nSource: the board"),
    # Two tables beside each other; an empty column within a table.
    ([["Port", "Fee", None, "Port", "Fee"], ["Skar", 10, None, "Oster", 20]], (),
     f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\n| Port | Fee |\n{RULE}\n| Oster | 20 |"),
    ([["Port", "Fee"], ["Skar", 10, None, "Ship", "Crew"], ["Moss", 12, None, "Alk", 4]], (),
     f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n| Moss | 12 |\n\n| Ship | Crew |\n{RULE}\n| Alk | 4 |"),
    ([["Port", "Fee", None, "Ship", "Crew"], ["Skar", 10, None, "Alk", 4]], (),
     f"| Port | Fee | Ship | Crew |\n{RULE} --- | --- |\n| Skar | 10 | Alk | 4 |"),
    # Columns of one table beside an empty one, below a title or beside a merged cell.
    ([["Sales"], ["Port", "Unit", None, "Q1", "Q2"], ["Skar", "pc", None, 10, 20]], (),
     f"## Sales\n\n| Port | Unit | Q1 | Q2 |\n{RULE} --- | --- |\n| Skar | pc | 10 | 20 |"),
    ([[None, None, None, 2025], ["Port", "Unit", None, "Plan", "Actual"], ["Skar", "pc", None, 10, 20]],
     ("D1:E1",), f"## 2025\n\n| Port | Unit | Plan | Actual |\n{RULE} --- | --- |\n| Skar | pc | 10 | 20 |"),
    # A name and a value above a table, and its header of two rows.
    ([["Valid from", "1 March"], [], ["Port", "Fee", "Fee"], ["Port", "today", "later"], ["Skar", 10, 12]],
     ("B3:C3",),
     f"Valid from: 1 March\n\n| Port | Fee today | Fee later |\n{RULE} --- |\n| Skar | 10 | 12 |"),
    ([["Port", None, "Fee"], ["Skar", None, 10]], (), f"| Port | Fee |\n{RULE}\n| Skar | 10 |"),
    ([["a|b", "two\nlines"], [1, 2]], (), f"| a\\|b | two lines |\n{RULE}\n| 1 | 2 |"),
]  # fmt: skip


def test_tables_keep_their_header_titles_and_merged_values(subtests: pytest.Subtests):
    for rows, merged, text in TABLES:
        changes = [lambda sheet, area=area: sheet.merge_cells(area) for area in merged]
        with subtests.test(text=text):
            assert text_of(file_of(rows, *changes)) == text


def test_hidden_sheets_rows_columns_and_comments_are_read():
    book = Workbook()
    book.active.append(["Port", "Fee"])
    book.active.append(["Skar", 10])
    book.active.row_dimensions[2].hidden = True
    book.active["B2"].comment = Comment("Provisional\nuntil June", "Ann")
    hidden = book.create_sheet("Rates")
    hidden["A1"], hidden.sheet_state = "secret", "hidden"
    hidden.column_dimensions["A"].hidden = True
    assert text_of(save(book)) == (
        f"| Port | Fee |\n{RULE}\n| Skar | 10 |\n\nComment on B2 (10): Provisional until June\n\n"
        "# Rates (hidden sheet)\n\n| secret |\n| --- |"
    )
    assert xlsx(save(book)).notes == ["2 sheets have hidden rows or columns, which were read."]


KINDS = {"controls": "vmlDrawing"}


def with_sheet(content: str, **parts: str) -> bytes:
    """A workbook whose sheet has this content, with parts of drawings by name."""
    files = members(file_of([["x"]]))
    files["xl/worksheets/sheet1.xml"] = f"<worksheet {NAMESPACES}>{content}</worksheet>"
    names = {name: KINDS.get(name, "drawing") for name in ("drawing", *parts)}
    files["xl/worksheets/_rels/sheet1.xml.rels"] = relationships(names)
    files["xl/worksheets/_rels/drawing.xml.rels"] = relationships({"c1": "chart"})
    files |= {
        f"xl/worksheets/{name}.xml": f"<part {NAMESPACES}>{part}</part>" for name, part in parts.items()
    }
    return archive(files)


def cells(*contents: str) -> str:
    inner = "".join(f'<c r="{chr(65 + at)}1" {content}</c>' for at, content in enumerate(contents))
    return f'<sheetData><row r="1">{inner}</row></sheetData>'


SUPERSCRIPT = '<r><rPr><vertAlign val="superscript"/></rPr><t>3</t></r>'
STRUCK = "<r><rPr><strike/></rPr><t>9 </t></r>"
STRUCK_SCRIPT = '<r><rPr><strike/><vertAlign val="superscript"/></rPr><t>6</t></r>'
SYMBOL = '<r><rPr><rFont val="Symbol"/></rPr><t>m</t></r>'
ROW = '<row r="{}"><c r="{}" t="str"><v>{}</v></c></row>'
CONTENTS = [
    # Scripts without pronunciations, fonts, escapes.
    (cells(f't="inlineStr"><is><r><t>5 m</t></r>{SUPERSCRIPT}<rPh><t>spoken</t></rPh></is>'), "| 5 m³ |"),
    (cells(f't="inlineStr"><is><r><t>5 </t></r>{SYMBOL}<r><t>g</t></r></is>'), "| 5 μg |"),
    (cells('t="inlineStr"><is><t>two_x000D_lines_x005F_</t></is>'), "| two lines_ |"),
    (cells(f't="inlineStr"><is>{STRUCK}<r><t>7</t></r></is>'), "| ~~9~~ 7 |"),
    (cells(f't="inlineStr"><is><r><rPr><strike/></rPr><t>10</t></r>{STRUCK_SCRIPT}</is>'), "| ~~10⁶~~ |"),
    (cells("><v>-0.0</v>"), "| 0 |"),
    (cells('t="str"><v>two_x000D_lines</v>'), "| two lines |"),
    # A number of a row that is no decimal; a row in two parts.
    (f"<sheetData>{ROW.format('²', 'A1', 'a')}</sheetData>", "| a |"),
    (f"<sheetData>{ROW.format(1, 'A1', 'a')}{ROW.format(1, 'B1', 'b')}</sheetData>", "| a | b |"),
]


def test_the_text_of_a_cell_is_what_excel_shows():
    assert [(content, text_of(with_sheet(content)).split("\n")[0]) for content, _ in CONTENTS] == CONTENTS

    def in_symbol(sheet: Any) -> None:
        sheet["A1"].font = Font(name="Symbol")

    assert text_of(file_of([["m"]], in_symbol)) == "| μ |\n| --- |"
    struck = text_of(file_of([["Fee"], [9]], lambda sheet: setattr(sheet["A2"], "font", Font(strike=True))))
    assert struck == "| Fee |\n| --- |\n| ~~9~~ |"
    # Runs of a struck cell, of which one has properties of its own, as inline and as shared texts.
    runs = "<r><t>9 </t></r><r><rPr><b/></rPr><t>7</t></r>"
    made = file_of([["x"]], lambda sheet: setattr(sheet["A1"], "font", Font(strike=True)))
    files: dict[str, Any] = {**members(made)}
    sheet, shared = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
    style = 's="1" t="inlineStr"><is>'
    files[sheet] = (
        f"<worksheet {NAMESPACES}>{cells(f'{style}{runs}</is>', f'{style}<t>8</t></is>')}</worksheet>"
    )
    assert text_of(archive(files)).startswith("| ~~9~~ 7 | ~~8~~ |")
    content = cells('s="1" t="s"><v>0</v>', 's="0" t="s"><v>0</v>')
    files[sheet] = f"<worksheet {NAMESPACES}>{content}</worksheet>"
    files[shared] = f"<sst><si>{runs}</si></sst>"
    related = "xl/_rels/workbook.xml.rels"
    link = '<Relationship Id="x" Type="http://x/relationships/sharedStrings" Target="sharedStrings.xml"/>'
    files[related] = files[related].decode().replace("</Relationships>", f"{link}</Relationships>")
    assert text_of(archive(files)).startswith("| ~~9~~ 7 | 9 7 |")
    # A struck formula without a value.
    formula = cells('s="1" t="s"><f>A2</f>', 's="1" t="s"><f>A3</f><v/>', *['t="n"><v>5</v>'] * 3)
    files[sheet] = f"<worksheet {NAMESPACES}>{formula}</worksheet>"
    assert text_of(archive(files)).startswith("| ~~=A2~~ | ~~=A3~~ |")
    unknown = xlsx(with_sheet(cells('t="inlineStr"><is><t>\uf0aa</t></is>')))
    assert unknown.notes == ["1 symbol of a special font could not be read."]


def test_numbers_have_the_separators_of_the_program():
    def in_german(sheet: Any) -> None:
        sheet.parent._named_styles["Normal"].name = "Standard"

    code = formatted("A2", "#,##0")
    for change, shown in ((in_german, "2.180 | 0,5"), (lambda _: None, "2180 | 0.5")):
        text = text_of(file_of([["Umsatz", "Anteil"], [2180, 0.5]], code, change))
        assert text.splitlines()[2] == f"| {shown} |"
    # The language of inline texts, also without a style.
    header = ["Die Kosten der Abteilung", "sind nicht gestiegen und werden für das Jahr erwartet"]
    assert text_of(file_of([header, [2180, 0.5]], code)).splitlines()[2] == "| 2.180 | 0,5 |"


def test_charts_and_text_boxes_are_read_and_pictures_noted():
    drawing = '<txBody><a:p><a:r><a:t>Reorder at 30</a:t></a:r></a:p></txBody><c:chart r:id="r_c1"/><pic/>'
    content = cells("><v>1</v>") + '<drawing r:id="r_drawing"/>'
    data = with_sheet(content, drawing=drawing, c1=CHART)
    assert text_of(data) == f"| 1 |\n| --- |\n\nReorder at 30\n\n{CHART_TABLE}"
    assert xlsx(data).notes == ["1 picture was not read."]
    described = with_sheet(content, drawing='<pic><cNvPr descr="Quay from the south"/></pic>')
    assert text_of(described) == "| 1 |\n| --- |\n\nPicture: Quay from the south"
    # Of two alternatives one counts.
    object_ = "<mc:Choice><oleObject/></mc:Choice><mc:Fallback><oleObject/></mc:Fallback>"
    embedded = f"<mc:AlternateContent>{object_}</mc:AlternateContent>"
    assert xlsx(with_sheet(cells("><v>1</v>") + embedded)).notes == ["1 embedded file was not read."]


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


def test_headers_and_footers_are_read_once_without_page_numbers():
    def margins(sheet: Any) -> None:
        sheet.oddHeader.left.text, sheet.oddHeader.right.text = "&BTariff&B 2027", "Skar && Oster"
        sheet.oddFooter.center.text = "Page &P of &N"
        other = sheet.parent.create_sheet("Other")
        other.oddHeader.left.text, other.oddHeader.right.text = "&BTariff&B 2027", "Skar && Oster"

    text = text_of(file_of([["x"]], margins))
    assert text == "| x |\n| --- |\n\nHeader: Tariff 2027 Skar & Oster\n\n# Other"
    for footer, shown in (
        ("&C2024", "Footer: 2024"),
        ("&CPage &P sur &N", ""),
        ("&CTariff, page &P", "Footer: Tariff, page"),
        ("&CConfidential &P", "Footer: Confidential"),
    ):
        data = with_sheet(
            cells("><v>1</v>")
            + f"<headerFooter><oddFooter>{footer.replace('&', '&amp;')}</oddFooter></headerFooter>"
        )
        assert text_of(data) == f"| 1 |\n| --- |\n\n{shown}".strip()


def test_form_controls_have_their_label_and_state():
    def control(kind: str, label: str, inner: str) -> str:
        return (
            f"<v:shape xmlns:v='urn:schemas-microsoft-com:vml'><v:textbox><div>{label}</div></v:textbox>"
            f'<ClientData ObjectType="{kind}"><Anchor>1, 11, 5, 19, 1, 31, 5, 32</Anchor>{inner}'
            "</ClientData></v:shape>"
        )

    controls = (
        control("Checkbox", "Insured", "<Checked>1</Checked>") + control("Radio", "Hired", "")
        + control("Checkbox", "", "<Checked>1</Checked>") + control("Note", "a comment", "")
        + control("Label", "Ship", "")
    )  # fmt: skip
    drawing = "<txBody><a:p><a:r><a:t>Insured</a:t></a:r></a:p></txBody>"
    content = cells("><v>1</v>") + '<drawing r:id="r_drawing"/>'
    text = text_of(with_sheet(content, drawing=drawing, controls=controls))
    assert text == "| 1 |\n| --- |\n\n☒ Insured\n☐ Hired\n☒ (row 6, column 2)\nShip"


def with_rich_values(*cells_: str) -> bytes:
    """A workbook whose cells may have a picture (1), a described picture (2) or a linked entity (3)."""
    files: dict[str, Any] = {**members(with_sheet(cells(*cells_)))}
    kinds = {"metadata": "sheetMetadata", "values": "rdRichValue", "kinds": "rdRichValueStructure"}
    relations = files["xl/_rels/workbook.xml.rels"].decode().replace("</Relationships>", "")
    more = relationships(kinds).partition('relationships">')[2]
    blocks = "".join(f'<bk><rvb i="{index}"/></bk>' for index in range(3))
    references = "".join(f'<bk><rc t="1" v="{index}"/></bk>' for index in range(3))
    return archive({
        **files,
        "xl/_rels/workbook.xml.rels": relations + more,
        "xl/metadata.xml": f"<m><futureMetadata>{blocks}</futureMetadata><valueMetadata>{references}"
        "</valueMetadata></m>",
        "xl/values.xml": '<d><rv s="0"><v>0</v></rv><rv s="0"><v>1</v><v>Quay</v></rv>'
        '<rv s="1"><v>Skar AG</v></rv></d>',
        "xl/kinds.xml": '<d><s t="_localImage"><k n="LocalImage"/><k n="Text"/></s><s t="_linkedentity2">'
        '<k n="_DisplayString"/></s></d>',
    })  # fmt: skip


def test_pictures_in_cells_are_noted_and_entities_have_their_name():
    error = 't="e" vm="{}"><v>#VALUE!</v>'
    data = with_rich_values(*(error.format(number) for number in (1, 2, 3, 9)))
    assert text_of(data) == "| Picture: Quay | Skar AG | #VALUE! |\n| --- | --- | --- |"
    assert xlsx(data).notes == ["2 pictures were not read."]


def test_merged_cells_end_with_the_rows_of_the_table():
    rows = (
        '<row r="1"><c r="A1" t="str"><v>Port</v></c><c r="B1" t="str"><v>Fee</v></c></row>'
        '<row r="2"><c r="A2" t="str"><v>Skar</v></c><c r="B2"><v>10</v></c></row>'
        '<row r="1048576"><c r="C1048576" t="str"><v>end</v></c></row>'
    )
    merges = "".join(f'<mergeCell ref="{letter}2:{letter}1048576"/>' for letter in "AB")
    text = text_of(with_sheet(f"<sheetData>{rows}</sheetData><mergeCells>{merges}</mergeCells>"))
    assert text == f"| Port | Fee |  |\n{RULE} --- |\n| Skar | 10 |  |\n| Skar | 10 | end |"
    # A row of merged cells is there once, and is no part of a header below an empty row.
    lines: list[list[Any]] = [["Port", "2026", None], [], [None, "in", "out"], ["Skar", 1, 2]]
    text = text_of(file_of(lines, lambda sheet: sheet.merge_cells("B1:C2")))
    assert text.startswith("| Port | 2026 | 2026 |\n")


def test_a_damaged_workbook_is_refused(subtests: pytest.Subtests):
    files: dict[str, Any] = {**members(file_of([["Port"]]))}
    sheet = "xl/worksheets/sheet1.xml"
    content = files[sheet].partition(b"<worksheet")[2]
    for lacking in (
        {name: part for name, part in files.items() if name != sheet},
        members(with_sheet(cells('t="s"><v>7</v>'))),
        {**files, sheet: b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet' + content},
    ):
        with subtests.test(parts=len(lacking)), pytest.raises(UnreadableDocument):
            xlsx(archive(lacking))
