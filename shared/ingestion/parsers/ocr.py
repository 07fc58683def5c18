"""Pictures of text, read by tesseract where it is installed; scanned pages of PDFs too."""

import io
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.base import Reading

PROGRAM = "tesseract"
# Of what a page shows, for letters of the usual size.
DOTS_PER_INCH = 200


def is_readable() -> bool:
    """Whether there is anything here to read pictures with."""
    return shutil.which(PROGRAM) is not None


def picture(data: bytes) -> Reading:
    return Reading([(None, text_of(data))])


def text_of(data: bytes) -> str:
    """What stands in a picture of whatever format the program knows. Raises UnreadableDocument."""
    done = subprocess.run([PROGRAM, "stdin", "stdout"], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise UnreadableDocument("The picture could not be read.")
    return done.stdout.decode(errors="replace").replace("\f", "")


def pages_of(document: Any) -> Iterator[str]:
    """What stands on the pages of a PDF that has nothing but pictures of them."""
    for page in document:
        drawn = io.BytesIO()
        page.render(scale=DOTS_PER_INCH / 72, grayscale=True).to_pil().save(drawn, "png")
        yield text_of(drawn.getvalue())
