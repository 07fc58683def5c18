"""OCR of pictures and scanned pages by tesseract."""

import io
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.parsed_file import ParsedFile

PROGRAM = "tesseract"
# Resolution for letters of the usual size.
DOTS_PER_INCH = 200


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


def picture(data: bytes) -> ParsedFile:
    return ParsedFile([(None, recognize(data))])


def recognize(data: bytes) -> str:
    """The text in a picture of any format that tesseract knows. Raises UnreadableDocument."""
    done = subprocess.run([PROGRAM, "stdin", "stdout"], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise UnreadableDocument(
            "The picture could not be read. Save it as PNG or JPEG, and upload it again."
        )
    return done.stdout.decode(errors="replace").replace("\f", "")


def pages_of(document: Any) -> Iterator[str]:
    """The texts on the pages of a scanned PDF."""
    for page in document:
        drawn = io.BytesIO()
        page.render(scale=DOTS_PER_INCH / 72, grayscale=True).to_pil().save(drawn, "png")
        yield recognize(drawn.getvalue())
