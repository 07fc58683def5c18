"""PDF files: words that the end of a line divides."""

import io

from reportlab.pdfgen import canvas

from shared.ingestion.parsers.pdf import pdf
from shared.ingestion.parsers.pdf_paragraphs import _COMPOUND, _without_soft_breaks


def text_of(*lines: str) -> str:
    made = io.BytesIO()
    page = canvas.Canvas(made)
    for number, line in enumerate(lines):
        page.drawString(72, 700 - 14 * number, line)
    page.save()
    return pdf(made.getvalue()).parts[0][1].strip()


def test_a_divided_word_keeps_the_hyphens_that_it_has_elsewhere():
    lines = (
        "The warm-up of the press takes ten minutes, so extend the warm-",
        "up in winter, and oil the bear-",
        "ings of the rollers after the last job of each working day.",
    )
    extended = "The warm-up of the press takes ten minutes, so extend the warm-up in winter, "
    oiled = "and oil the bearings of the rollers after the last job of each working day."
    assert text_of(*lines) == extended + oiled
    # Of three parts.
    text = text_of(
        "A state-of-the-art kiln needs a foundation, and each other state-of-", "the-art oven does, too."
    )
    oven = "A state-of-the-art kiln needs a foundation, and each other state-of-the-art oven does, too."
    assert text == oven


def test_a_long_run_of_letters_takes_linear_time():
    """Quadratic, it would take minutes."""
    line = "a" * 200_000
    assert line in _without_soft_breaks(line, frozenset())
    assert _COMPOUND.findall(line) == []
