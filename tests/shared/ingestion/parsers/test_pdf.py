"""PDF files: words that the end of a line divides."""

import io

from reportlab.pdfgen import canvas

from shared.ingestion.parsers.pdf import _COMPOUND, _without_soft_breaks, pdf


def text_of(*lines: str) -> str:
    made = io.BytesIO()
    page = canvas.Canvas(made)
    for number, line in enumerate(lines):
        page.drawString(72, 700 - 14 * number, line)
    page.save()
    return pdf(made.getvalue()).parts[0][1].strip()


def test_a_divided_word_keeps_a_hyphen_that_it_has_elsewhere():
    lines = (
        "The warm-up of the press takes ten minutes, so extend the warm-",
        "up in winter, and oil the bear-",
    )
    text = text_of(*lines, "ings of the rollers after the last job of each working day.")
    start = (
        "The warm-up of the press takes ten minutes, so extend the warm-up in winter, and oil the bearings of"
    )
    assert text == f"{start} the rollers after the last job of each working day."


def test_a_word_of_three_parts_keeps_its_hyphens():
    lines = (
        "A state-of-the-art kiln needs a foundation, and each other state-of-",
        "the-art oven does, too.",
    )
    assert (
        text_of(*lines)
        == "A state-of-the-art kiln needs a foundation, and each other state-of-the-art oven does, too."
    )


def test_a_long_run_of_letters_takes_linear_time():
    """Quadratic, it would take minutes."""
    line = "a" * 200_000
    assert line in _without_soft_breaks(line, frozenset())
    assert _COMPOUND.findall(line) == []
