"""Running headers and footers of PDFs, which are no part of the text."""

import io
from collections.abc import Callable

from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import LongTable, Paragraph, SimpleDocTemplate

from shared.ingestion.parsers.pdf import pdf
from tests.shared.ingestion.parsers.pdf_files import words_of

RULES = [
    "Steam is vented before the lid opens.",
    "Glaze is stirred for ten minutes.",
    "Cones are read through the spyhole.",
    "Shelves are washed after each firing.",
    "Clay is wedged twice.",
    "Kilns cool overnight.",
]


def made(pages: int, draw: Callable[[Canvas, int], None]) -> list[str]:
    """The words of each page of a PDF whose page `number`, from 1 on, `draw` draws."""
    return words_of(*(lambda canvas, number=number: draw(canvas, number) for number in range(1, pages + 1)))


def body(canvas: Canvas, number: int) -> None:
    canvas.drawString(72, 700, RULES[number - 1])
    canvas.drawString(72, 680, f"Rule {number * 7} holds in all workshops.")


def text(number: int) -> str:
    return f"{RULES[number - 1]} Rule {number * 7} holds in all workshops."


def test_headers_and_footers_are_no_part_of_the_text():
    def draw(canvas: Canvas, number: int) -> None:
        # Drawn after the text, and larger than it, like a heading.
        body(canvas, number)
        canvas.setFont("Helvetica", 14)
        canvas.drawString(72, 800, "Kiln handbook, revision 4")
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 40, f"Page {number} of 5")
        canvas.drawRightString(520, 28, "Confidential")

    first, *others = made(5, draw)
    assert others == [text(number) for number in range(2, 6)]
    assert first == f"# Kiln handbook, revision 4 {text(1)} Confidential"
    # Two pages do not tell a header from a title.
    assert all("Kiln handbook" in page for page in made(2, draw))


def test_a_result_that_half_of_the_pages_have_is_no_header():
    def draw(canvas: Canvas, number: int) -> None:
        body(canvas, number)
        canvas.drawString(72, 800, "Result: passed" if number in (1, 2, 5) else "Result: failed")

    pages = made(6, draw)
    assert ["passed" in page for page in pages] == [number in (1, 2, 5) for number in range(1, 7)]
    assert all("Result:" in page for page in pages)


def test_a_cover_without_a_number_and_other_headers_on_left_and_right_pages():
    def draw(canvas: Canvas, number: int) -> None:
        body(canvas, number)
        if number > 1:
            canvas.drawString(72, 800, f"{number + 40}")
        canvas.drawString(72, 780, "Kiln handbook" if number % 2 else "Potters of Delft")

    left, right, *others = made(6, draw)
    assert (left, right) == (f"Kiln handbook {text(1)}", f"Potters of Delft {text(2)}")
    assert others == [text(number) for number in range(3, 7)]


def test_lines_with_other_numbers_and_lines_in_the_middle_stay():
    totals = [412, 97, 1250, 33, 608]

    def draw(canvas: Canvas, number: int) -> None:
        canvas.drawString(72, 800, "Statement of the workshop")
        body(canvas, number)
        canvas.drawString(72, 500, "Wear gloves.")
        canvas.drawString(72, 300, f"Note {number} is for the archive, and no other copy exists.")
        canvas.drawString(72, 60, f"Total: {totals[number - 1]} euros")

    for number, page in enumerate(made(5, draw), start=1):
        assert ("Statement" in page) == (number == 1)
        assert "Wear gloves." in page
        assert f"Total: {totals[number - 1]} euros" in page


def test_a_form_on_each_page_and_pages_with_nothing_else_stay():
    def draw(canvas: Canvas, number: int) -> None:
        for row, line in enumerate(RULES):
            canvas.drawString(72, 700 - 20 * row, line)

    assert made(4, draw) == [" ".join(RULES)] * 4
    labels = made(3, lambda canvas, number: canvas.drawString(72, 700, f"Label {number}"))
    assert labels == ["Label 1", "Label 2", "Label 3"]


def test_the_header_of_a_table_that_continues_on_each_page_stays():
    file = io.BytesIO()
    cells = [["Cone", "Degrees", "Minutes"]] + [[f"C{n}", f"{900 + 3 * n}", f"{n % 50}"] for n in range(150)]
    above = Paragraph("Cones and their degrees, by the table of the maker.", getSampleStyleSheet()["Normal"])
    SimpleDocTemplate(file).build([above, LongTable(cells, repeatRows=1)])
    pages = [text for _, text in pdf(file.getvalue()).parts]
    assert len(pages) > 3
    assert all("| Cone | Degrees | Minutes |" in page.splitlines() for page in pages)
