"""PDF files: columns, exponents, forms, comments, and notes on unread parts."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from pypdfium2 import PdfDocument, raw
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from shared.errors import UnreadableDocument
from shared.ingestion.parsers import ocr
from shared.ingestion.parsers.parsed_file import ParsedFile
from shared.ingestion.parsers.pdf import _named, pdf

LEFT = [
    "The harbour office opens at seven and closes",
    "at nineteen each day of the working week and",
    "visitors report to the desk at the main gate.",
]
RIGHT = [
    "Fees for yachts are due on the first day and",
    "are paid in cash or by card at the terminal",
    "which stands beside the diesel pump station.",
]
THIRD = ["Dogs are kept on a lead", "on all piers and at the", "fish market next door."]
Draw = Callable[[Canvas], None]


def made(*draws: Draw) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    for draw in draws:
        canvas.setFont("Helvetica", 10)
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def parsed(*draws: Draw) -> ParsedFile:
    return pdf(made(*draws))


def words_of(*draws: Draw) -> str:
    return " ".join(parsed(*draws).parts[0][1].split())


def text(*lines: str, x: float = 50, y: float = 700) -> Draw:
    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(lines):
            canvas.drawString(x, y - 14 * number, line)

    return draw


def line_by_line(*columns: list[str], x: tuple[int, ...], y: float = 700) -> Draw:
    def draw(canvas: Canvas) -> None:
        for number, row in enumerate(zip(*columns, strict=True)):
            for left, line in zip(x, row, strict=True):
                canvas.drawString(left, y - 14 * number, line)

    return draw


def test_columns_drawn_line_by_line_are_read_one_after_the_other(subtests: pytest.Subtests):
    left, right, third = (" ".join(column) for column in (LEFT, RIGHT, THIRD))
    narrow = [line[:22].strip() for line in LEFT]
    cases: dict[str, tuple[Draw, str]] = {
        "wide": (line_by_line(LEFT, RIGHT, x=(50, 320)), f"{left} {right}"),
        "narrow gap": (line_by_line(LEFT, RIGHT, x=(50, 262)), f"{left} {right}"),
        "long": (line_by_line(LEFT * 6, RIGHT * 6, x=(50, 320)), " ".join([left] * 6 + [right] * 6)),
        "a longer left column": (
            line_by_line([*LEFT, "Bring your papers along."], [*RIGHT, ""], x=(50, 320)),
            f"{left} Bring your papers along. {right}",
        ),
        "a longer right column": (
            line_by_line([*LEFT, ""], [*RIGHT, "It is open at night too."], x=(50, 320)),
            f"{left} {right} It is open at night too.",
        ),
        "three": (
            line_by_line(LEFT * 2, RIGHT * 2, THIRD * 2, x=(30, 240, 450)),
            " ".join([left] * 2 + [right] * 2 + [third] * 2),
        ),
        "column by column": (
            lambda canvas: (text(*LEFT)(canvas), text(*RIGHT, x=320)(canvas))[0],
            f"{left} {right}",
        ),
        "under a title": (
            lambda canvas: (
                text("Port news of the whole week, for all who live or work beside the harbour.", y=730)(
                    canvas
                ),
                line_by_line(LEFT, RIGHT, x=(50, 320))(canvas),
            )[0],
            f"Port news of the whole week, for all who live or work beside the harbour. {left} {right}",
        ),
    }
    for case, (draw, expected) in cases.items():
        with subtests.test(case):
            assert words_of(draw) == expected
    rows = line_by_line(["Name", "Mooring of a yacht", "Water"], ["Fee", "12.00", "1.50"], x=(50, 320))
    with subtests.test("a table"):
        assert "| Mooring of a yacht | 12.00 |" in parsed(rows).parts[0][1]
    with subtests.test("rows of long cells"):
        assert words_of(line_by_line(narrow, ["Open", "Closed", "Main gate"], x=(50, 320))).count("|") > 0


def scripts(*pieces: tuple[str, float]) -> Draw:
    """Pieces of one line, each with its rise; raised and lowered ones in smaller letters."""

    def draw(canvas: Canvas) -> None:
        x = 50.0
        for piece, rise in pieces:
            size = 8 if rise else 12
            canvas.setFont("Helvetica", size)
            canvas.drawString(x, 700 + rise, piece)
            x += canvas.stringWidth(piece, "Helvetica", size)

    return draw


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([("About 3 x 10", 0), ("6", 5), (" cells", 0)], "About 3 x 10⁶ cells"),
        ([("Flow 10", 0), ("-6", 4), (" m", 0), ("3", 4), ("/s in May", 0)], "Flow 10⁻⁶ m³/s in May"),
        ([("Al", 0), ("2", -2), ("O", 0), ("3", -2), (" is clay", 0)], "Al₂O₃ is clay"),
        ([("See the remark", 0), ("4", 4), (" below", 0)], "See the remark⁴ below"),
        ([("The value e", 0), ("-kt", 4), (" falls", 0)], "The value e^(-kt) falls"),
        ([("V", 0), ("max", -2), (" is 5", 0)], "V_max is 5"),
        ([("Water with SO", 0), ("4", -2), ("2-", 5), (" ions", 0)], "Water with SO₄²⁻ ions"),
        ([("the 4", 0), ("th", 4), (" pier", 0)], "the 4th pier"),
        ([("4", 4), (" A note at the foot.", 0)], "4 A note at the foot."),
        ([("Room 106 has 12 m", 0), ("2", 4)], "Room 106 has 12 m²"),
        ([("In 2027 we paid 1,250.50 euros", 0)], "In 2027 we paid 1,250.50 euros"),
    ],
)
def test_exponents_and_indices_are_not_joined_to_the_letters_before(
    pieces: list[tuple[str, float]], expected: str
):
    assert words_of(scripts(*pieces)) == expected


def form(canvas: Canvas) -> None:
    fields = canvas.acroForm
    text("Name of ship", "")(canvas)
    fields.textfield(name="f1", x=200, y=695, width=150, height=18, value="Kittiwake")
    text("Insured", y=660)(canvas)
    fields.checkbox(name="f2", x=200, y=655, checked=True)
    text("Crew list:", y=620)(canvas)
    fields.checkbox(name="f3", x=200, y=615, checked=False)
    text("Quay", y=580)(canvas)
    fields.choice(name="f4", x=200, y=575, width=100, height=18, value="North", options=["North", "South"])
    text("Pay", y=540)(canvas)
    text("cash", x=225, y=540)(canvas)
    text("by card", x=325, y=540)(canvas)
    fields.radio(name="f5", value="a", selected=False, x=200, y=535)
    fields.radio(name="f5", value="b", selected=True, x=300, y=535)
    text("From", y=500)(canvas)
    text("Until", x=300, y=500)(canvas)
    fields.textfield(name="f6", x=100, y=495, width=100, height=18, value="3 May 2027")
    fields.textfield(name="f7", x=350, y=495, width=100, height=18, value="9 May 2027")
    text("Remarks of the skipper", y=460)(canvas)
    fields.textfield(name="f8", x=50, y=400, width=400, height=55, value="Needs shore power")
    fields.checkbox(name="f9", x=50, y=355, checked=True)
    text("Send me the bill", x=80, y=360)(canvas)
    fields.textfield(name="f10", tooltip="Draught in metres", x=300, y=300, width=90, height=18, value="2.10")
    text("Not filled in", y=250)(canvas)
    fields.textfield(name="f11", x=200, y=245, width=90, height=18, value="")
    text("Home harbour. Leave this empty for yachts.", y=150)(canvas)
    fields.textfield(name="f14", x=300, y=145, width=90, height=18, value="Skar")
    text("See the notes", y=202)(canvas)
    text("Number of the crew", x=300, y=220)(canvas)
    text("-", x=338, y=202)(canvas)
    fields.textfield(name="f12", x=300, y=195, width=34, height=18, value="01")
    fields.textfield(name="f13", x=348, y=195, width=80, height=18, value="0573846")


def test_fields_of_a_form_are_label_and_value():
    lines = [line for line in parsed(form).parts[0][1].splitlines() if line]
    assert lines == [
        "Name of ship: Kittiwake",
        "Insured: yes",
        "Crew list: no",
        "Quay: North",
        "Pay: by card",
        "cash",
        "by card",
        "From: 3 May 2027",
        "Until: 9 May 2027",
        "Remarks of the skipper: Needs shore power",
        "Send me the bill: yes",
        "Draught in metres: 2.10",
        "Not filled in",
        "See the notes",
        "Home harbour: Skar. Leave this empty for yachts.",
        "Number of the crew: 01-0573846",
        "-",
    ]


def test_a_label_left_of_its_field_has_precedence():
    def income(canvas: Canvas) -> None:
        text("Statement of all of the income of the household in the year 2027", y=700)(canvas)
        rows = [("Wages", "1000"), ("Interest", "50")]
        for number, (label, value) in enumerate(rows):
            y = 684 - 16 * number
            text(label, y=y)(canvas)
            canvas.acroForm.textfield(name=label, value=value, x=280, y=y - 2, width=100, height=14)

    def rents(canvas: Canvas) -> None:
        text("Rent", x=200, y=700)(canvas)
        for number, (label, value) in enumerate([("January", "700"), ("February", "710")]):
            y = 680 - 20 * number
            text(label, y=y)(canvas)
            canvas.acroForm.textfield(name=label, value=value, x=195, y=y - 2, width=80, height=14)

    assert parsed(income).parts[0][1].split("\n")[-2:] == ["Wages: 1000", "Interest: 50"]
    assert parsed(rents).parts[0][1].split("\n") == ["Rent", "January: 700", "February: 710"]


def test_an_abbreviation_is_no_end_of_a_label():
    def draw(canvas: Canvas) -> None:
        for number, label in enumerate(("Dept. Name", "Acct. Number of the firm", "Department. Name")):
            text(label, y=700 - 25 * number)(canvas)
            field = {"x": 300, "y": 698 - 25 * number, "width": 80, "height": 14}
            canvas.acroForm.textfield(name=label, value="Sales", **field)

    lines = ["Dept. Name: Sales", "Acct. Number of the firm: Sales", "Department. Name: Sales"]
    assert parsed(draw).parts[0][1].split("\n") == lines


def test_numbers_without_a_hyphen_between_them_are_several():
    def draw(canvas: Canvas) -> None:
        text("Adults and children on board", y=700)(canvas)
        for number, value in enumerate(("2", "3")):
            field = {"x": 50 + 60 * number, "y": 680, "width": 40, "height": 14}
            canvas.acroForm.textfield(name=value, value=value, **field)

    assert words_of(draw) == "Adults and children on board: 2, 3"


def list_box(canvas: Canvas) -> None:
    options = {"name": "f1", "x": 200, "y": 640, "width": 100, "height": 60, "options": ["Skar", "Alk"]}
    text("Port", y=670)(canvas)
    canvas.acroForm.listbox(value="Alk", **options)


def test_a_list_box_has_its_options():
    assert "Port: Alk (of Skar, Alk)" in words_of(list_box)
    # The name of the key is as long.
    without = pdf(made(list_box).replace(b"/Opt ", b"/Non ")).parts[0][1]
    assert "Port: Alk" in without.splitlines()


def test_fields_outside_of_the_form_are_read():
    page = pdf(made(form).replace(b"/AcroForm", b"/NoForm__")).parts[0][1]
    for line in ("Name of ship: Kittiwake", "Insured: yes", "Crew list: no", "Draught in metres: 2.10"):
        assert line in page.splitlines()


def test_labelled_lines_are_not_joined():
    lines = ["Quotation", "Position 1: 60 rollers of steel at 228 euros", "Position 2: assembly in the hall"]
    assert parsed(text(*lines)).parts[0][1].splitlines() == lines


def marked(mark: str, font: str) -> Draw:
    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(LEFT):
            canvas.setFont(font, 12)
            canvas.drawString(50, 700 - 14 * number, mark)
            canvas.setFont("Helvetica", 12)
            canvas.drawString(80, 700 - 14 * number, line)

    return draw


def test_bullets_of_any_font_are_no_column(subtests: pytest.Subtests):
    for mark, font in (("y", "Courier"), ("+", "Helvetica")):
        with subtests.test(mark):
            lines = parsed(marked(mark, font)).parts[0][1].split("\n")
            assert [line for line in lines if line] == [f"- {line}" for line in LEFT]


def test_a_column_of_one_letter_digit_or_currency_is_kept(subtests: pytest.Subtests):
    for mark, font in (("A", "Helvetica"), ("A", "Helvetica-Bold"), ("2", "Courier"), ("\u20ac", "Courier")):
        with subtests.test(mark, font=font):
            assert parsed(marked(mark, font)).parts[0][1].count(mark) == len(LEFT)


def clauses(canvas: Canvas) -> None:
    rows = ("*4. Fees", "*4.1 Yachts", "Yachts pay in May.", "*5. Term", "The term is a year.",
            "*100 EUR per berth", "*12. Mai 2026", "Ships pay each day.", "*1. Gloves", "*2. Boots",
            "*3. A coat", "Bring them.", "*1. Gloves", "*2. Boots and a coat")  # fmt: skip
    for number, row in enumerate(rows):
        canvas.setFont("Helvetica-Bold" if row.startswith("*") else "Helvetica", 10)
        canvas.drawString(50, 700 - 14 * number, row.lstrip("*"))


def test_bold_numbered_lines_above_text_are_headings():
    assert [line for line in parsed(clauses).parts[0][1].splitlines() if line] == [
        "## 4. Fees",
        "### 4.1 Yachts",
        "Yachts pay in May.",
        "## 5. Term",
        "The term is a year. 100 EUR per berth",
        "12. Mai 2026",
        "Ships pay each day.",
        "1. Gloves",
        "2. Boots",
        "3. A coat",
        "Bring them.",
        "1. Gloves",
        "2. Boots and a coat",
    ]


def turned(degrees: int) -> Draw:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(degrees)
        canvas.translate(300, 400)
        canvas.rotate(degrees)
        rows = [("Port", "2026", "2027"), ("Skar", "11", "12"), ("Oster Bay", "13", "14")]
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                canvas.drawString(120 * column, -18 * number, cell)

    return draw


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_tables_of_turned_pages_keep_their_rows(degrees: int):
    assert "| Oster Bay | 13 | 14 |" in parsed(turned(degrees)).parts[0][1]


def picture(width: float, height: float, x: float = 50, y: float = 300) -> Draw:
    def draw(canvas: Canvas) -> None:
        from PIL import Image

        drawn = Image.effect_noise((40, 40), 60 + width % 7)
        canvas.drawImage(ImageReader(drawn), x, y, width, height)

    return draw


def both(*draws: Draw) -> Draw:
    def draw(canvas: Canvas) -> None:
        for each in draws:
            each(canvas)

    return draw


def hidden(canvas: Canvas) -> None:
    written = canvas.beginText(50, 700)
    written.setTextRenderMode(3)
    written.textLine("The crane lifts eleven tonnes, and it is checked each May.")
    canvas.drawText(written)


def mirrored(canvas: Canvas) -> None:
    canvas.translate(A4[0], A4[1])
    canvas.scale(-1, -1)
    written = canvas.beginText(50, 700)
    written.setFont("Helvetica", -10)
    written.textLines(LEFT * 10)
    canvas.drawText(written)


def group(canvas: Canvas) -> None:
    canvas.beginForm("group", 0, 0, A4[0], A4[1])
    picture(60, 40, x=0, y=0)(canvas)
    canvas.endForm()
    canvas.scale(0.9, 0.9)
    canvas.doForm("group")


TYPED = text("The crane lifts eleven tonnes.", "It is checked each May.")
SCAN = picture(A4[0], A4[1], x=0, y=0)
PAGE = text(*LEFT * 10)
FAX = both(
    text("2027-05-03 10:33  FROM: HARBOUR OFFICE  +49 40 5550123  TO: +49 40 5550199  P. 01/02", y=825),
    text("RECEIVED 3 May 2027", "Legal department", x=400, y=60),
)
STRIPS = both(*(picture(A4[0], 16, x=0, y=16 * number) for number in range(53)))
FIGURE = both(*(picture(200, 10, y=100 + 10 * number) for number in range(20)))
LETTERS = both(*(picture(6, 8, x=50 + 9 * (n % 50), y=700 - 14 * (n // 50)) for n in range(1000)))
BLANK: Draw = lambda canvas: None  # noqa: E731


@pytest.mark.parametrize(
    ("draws", "notes"),
    [
        ([TYPED], []),
        ([TYPED, BLANK, TYPED], []),
        ([TYPED, SCAN, TYPED], ["Page 2 has no text; OCR is off."]),
        (
            [TYPED, TYPED, TYPED, SCAN, both(SCAN, text("Scan 12"))],
            ["Page 4 has no text; OCR is off.", "Page 5 has little text beside a picture; OCR is off."],
        ),
        ([TYPED, picture(300, 300)], ["Page 2 has no text; OCR is off."]),
        ([both(TYPED, picture(200, 200))], ["1 picture was not read."]),
        ([both(TYPED, picture(200, 200)), both(TYPED, picture(201, 150))], ["2 pictures were not read."]),
        ([both(TYPED, picture(100, 40))], []),
        ([both(TYPED, picture(200, 150))] * 3, []),
        ([both(SCAN, PAGE)], []),
        # The line of a fax, a stamp and the number of the page are not the text of a scan.
        ([PAGE, PAGE, both(SCAN, FAX)], ["Page 3 has little text beside a picture; OCR is off."]),
        ([PAGE, PAGE, both(STRIPS, FAX)], ["Page 3 has little text beside a picture; OCR is off."]),
        ([PAGE, PAGE, STRIPS], ["Page 3 has no text; OCR is off."]),
        ([PAGE, PAGE, LETTERS], ["Page 3 has no text; OCR is off."]),
        ([both(SCAN, mirrored)], []),
        # OCR of another program.
        ([both(TYPED, SCAN)], []),
        ([both(SCAN, hidden)], []),
        # A background is no scan, and neither is a picture in a group as large as the page.
        ([both(SCAN, TYPED)] * 3, []),
        ([both(TYPED, group)], []),
        ([both(PAGE, FIGURE)], ["1 picture was not read."]),
    ],
    ids=range(20),
)
def test_a_note_says_which_pages_and_pictures_are_not_read(draws: list[Draw], notes: list[str]):
    assert parsed(*draws).notes == notes


def test_a_scan_with_a_line_of_a_fax_on_each_page_fails():
    with pytest.raises(UnreadableDocument, match="only pictures"):
        parsed(both(SCAN, FAX))


def test_a_file_with_most_pages_unread_fails_with_the_reason():
    for draws in ([SCAN], [TYPED, SCAN, SCAN], [TYPED, BLANK, SCAN, SCAN]):
        with pytest.raises(UnreadableDocument, match="tesseract") as refused:
            parsed(*draws)
        assert refused.value.code == "no_text"


def test_scanned_pages_among_others_are_read_by_ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "tesseract"
    program.write_text('#!/bin/sh\n[ "$(head -c 2)" = P5 ] || exit 1\necho "Seen: a kiln."\n')
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "PROGRAM", str(program))
    read = parsed(TYPED, SCAN, SCAN)
    assert [" ".join(part.split())[:13] for _, part in read.parts] == [
        "The crane lif", "Seen: a kiln.", "Seen: a kiln.",
    ]  # fmt: skip
    assert read.notes == []


def test_a_page_in_which_ocr_finds_nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "PROGRAM", str(program))
    read = parsed(PAGE, PAGE, both(SCAN, FAX))
    assert read.notes == ["Page 3 has little text beside a picture; OCR found nothing."]
    assert read.parts[2][1]
    with pytest.raises(UnreadableDocument, match="OCR found no text"):
        parsed(SCAN)


def without_map(*lines: str) -> Draw:
    """Text in a font whose letters are codes without a meaning."""

    def draw(canvas: Canvas) -> None:
        import reportlab
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.ttfonts import TTFont

        font = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"
        pdfmetrics.registerFont(TTFont("Coded", str(font), asciiReadable=0))
        canvas.setFont("Coded", 12)
        for number, line in enumerate(lines):
            canvas.drawString(50, 500 - 20 * number, line)

    return draw


def test_letters_without_a_unicode_map_are_noted_or_fail(monkeypatch: pytest.MonkeyPatch):
    coded = without_map("The quick brown fox jumps over the lazy dog", "and pays 120 euros for it")

    def file(*draws: Draw) -> bytes:
        return made(*draws).replace(b"/ToUnicode", b"/NoUnicode")

    assert pdf(
        file(both(TYPED, TYPED, TYPED, text(*LEFT, *RIGHT, y=300), without_map("Total 120 euros")))
    ).notes == ["Letters of page 1 are unreadable (no Unicode map)."]
    assert pdf(file(TYPED, coded)).notes == ["Page 2 was not read: no Unicode map; OCR is off."]
    with pytest.raises(UnreadableDocument, match="cannot be read"):
        pdf(file(coded))


def test_comments_are_text_and_attached_files_are_noted():
    document = PdfDocument(made(TYPED))
    page = document[0]
    for kind, contents, author in (
        (raw.FPDF_ANNOT_FREETEXT, "Approved on 3 May", "Ann"),
        (raw.FPDF_ANNOT_TEXT, "Is this still true?", "Ann Lee"),
        (raw.FPDF_ANNOT_HIGHLIGHT, "Eleven since 2026", ""),
        (raw.FPDF_ANNOT_POPUP, "Is this still true?", ""),
    ):
        annotation = raw.FPDFPage_CreateAnnot(page.raw, kind)
        for key, value in ((b"Contents", contents), (b"T", author)):
            units = (value + "\0").encode("utf-16-le")
            raw.FPDFAnnot_SetStringValue(
                annotation, key, (raw.FPDF_WCHAR * (len(units) // 2)).from_buffer_copy(units)
            )
        raw.FPDFPage_CloseAnnot(annotation)
    page.gen_content()
    document.new_attachment("budget.csv").set_data(b"a,b")
    file = io.BytesIO()
    document.save(file)
    read = pdf(file.getvalue())
    assert read.parts[0][1].endswith("Approved on 3 May\n\nAnn Lee: Is this still true?\n\nEleven since 2026")
    assert read.notes == ["The attached file budget.csv was not read."]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([3], "Page 3"),
        ([3, 4], "Pages 3 and 4"),
        ([3, 5], "Pages 3 and 5"),
        ([1, 2, 3, 4], "Pages 1 to 4"),
        ([1, 2, 3, 7, 9], "Pages 1 to 3, 7 and 9"),
        ([1, 2, 5], "Pages 1, 2 and 5"),
    ],
)
def test_pages_are_named(numbers: list[int], expected: str):
    assert _named(numbers) == expected


def test_ocr_uses_all_installed_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "tesseract"
    listed = 'echo "List of available languages (3):"; printf "deu\\neng\\nosd\\n"'
    program.write_text(f'#!/bin/sh\nif [ "$1" = --list-langs ]; then {listed}; else echo "$3 $4"; fi\n')
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "PROGRAM", str(program))
    ocr._languages.cache_clear()
    assert ocr.recognize(b"picture").strip() == "-l deu+eng"
    ocr._languages.cache_clear()


def test_the_letters_of_an_arabic_ligature_keep_their_order():
    file = Path(__file__).with_name("arabic_ligature.pdf")
    assert pdf(file.read_bytes()).parts[0][1].split() == ["حل", "المشكلات", "المشكلات"]


def test_a_table_that_is_not_divided_into_columns_is_noted():
    def rows(canvas: Canvas) -> None:
        for number, shift in enumerate((0, 60, 0, 60, 0, 60)):
            for column in range(3):
                canvas.drawString(
                    60 + 120 * column + shift, 700 - 14 * number, f"{number}{column}5.20 of 900"
                )

    assert parsed(rows).notes == ["The table on page 1 could not be split into columns."]


def test_a_line_that_is_drawn_late_is_read_in_its_place():
    def draw(canvas: Canvas) -> None:
        for number, row in enumerate(("Berths", "Skar has eleven berths.", "", "Oster Bay has two berths.")):
            canvas.drawString(50, 700 - 20 * number, row)
        canvas.drawString(80, 660, "Berths of guests are free.")
        # A column at the right is read after the one at the left.
        canvas.drawString(400, 700, "Office: 9 to 5")

    assert parsed(draw).parts[0][1].splitlines() == [
        "Berths",
        "Skar has eleven berths. Berths of guests are free. Oster Bay has two berths. Office: 9 to 5",
    ]
