"""PDF files: columns, divided words, exponents, forms, comments, and notes on unread parts."""

import io
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from PIL import Image
from pypdfium2 import PdfDocument, raw
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from shared.errors import UnreadableDocument
from shared.ingestion.parsers import ocr
from shared.ingestion.parsers.pdf import _named, pdf
from shared.ingestion.parsers.pdf_paragraphs import _COMPOUND, _without_soft_breaks
from tests.shared.ingestion.parsers.pdf_files import Draw, both, lines_of, made, parsed, text, words_of

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
NEWS = "Port news of the whole week, for all who live or work beside the harbour."
PAPERS, NIGHT = "Bring your papers along.", "It is open at night too."


def line_by_line(*columns: list[str], x: tuple[int, ...] = (50, 320)) -> Draw:
    rows = [*zip(*columns, strict=True)]
    cells = [
        (left, 700 - 14 * at, cell) for at, row in enumerate(rows) for left, cell in zip(x, row, strict=True)
    ]
    return both(*(text(cell, x=left, y=y) for left, y, cell in cells))


COLUMNS: list[tuple[Draw, list[list[str]]]] = [
    (line_by_line(LEFT, RIGHT), [LEFT, RIGHT]),
    # A narrow gap, and long columns.
    (line_by_line(LEFT, RIGHT, x=(50, 262)), [LEFT, RIGHT]),
    (line_by_line(LEFT * 6, RIGHT * 6), [LEFT * 6, RIGHT * 6]),
    # One column is longer than the other.
    (line_by_line([*LEFT, PAPERS], [*RIGHT, ""]), [LEFT, [PAPERS], RIGHT]),
    (line_by_line([*LEFT, ""], [*RIGHT, NIGHT]), [LEFT, RIGHT, [NIGHT]]),
    (line_by_line(LEFT * 2, RIGHT * 2, THIRD * 2, x=(30, 240, 450)), [LEFT * 2, RIGHT * 2, THIRD * 2]),
    # Drawn column by column, and under a title.
    (both(text(*LEFT), text(*RIGHT, x=320)), [LEFT, RIGHT]),
    (both(text(NEWS, y=730), line_by_line(LEFT, RIGHT)), [[NEWS], LEFT, RIGHT]),
]


def test_columns_drawn_line_by_line_are_read_one_after_the_other():
    for draw, columns in COLUMNS:
        assert words_of(draw) == [" ".join(line for column in columns for line in column)]
    rows = line_by_line(["Name", "Mooring of a yacht", "Water"], ["Fee", "12.00", "1.50"])
    assert "| Mooring of a yacht | 12.00 |" in lines_of(rows)
    # A table, though its cells are long.
    narrow = [line[:22].strip() for line in LEFT]
    assert "|" in words_of(line_by_line(narrow, ["Open", "Closed", "Main gate"]))[0]


def test_a_divided_word_keeps_the_hyphens_that_it_has_elsewhere():
    warm = "The warm-up of the press takes ten minutes, so extend the warm-"
    oil = "ings of the rollers after the last job of each working day."
    assert words_of(text(warm, "up in winter, and oil the bear-", oil)) == [
        f"{warm}up in winter, and oil the bear{oil}"
    ]
    # Of three parts.
    lines = "A state-of-the-art kiln needs a foundation, and each other state-of-", "the-art oven does, too."
    assert words_of(text(*lines)) == ["".join(lines)]


def test_a_long_run_of_letters_takes_linear_time():
    """Quadratic, it would take minutes."""
    line = "a" * 200_000
    assert line in _without_soft_breaks(line, frozenset())
    assert _COMPOUND.findall(line) == []


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


Texts = Sequence[tuple[float, float, str]]
Boxes = Sequence[tuple[float, float, float, str]]


def fields(texts: Texts, boxes: Boxes) -> Draw:
    """Texts by their places, and text fields by their places, widths and values."""

    def draw(canvas: Canvas) -> None:
        for x, y, words in texts:
            canvas.drawString(x, y, words)
        for x, y, width, value in boxes:
            field = {"x": x, "y": y, "width": width, "height": 14, "value": value}
            canvas.acroForm.textfield(name=f"{x} {y}", **field)

    return draw


TEXTS: Texts = [
    (50, 700, "Name of ship"), (50, 660, "Insured"), (50, 620, "Crew list:"), (50, 580, "Quay"),
    (50, 540, "Pay"), (225, 540, "cash"), (325, 540, "by card"), (50, 500, "From"), (300, 500, "Until"),
    (50, 460, "Remarks of the skipper"), (80, 360, "Send me the bill"), (50, 250, "Not filled in"),
    (50, 150, "Home harbour. Leave this empty for yachts."), (50, 202, "See the notes"),
    (300, 220, "Number of the crew"), (338, 202, "-"),
]  # fmt: skip
BOXES: Boxes = [
    (200, 695, 150, "Kittiwake"), (100, 495, 100, "3 May 2027"), (350, 495, 100, "9 May 2027"),
    (200, 245, 90, ""), (300, 145, 90, "Skar"), (300, 195, 34, "01"), (348, 195, 80, "0573846"),
]  # fmt: skip


def form(canvas: Canvas) -> None:
    fields(TEXTS, BOXES)(canvas)
    form = canvas.acroForm
    for name, x, y, is_checked in (("f2", 200, 655, True), ("f3", 200, 615, False), ("f9", 50, 355, True)):
        form.checkbox(name=name, x=x, y=y, checked=is_checked)
    form.choice(name="f4", x=200, y=575, width=100, height=18, value="North", options=["North", "South"])
    form.radio(name="f5", value="a", selected=False, x=200, y=535)
    form.radio(name="f5", value="b", selected=True, x=300, y=535)
    form.textfield(name="f8", x=50, y=400, width=400, height=55, value="Needs shore power")
    form.textfield(name="f10", tooltip="Draught in metres", x=300, y=300, width=90, height=18, value="2.10")


FORM = [
    "Name of ship: Kittiwake", "Insured: yes", "Crew list: no", "Quay: North", "Pay: by card", "cash",
    "by card", "From: 3 May 2027", "Until: 9 May 2027", "Remarks of the skipper: Needs shore power",
    "Send me the bill: yes", "Draught in metres: 2.10", "Not filled in", "See the notes",
    "Home harbour: Skar. Leave this empty for yachts.", "Number of the crew: 01-0573846", "-",
]  # fmt: skip
INCOME = "Statement of all of the income of the household in the year 2027"
LABELS: list[tuple[Texts, Boxes, list[str]]] = [
    # A label left of its field has precedence.
    ([(50, 700, INCOME), (50, 684, "Wages"), (50, 668, "Interest")],
     [(280, 682, 100, "1000"), (280, 666, 100, "50")], [INCOME, "Wages: 1000", "Interest: 50"]),
    ([(200, 700, "Rent"), (50, 680, "January"), (50, 660, "February")],
     [(195, 678, 80, "700"), (195, 658, 80, "710")], ["Rent", "January: 700", "February: 710"]),
    # An abbreviation is no end of a label.
    ([(50, 700, "Dept. Name"), (50, 675, "Acct. Number of the firm"), (50, 650, "Department. Name")],
     [(300, y, 80, "Sales") for y in (698, 673, 648)],
     ["Dept. Name: Sales", "Acct. Number of the firm: Sales", "Department. Name: Sales"]),
    # Numbers without a hyphen between them are several.
    ([(50, 700, "Adults and children on board")], [(50, 680, 40, "2"), (110, 680, 40, "3")],
     ["Adults and children on board: 2, 3"]),
]  # fmt: skip


def test_fields_of_a_form_are_label_and_value():
    assert lines_of(form) == FORM
    for texts, boxes, lines in LABELS:
        assert lines_of(fields(texts, boxes)) == lines


def list_box(canvas: Canvas) -> None:
    canvas.drawString(50, 670, "Port")
    box = {"x": 200, "y": 640, "width": 100, "height": 60}
    canvas.acroForm.listbox(name="f1", value="Alk", options=["Skar", "Alk"], **box)


def test_a_list_box_has_its_options():
    assert "Port: Alk (of Skar, Alk)" in words_of(list_box)[0]
    # The name of the key is as long.
    without = pdf(made(list_box).replace(b"/Opt ", b"/Non ")).parts[0][1]
    assert "Port: Alk" in without.splitlines()


def test_fields_outside_of_the_form_are_read():
    page = pdf(made(form).replace(b"/AcroForm", b"/NoForm__")).parts[0][1]
    assert {*FORM[:3], "Draught in metres: 2.10"} <= {*page.splitlines()}


def marked(mark: str, font: str) -> Draw:
    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(LEFT):
            canvas.setFont(font, 12)
            canvas.drawString(50, 700 - 14 * number, mark)
            canvas.setFont("Helvetica", 12)
            canvas.drawString(80, 700 - 14 * number, line)

    return draw


def clauses(canvas: Canvas) -> None:
    rows = ("*4. Fees", "*4.1 Yachts", "Yachts pay in May.", "*5. Term", "The term is a year.",
            "*100 EUR per berth", "*12. Mai 2026", "Ships pay each day.", "*1. Gloves", "*2. Boots",
            "*3. A coat", "Bring them.", "*1. Gloves", "*2. Boots and a coat")  # fmt: skip
    for number, row in enumerate(rows):
        canvas.setFont("Helvetica-Bold" if row.startswith("*") else "Helvetica", 10)
        canvas.drawString(50, 700 - 14 * number, row.lstrip("*"))


POSITIONS = ["Quotation", "Position 1: 60 rollers of steel at 228 euros", "Position 2: assembly in the hall"]
SEEN: list[tuple[Draw, list[str]]] = [
    # Exponents and indices are not joined to the letters before.
    (scripts(("About 3 x 10", 0), ("6", 5), (" cells", 0)), ["About 3 x 10⁶ cells"]),
    (scripts(("Flow 10", 0), ("-6", 4), (" m", 0), ("3", 4), ("/s in May", 0)), ["Flow 10⁻⁶ m³/s in May"]),
    (scripts(("Al", 0), ("2", -2), ("O", 0), ("3", -2), (" is clay", 0)), ["Al₂O₃ is clay"]),
    (scripts(("The value e", 0), ("-kt", 4), (" falls", 0)), ["The value e^(-kt) falls"]),
    (scripts(("V", 0), ("max", -2), (" is 5", 0)), ["V_max is 5"]),
    (scripts(("Water with SO", 0), ("4", -2), ("2-", 5), (" ions", 0)), ["Water with SO₄²⁻ ions"]),
    (scripts(("the 4", 0), ("th", 4), (" pier", 0)), ["the 4th pier"]),
    (scripts(("4", 4), (" A note at the foot.", 0)), ["4", "A note at the foot."]),
    (scripts(("Room 106 has 12 m", 0), ("2", 4)), ["Room 106 has 12 m²"]),
    (scripts(("In 2027 we paid 1,250.50 euros", 0)), ["In 2027 we paid 1,250.50 euros"]),
    # Labelled lines are not joined; bullets of any font are no column.
    (text(*POSITIONS), POSITIONS),
    (marked("y", "Courier"), [f"- {line}" for line in LEFT]),
    (marked("+", "Helvetica"), [f"- {line}" for line in LEFT]),
    # Bold numbered lines above text are headings.
    (clauses, ["## 4. Fees", "### 4.1 Yachts", "Yachts pay in May.", "## 5. Term",
     "The term is a year. 100 EUR per berth", "12. Mai 2026", "Ships pay each day.", "1. Gloves", "2. Boots",
     "3. A coat", "Bring them.", "1. Gloves", "2. Boots and a coat"]),
    # A line that is drawn late is read in its place, a column at the right after the one at the left.
    (both(text("Berths", "Skar has eleven berths.", "", "Oster Bay has two berths.", step=20),
     text("Berths of guests are free.", x=80, y=660), text("Office: 9 to 5", x=400)), ["Berths",
     "Skar has eleven berths. Berths of guests are free. Oster Bay has two berths. Office: 9 to 5"]),
]  # fmt: skip


def test_a_page_is_read_as_it_is_seen():
    assert [(draw, lines_of(draw)) for draw, _ in SEEN] == SEEN
    # A column of one letter, digit or currency is kept.
    for mark, font in (("A", "Helvetica"), ("2", "Courier"), ("\u20ac", "Courier")):
        assert words_of(marked(mark, font))[0].count(mark) == len(LEFT)


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


@cache
def noise(sigma: float) -> ImageReader:
    return ImageReader(Image.effect_noise((40, 40), sigma))


def picture(width: float, height: float, x: float = 50, y: float = 300) -> Draw:
    return lambda canvas: canvas.drawImage(noise(60 + width % 7), x, y, width, height)


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


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program of that name, which a test writes; at first it finds nothing."""
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "PROGRAM", str(program))
    ocr._languages.cache_clear()
    yield program
    ocr._languages.cache_clear()


def test_scanned_pages_among_others_are_read_by_ocr(tesseract: Path):
    tesseract.write_text('#!/bin/sh\n[ "$(head -c 2)" = P5 ] || exit 1\necho "Seen: a kiln."\n')
    read = parsed(TYPED, SCAN, SCAN)
    assert [part.strip()[:13] for _, part in read.parts] == [
        "The crane lif",
        "Seen: a kiln.",
        "Seen: a kiln.",
    ]
    assert read.notes == []


@pytest.mark.usefixtures("tesseract")
def test_a_page_in_which_ocr_finds_nothing_is_noted():
    read = parsed(PAGE, PAGE, both(SCAN, FAX))
    assert read.notes == ["Page 3 has little text beside a picture; OCR found nothing."]
    assert read.parts[2][1]
    with pytest.raises(UnreadableDocument, match="OCR found no text"):
        parsed(SCAN)


def test_ocr_uses_all_installed_languages(tesseract: Path):
    listed = 'echo "List of available languages (3):"; printf "deu\\neng\\nosd\\n"'
    tesseract.write_text(f'#!/bin/sh\nif [ "$1" = --list-langs ]; then {listed}; else echo "$3 $4"; fi\n')
    assert ocr.recognize(b"picture").strip() == "-l deu+eng"


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


def test_pages_are_named():
    names = {
        (3,): "Page 3", (3, 4): "Pages 3 and 4", (3, 5): "Pages 3 and 5", (1, 2, 3, 4): "Pages 1 to 4",
        (1, 2, 3, 7, 9): "Pages 1 to 3, 7 and 9", (1, 2, 5): "Pages 1, 2 and 5",
    }  # fmt: skip
    assert {numbers: _named([*numbers]) for numbers in names} == names


def test_the_letters_of_an_arabic_ligature_keep_their_order():
    file = Path(__file__).with_name("arabic_ligature.pdf")
    assert pdf(file.read_bytes()).parts[0][1].split() == ["حل", "المشكلات", "المشكلات"]


def test_a_table_that_is_not_divided_into_columns_is_noted():
    shifts = enumerate((0, 60, 0, 60, 0, 60))
    cells = [
        text(f"{row}{column}5.20 of 900", x=60 + 120 * column + shift, y=700 - 14 * row)
        for row, shift in shifts
        for column in range(3)
    ]
    assert parsed(both(*cells)).notes == ["The table on page 1 could not be split into columns."]
