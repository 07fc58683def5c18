"""Files of every kind, as the programs that people use write them, and as those who mean harm do."""

import io
import zipfile
from collections.abc import Mapping
from datetime import date
from typing import Any

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen import canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

FIRING = "The kiln becomes 1,280 degrees hot. It cools for a whole day, and then it is opened."


def pdf(pages: int = 2, *, password: str | None = None, title: str = "Kiln handbook") -> bytes:
    """A heading and a paragraph of several lines on each page."""
    styles = getSampleStyleSheet()
    story = []
    for number in range(1, pages + 1):
        story += [
            Paragraph(f"Chapter {number}: Firing", styles["Heading1"]),
            Paragraph(f"Page {number} begins. " + f"{FIRING} " * 8, styles["BodyText"]),
            PageBreak(),
        ]
    made = io.BytesIO()
    SimpleDocTemplate(made, title=title, encrypt=password).build(story)
    return made.getvalue()


def pdf_of_pictures() -> bytes:
    """A page without a letter, as scanners make them."""
    made = io.BytesIO()
    page = canvas.Canvas(made)
    page.rect(100, 100, 200, 200, fill=1)
    page.showPage()
    page.save()
    return made.getvalue()


def docx(*, title: str = "Kiln handbook") -> bytes:
    document = Document()
    document.core_properties.title = title
    document.add_heading("Firing", 1)
    document.add_paragraph(FIRING)
    document.add_paragraph("Wear gloves", style="List Bullet")
    document.add_heading("Costs", 2)
    rows = [("Item", "Price | net"), ("Clay", "3.50")]
    table = document.add_table(rows=2, cols=2)
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            table.rows[row].cells[column].text = text
    document.sections[0].header.paragraphs[0].text = "on every page"
    return save(document)


def pptx() -> bytes:
    show = Presentation()
    for number in (1, 2):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        slide.placeholders[1].text = "First point\nSecond point"
        slide.placeholders[1].text_frame.paragraphs[1].level = 1
        slide.notes_slide.notes_text_frame.text = f"Said on slide {number}"
    table = show.slides[1].shapes.add_table(2, 2, *(Inches(size) for size in (1, 3, 4, 1))).table
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"r{row}c{column}"
    return save(show)


def xlsx() -> bytes:
    book = Workbook()
    stock = book.active
    stock.title = "Stock"
    for row in (
        ["Item", "Quantity", None, "When"],
        ["Clay", 2.0, None, date(2026, 1, 2)],
        [],
        ["Glaze|s", 1.5],
    ):
        stock.append(row)
    book.create_sheet("Empty")
    book.create_sheet("Notes").append(["two\nlines"])
    return save(book)


def save(made: Any) -> bytes:
    data = io.BytesIO()
    made.save(data)
    return data.getvalue()


def archive(members: Mapping[str, str | bytes], level: int | None = None) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return data.getvalue()


def members(data: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as made:
        return {name: made.read(name) for name in made.namelist()}


CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Kiln book</dc:title></metadata>
<manifest><item id="one" href="text/chapter%201.xhtml"/><item id="two" href="two.xhtml"/></manifest>
<spine><itemref idref="two"/><itemref idref="one"/></spine></package>"""


def epub(**more: str) -> bytes:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{0}</h1><p>About {0}.</p></body></html>'
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/book.opf": PACKAGE,
            "OEBPS/text/chapter 1.xhtml": page.format("Cooling"),
            "OEBPS/two.xhtml": page.format("Firing"),
            **more,
        }
    )


def zip_bomb() -> bytes:
    """A DOCX file of few megabytes that unpacks to more than the 300 that a reader unpacks."""
    text = b"<w:p><w:r><w:t>" + b"a" * 1_000_000 + b"</w:t></w:r></w:p>"
    name_space = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    document = b"<w:document " + name_space + b"><w:body>" + text * 301 + b"</w:body></w:document>"
    return archive({**members(docx()), "word/document.xml": document}, level=1)


def docx_of_many_members() -> bytes:
    return archive({**{f"{number}": "" for number in range(10_001)}, "word/document.xml": "x"})


BILLION_LAUGHS = '<!DOCTYPE lol [<!ENTITY a "lol">{}]><lol>&j;</lol>'.format(
    "".join(f'<!ENTITY {chr(98 + step)} "{f"&{chr(97 + step)};" * 10}">' for step in range(9))
).encode()
READS_A_FILE = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>secret: &e;</x>'
