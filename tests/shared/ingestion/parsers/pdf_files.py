"""PDF files of drawn pages, for the tests of their parser."""

import io
from collections.abc import Callable

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from shared.ingestion.parsers.parsed_file import ParsedFile
from shared.ingestion.parsers.pdf import pdf

Draw = Callable[[Canvas], object]


def made(*draws: Draw) -> bytes:
    """A file with a page for each function that draws one."""
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


def words_of(*draws: Draw) -> list[str]:
    """The words of each page, between single spaces."""
    return [" ".join(part.split()) for _, part in parsed(*draws).parts]


def lines_of(*draws: Draw) -> list[str]:
    """The lines of the first page, without empty ones."""
    return [line for line in parsed(*draws).parts[0][1].splitlines() if line]


def text(*lines: str, x: float = 50, y: float = 700, step: float = 14) -> Draw:
    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(lines):
            canvas.drawString(x, y - step * number, line)

    return draw


def both(*draws: Draw) -> Draw:
    """All of them on one page."""

    def draw(canvas: Canvas) -> None:
        for each in draws:
            each(canvas)

    return draw
