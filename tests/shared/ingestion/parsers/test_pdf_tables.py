"""Tables and headings of PDFs: rows with their columns, whatever the lines of a cell."""

import io
from collections.abc import Sequence
from cProfile import Profile
from typing import Any

import pytest
from reportlab.lib.colors import black
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    ListFlowable,
    PageTemplate,
    Paragraph,
    SimpleDocTemplate,
    Table,
)

from shared.ingestion.parsers.pdf import pdf
from shared.ingestion.parsers.pdf_halves import by_halves
from shared.ingestion.parsers.pdf_headers import with_divided_rows
from shared.ingestion.parsers.pdf_tables import Cell, Line, tables_in
from tests.shared.ingestion.parsers.pdf_files import parsed

STYLES = getSampleStyleSheet()
BODY = STYLES["BodyText"]
FARES = [
    ["Ticket", "Low season", "High season", "Night crossing"],
    ["Adult", "18.50", "24.00", "31.00"],
    ["Child 4 to 14", "9.00", "12.00", "15.50"],
    ["Camper van up to 8 m", "71.00", "98.00", "not carried"],
]
GRID = ("GRID", (0, 0), (-1, -1), 0.5, black)
LONG = "Camper van up to 8 m including the driver and the crew"


def text_of(*story: Any) -> str:
    made = io.BytesIO()
    SimpleDocTemplate(made).build(list(story))
    return pdf(made.getvalue()).parts[0][1].strip()


def paragraph(text: str) -> Paragraph:
    return Paragraph(text, BODY)


def drawn(rows: Sequence[Sequence[Any]], *styles: Any, widths: Sequence[int] | None = None) -> Table:
    return Table([list(row) for row in rows], style=list(styles), colWidths=widths)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    header, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([header, f"|{' --- |' * len(rows[0])}", *others])


@pytest.mark.parametrize("styles", [(), (GRID,)], ids=["aligned", "ruled"])
def test_a_table_keeps_its_rows_and_columns_between_paragraphs(styles: Sequence[Any]):
    before, after = "The ferry sails every day.", "Dogs travel free of charge."
    text = text_of(paragraph(before), drawn(FARES, *styles), paragraph(after))
    assert text == f"{before}\n\n{markdown(FARES)}\n\n{after}"


@pytest.mark.parametrize("place", ["TOP", "MIDDLE", "BOTTOM"])
def test_a_cell_of_several_lines_is_one_cell(place: str):
    rows = [*FARES[:3], [paragraph(LONG), "71.00", "98.00", paragraph("not carried at any time of the year")]]
    style = ("VALIGN", (0, 0), (-1, -1), place)
    text = text_of(drawn(rows, style, GRID, widths=[120, 80, 80, 90]), paragraph("Dogs travel free."))
    row = [LONG, "71.00", "98.00", "not carried at any time of the year"]
    assert text == f"{markdown([*FARES[:3], row])}\n\nDogs travel free."


RIGHT = ("ALIGN", (1, 1), (-1, -1), "RIGHT")
BOLD = ("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold")
BETWEEN = [
    ("LINEAFTER", (0, 0), (-2, -1), 0.5, black), ("BOX", (0, 0), (-1, -1), 0.5, black),
    ("LINEBELOW", (0, 0), (-1, 0), 0.5, black),
]  # fmt: skip
SUMS = [["Sales", "10", "12"], ["Costs", "7", "9"]]
WITH_HEADER: list[tuple[list[list[str]], Sequence[Any]]] = [
    # Values stand beside their header, an empty cell moves no other.
    ([["Item", "Price", "Weight"], ["Clay", "3.50", "10"], ["Glaze", "12.00", "1"]], [RIGHT]),
    ([["Item", "Price", "Note"], ["Clay", "3.50", "red"], ["Glaze", "", "none left"], ["Salt", "4", ""]], []),
    # Years are a header in bold, with a unit or with a word.
    ([["", "2025", "2026"], *SUMS], [BOLD]),
    ([["", "2025 EUR", "2024 EUR"], *SUMS], []),
    ([["Item", "Year 1", "Year 2"], *SUMS], []),
    # A suspended hyphen stays; lines between columns alone leave the rows.
    ([["Vor- und Nachname", "Preis"], ["long- and short-term", "4"], ["Miet- oder Kaufpreis", "5"]], [GRID]),
    (FARES, BETWEEN),
]
WITHOUT_HEADER = [
    [["Length", "42 m"], ["Cabins", "12"], ["Crew", "9"]],
    [["Captain", "Ann Lee"], ["Home port", "Oban"], ["Flag", "Scotland"]],
    [["Standard", "from 99"], ["Pro", "199"], ["Max", "299"], ["Ultra", "399"]],
    [["Basic", "EUR 9", "USD 10"], ["Pro", "19", "20"], ["Max", "29", "30"]],
]


def test_a_table_has_a_header_if_its_first_row_names_columns(subtests: pytest.Subtests):
    for rows, styles in WITH_HEADER:
        with subtests.test(rows=rows):
            assert text_of(drawn(rows, *styles)) == markdown(rows)
    for rows in WITHOUT_HEADER:
        with subtests.test(rows=rows):
            assert text_of(drawn(rows)) == markdown([[""] * len(rows[0]), *rows])
    # Units below years belong to the header.
    rows = [["", "2025", "2024"], ["", "EUR", "EUR"], ["Sales", "10", "12"], ["", "7", "9"]]
    assert text_of(drawn(rows, BOLD)) == markdown([["", "2025 EUR", "2024 EUR"], *rows[2:]])


def test_lists_and_columns_of_prose_are_no_tables(subtests: pytest.Subtests):
    items = ["Bring your own cup to the kiln.", "Wear gloves near it.", "Open it late."]
    points = ListFlowable([paragraph(item) for item in items], bulletType="bullet")
    prose = "The kiln becomes 1,280 degrees hot. It cools for a whole day and then the potter opens it. "
    made = io.BytesIO()
    document = BaseDocTemplate(made)
    width = document.width / 2 - 6
    frames = [
        Frame(left, document.bottomMargin, width, document.height)
        for left in (document.leftMargin, document.leftMargin + width + 12)
    ]
    document.addPageTemplates(PageTemplate(frames=frames))
    justified = ParagraphStyle("justified", parent=BODY, alignment=TA_JUSTIFY)
    document.build([Paragraph(prose * 40, justified)])
    with subtests.test("list"):
        assert text_of(points) == "\n".join(f"• {item}" for item in items)
    with subtests.test("columns"):
        assert pdf(made.getvalue()).parts[0][1] == (prose * 40).strip()


def test_a_heading_of_several_lines_is_one_heading_and_a_paragraph_in_large_letters_none():
    long = (
        "Fares, timetables and conditions of carriage for all crossings between the islands and the mainland"
    )
    large = ParagraphStyle("large", BODY, fontSize=16, leading=20)
    headings = [Paragraph(text, STYLES["Heading1"]) for text in (long, "Scope")]
    text = text_of(
        *headings, paragraph("Ships pay. " * 40), Paragraph("Nominations are open until May. " * 8, large)
    )
    assert [line for line in text.splitlines() if line.startswith("#")] == [f"# {long}", "# Scope"]


SENTENCE = "The accounts are audited by the harbour office each year in May, as the law asks."
# The size of the letters, the distance from the line above, and the cells with their left edges.
_Drawn = tuple[float, float, Sequence[tuple[float, str]]]


def text_of_lines(*lines: _Drawn) -> str:
    """The text of a page of these lines and of sentences below them."""

    def draw(canvas: Canvas) -> None:
        y = 800.0
        for size, distance, cells in (*lines, (10, 30, [(50, SENTENCE)]), *[(10, 14, [(50, SENTENCE)])] * 9):
            y -= distance
            canvas.setFont("Helvetica", size)
            for left, text in cells:
                canvas.drawString(left, y, text)

    return parsed(draw).parts[0][1]


def rows_at(rows: Sequence[Sequence[str]], *lefts: float) -> list[_Drawn]:
    return [(10, 16, [*zip(lefts, row, strict=False)]) for row in rows]


CARGO = [
    ["Ore", "1,204", "1,310", "88", "91"],
    ["Grain", "640", "702", "41", "39"],
    ["Salt", "7", "8", "5", "6"],
]
LEFTS = (50, 150, 210, 300, 360)
YEARS = ["Cargo", "2025", "2026", "2025", "2026"]
KINDS = [["Cargo", "Net", "Gross", "Ships", "Crews"], *CARGO]
SHIP = ["Cargo", "Net", "Gross", "moored", "Crews"]
CLOSE = ["Iron", "12,204,500", "11,000", "2", "3"]
# The lines of names and values, and the table.
NAMES: list[tuple[str, list[_Drawn], list[list[str]]]] = [
    ("groups of the same names",
     [(10, 16, [(175, "Tonnes"), (330, "Ships")]), *rows_at([YEARS, *CARGO], *LEFTS)],
     [["Cargo", "Tonnes 2025", "Tonnes 2026", "Ships 2025", "Ships 2026"], *CARGO]),
    ("a group in the middle of its names",
     [(10, 16, [(176, "Tonnes"), (362, "all")]), *rows_at(KINDS, *LEFTS)],
     [["Cargo", "Tonnes Net", "Tonnes Gross", "Ships", "all Crews"], *CARGO]),
    ("names close to each other",
     [(10, 16, [(50, "Cargo"), (150, "Net weight"), (206, "Gross weight"), (300, "A"), (360, "B")]),
      *rows_at(CARGO, *LEFTS)], [["Cargo", "Net weight", "Gross weight", "A", "B"], *CARGO]),
    ("a name of two columns", [(10, 16, [(50, "Cargo"), (150, "Net and gross in t"), (300, "A"), (360, "B")]),
     *rows_at(CARGO, *LEFTS)], [["Cargo", *["Net and gross in t"] * 2, "A", "B"], *CARGO]),
    ("names of two lines, one after the other",
     [(10, 28, [(50, "Cargo")]), *[(10, step, [(left, part)]) for left, name in zip(LEFTS[1:], (
         "Net weight", "Gross weight", "Ships moored", "Crew ashore"), strict=True)
      for step, part in zip((-12, 12), name.split(), strict=True)], *rows_at(CARGO, *LEFTS)],
     [["Cargo", "Net weight", "Gross weight", "Ships moored", "Crew ashore"], *CARGO]),
    ("a name of two lines", [(10, 16, [(299, "Ship")]), (10, 12, [*zip(LEFTS, SHIP, strict=True)]),
     *rows_at(CARGO, *LEFTS)], [["Cargo", "Net", "Gross", "Ship moored", "Crews"], *CARGO]),
    ("values close to each other",
     [*rows_at([KINDS[0], *CARGO[:2]], *LEFTS), *rows_at([CLOSE], 50, 150, 209, 300, 360),
      *rows_at(CARGO[2:], *LEFTS)], [*KINDS[:3], CLOSE, CARGO[2]]),
]  # fmt: skip


def test_names_and_values_stand_in_the_columns_of_the_rows(subtests: pytest.Subtests):
    for name, lines, rows in NAMES:
        with subtests.test(name):
            assert markdown(rows) in text_of_lines((10, 40, [(50, "In tonnes.")]), (10, 30, []), *lines)

    def turned(canvas: Canvas) -> None:
        canvas.rotate(90)
        for number, row in enumerate([YEARS, *CARGO]):
            name, *values = zip(LEFTS, row, strict=True)
            for left, text in (*values, name):
                canvas.drawString(left, -100 - 16 * number, text)

    assert markdown([YEARS, *CARGO]) in parsed(turned).parts[0][1]


# Lines close above names that are no part of them: units, captions, titles.
NO_NAMES: list[tuple[str, Sequence[_Drawn]]] = [
    ("(in Tonnen)", [(10, 16, [(150, "(in Tonnen)")])]), ("in Tonnen", [(10, 16, [(150, "in Tonnen")])]),
    ("(t)", [(10, 16, [(150, "(t)")])]), ("Alle Werte", [(10, 16, [(290, "Alle Werte")])]),
    ("In t:", [(10, 16, [(150, "In t:")])]), ("Table", [(10, 16, [(50, "Table")])]),
    ("Net and all", [(10, 16, [(150, "Net and all")])]),
]  # fmt: skip


def test_lines_above_names_are_no_part_of_them(subtests: pytest.Subtests):
    names = ["Ware", "2025", "2026", "2027", "2028"]
    for name, above in NO_NAMES:
        with subtests.test(name):
            text = text_of_lines(
                (10, 40, []), *above, (10, 12, [*zip(LEFTS, names, strict=True)]), *rows_at(CARGO, *LEFTS)
            )
            assert text.startswith(f"{name}\n")
            assert markdown([names, *CARGO]) in text


def test_lines_beside_values_are_no_names_and_no_values(subtests: pytest.Subtests):
    table = markdown([[""] * 5, *CARGO])
    close = [(50, "Cargo"), (150, "Net weight"), (206, "Gross weight"), (300, "A"), (360, "B")]
    for above, below in (
        # Larger letters, two names for five columns, values that stand over two columns.
        ((12, 16, close), ()),
        ((10, 16, [(50, "Gross"), (100, "Ships moored"), (153, "Tonnes in Oster")]), ()),
        ((10, 16, [(183, "1,000"), (253, "HarbourHarbourHarbour"), (363, "1,000")]), ()),
        # A line with one number.
        ((10, 16, []), [(10, 16, [(60, "Net"), (150, "Ships moored"), (355, "7 t")])]),
    ):
        with subtests.test(above=above, below=below):
            assert f"{table}\n\n" in text_of_lines((10, 30, []), above, *rows_at(CARGO, *LEFTS), *below)


@pytest.mark.parametrize(
    ("columns", "name", "is_whole", "is_divided"),
    [
        (50, "N", False, True),
        (51, "N", False, False),
        (5, "N" * 40, False, False),
        (5, "Net", True, False),
    ],
)
def test_a_header_has_so_many_columns_and_characters(
    columns: int, name: str, is_whole: bool, is_divided: bool
):
    """The names of the first two columns stand close to each other."""

    def line(cells: Sequence[Cell], baseline: float, is_whole: bool = False) -> Line:
        return Line(" ".join(cell.text for cell in cells), 10, tuple(cells), baseline, 10, is_whole=is_whole)

    places = [(60.0 * at, 60.0 * at + 40) for at in range(columns)]
    words = tuple(Cell(text, *place) for text, place in zip(("Port", name), places, strict=False))
    names = [Cell(f"Port {name}", 0, 100, words), *(Cell(name[:38], *place) for place in places[2:])]
    rows = [line([Cell("7", *place) for place in places], 700 - 14 * number) for number in range(3)]
    header = with_divided_rows([line(names, 714, is_whole), *rows])[0]
    assert (len(header.cells) == columns) is is_divided


def test_titles_far_from_each_other_and_long_ones_are_headings():
    titles = [
        "Part One: The foundations of the harbour and its history",
        "Chapter One: The early years from the founding to the storm",
        "Chapter Two: Growth and crisis in the years after the storm",
    ]
    text = text_of_lines(*((16, 60, [(50, title)]) for title in titles))
    assert [line for line in text.splitlines() if line.startswith("#")] == [f"# {title}" for title in titles]
    long = [
        "Effects of continuous irrigation on the nitrogen",
        "balance of winter wheat in the northern plains of",
        "Germany between nineteen ninety and two thousand",
        "twenty: a randomised trial",
    ]
    assert f"# {' '.join(long)}\n" in text_of_lines(*((20, 22, [(50, line)]) for line in long))


def test_lines_of_a_large_text_with_wide_spacing_are_no_headings():
    line = "The foundation had more members in the second year of the harbour than in any year before"
    text = text_of_lines(*((16, 40, [(50, f"{line} {number}")]) for number in range(8)))
    assert line in text
    assert "#" not in text


def test_a_line_whose_cells_overlap_is_no_table():
    cells = (Cell("one", 100, 300), Cell("other", 230, 400))
    assert tables_in([Line("one other", 10, cells, 700, 10), Line("below", 10, (), 680, 10)]) == []


def test_drawn_lines_divide_cells_of_several_lines_and_merged_ones():
    rows = [
        ["", "Threshold\nto air\nkg a year", "Threshold\nto water\nkg a year", "Remark"],
        ["Chlorine and inorganic\ncompounds", "10 000", "-", "as HCl, measured\nat the stack"],
        ["Metals", "", "", ""],
        ["Zinc", "200", "100", "as Zn"],
        ["Lead", "200", "20", ""],
    ]
    spans = ("SPAN", (0, 2), (-1, 2)), ("SPAN", (3, 3), (3, 4)), ("VALIGN", (0, 0), (-1, -1), "MIDDLE")
    assert text_of(drawn(rows, GRID, *spans)) == markdown(
        [
            ["", "Threshold to air kg a year", "Threshold to water kg a year", "Remark"],
            ["Chlorine and inorganic compounds", "10 000", "-", "as HCl, measured at the stack"],
            ["Metals", "", "", ""],
            ["Zinc", "200", "100", "as Zn"],
            ["Lead", "200", "20", "as Zn"],
        ]
    )


def test_boxes_that_touch_a_table_are_no_names_of_its_columns():
    boxes = ["Sold to:\nAnn Miller\nHigh Street 5\nSkar", "Invoice 4711\nDate 1.2.2027\nDue 1.3.2027"]
    upper, lower = drawn([boxes], GRID, widths=[200, 200]), drawn(FARES, GRID, widths=[160, 80, 80, 80])
    assert text_of(upper, lower).split("\n\n") == [
        *(box.replace("\n", " ") for box in boxes),
        markdown(FARES),
    ]


def test_frames_around_texts_are_no_table():
    story = [drawn([[paragraph(text)]], GRID, widths=[400]) for text in ("Dogs travel free.", "Cats too.")]
    assert "|" not in text_of(*story)


ASSETS = [["Land", "5", "6"], ["Buildings", "15", "13"], ["Cash", "70", "61"], ["Total", "90", "80"]]
LIABILITIES = [["Capital", "40", "40"], ["Reserves", "6", "-2"], ["Loans", "44", "42"], ["Total", "90", "80"]]


def test_halves_of_a_balance_sheet_are_two_tables():
    header, sides = ["31.12.2026", "31.12.2025"], (ASSETS, LIABILITIES)
    rows = [[*left, *right] for left, right in zip(*sides, strict=True)]
    table = drawn([["Assets", *header, "Liabilities", *header], *rows], widths=[80, 80, 80] * 2)
    texts = text_of(table).split("\n\n")
    names = (["Assets", *header], ["Liabilities", *header])
    assert [*filter(None, map(str.strip, texts))] == [
        markdown([name, *side]) for name, side in zip(names, sides, strict=True)
    ]
    # A row of results has two names and two numbers, and is one row.
    results = [["Skar", "2", "Oster", "1"], ["Lund", "0", "Halden", "3"], ["Moss", "1", "Drammen", "1"]]
    assert "| Lund | 0 | Halden | 3 |" in text_of(drawn(results))


def test_pairs_of_columns_of_one_table_stay_together(subtests: pytest.Subtests):
    teams = "Team,Goals,Guest,Goals Skar,3,Oster,1 Alk,0,Moss,2 Lund,1,Ry,1"
    prices = "Item,Price,Option,Surcharge Camera,300,Bag,10 Phone,500,Case,20 Tripod,80,, Watch,200,Strap,15"
    cities = "City,km,Town,miles" + " Skar,3,Oster,5" * 40
    for table in (teams, prices, cities):
        rows = [row.split(",") for row in table.split()]
        with subtests.test(header=rows[0]):
            filled = [[*filter(None, row)] for row in rows]
            assert markdown(rows) in text_of_lines(*rows_at(filled, 50, 150, 250, 350))


def test_lines_around_the_halves_are_no_part_of_them():
    letterhead = [["Ann Miller", "Harbour Bank"], ["High Street", "Main Square"], ["Skar", "Oster"]]
    rows = [
        ["Income", "EUR", "Costs", "EUR"],
        ["Deposits", "300", "Loans", "10"],
        ["Interest", "5", "Fees", "2"],
        ["Rent", "9", "Tax", "3"],
    ]
    first, *others = rows_at(rows, 50, 150, 350, 450)
    text = text_of_lines(*rows_at(letterhead, 50, 350), (10, 40, first[2]), *others)
    for half in (slice(2), slice(2, 4)):
        assert markdown([row[half] for row in rows]) in text
    assert f"| {SENTENCE}" not in text


def test_rows_of_many_halves_take_linear_time():
    def calls(count: int) -> int:
        texts = [("City", "km", "Town", "miles"), *[("Skar", "3", "Oster", "4")] * count]
        cells = [tuple(Cell(text, 60 * at, 60 * at + 40) for at, text in enumerate(row)) for row in texts]
        rows = [Line("", 10, row, -12.0 * number, 10) for number, row in enumerate(cells)]
        profile = Profile()
        profile.runcall(by_halves, rows)
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(400) < 5 * calls(100)


def test_texts_above_a_heading_are_no_header_of_the_values_below_it(subtests: pytest.Subtests):
    figures = [["Revenue", "1,234"], ["Costs", "900"], ["Profit", "334"]]
    for above in (["Skar Ltd.", "Annual report"], ["Skar Ltd.", "Oster, 3 May"], ["Skar Ltd.", "3.5.2027"]):
        with subtests.test(above=above):
            rows = rows_at(figures, 50, 400)
            text = text_of_lines(*rows_at([above], 50, 400), (20, 40, [(50, "Key figures")]), *rows)
            assert text.startswith(" ".join(above))
            assert markdown([["", ""], *figures]) in text


@pytest.mark.parametrize("names", [("Year 1", "Year 2"), ("Dec 2024", "30 Nov 2024")])
def test_a_header_above_titles_is_that_of_the_rows_below_them(names: tuple[str, str]):
    def draw(canvas: Canvas) -> None:
        rows = (["", *names], ["# Assets"], *ASSETS[:2], ["# Current"], ["Stocks"], *ASSETS[2:])
        for number, row in enumerate(rows):
            canvas.setFont("Helvetica", 16 if row[0].startswith("#") else 10)
            for column, cell in enumerate(row):
                canvas.drawRightString(150 + 80 * column, 700 - 20 * number, cell.lstrip("# "))
        canvas.drawString(50, 100, SENTENCE)

    text = parsed(draw).parts[0][1]
    assert text.count(f"|  | {names[0]} | {names[1]} |") == 2
    assert text.index("# Current") < text.rindex(names[0]) < text.index("| Stocks |")
