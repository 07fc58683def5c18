"""OCR of pictures and scanned pages by tesseract."""

import shutil
import subprocess
from functools import cache
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.parsed_file import ParsedFile

PROGRAM = "tesseract"
# Resolution for letters of the usual size, and the most pixels of a page's longer side.
DOTS_PER_INCH, MAX_PIXELS = 200, 7000


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


def picture(data: bytes) -> ParsedFile:
    return ParsedFile([(None, recognize(data))])


def recognize(data: bytes) -> str:
    """The text in a picture of any format that tesseract knows. Raises UnreadableDocument."""
    command = [PROGRAM, "stdin", "stdout", *_languages()]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise UnreadableDocument(
            "The picture could not be read. Save it as PNG or JPEG, and upload it again."
        )
    return done.stdout.decode(errors="replace").replace("\f", "")


@cache
def _languages() -> list[str]:
    """The option for all installed languages; tesseract's default is English alone."""
    listed = subprocess.run([PROGRAM, "--list-langs"], capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.splitlines()[1:] if name != "osd"]
    return ["-l", "+".join(names)] if listed.returncode == 0 and names else []


def text_of_page(page: Any) -> str:
    """The text on a scanned page of a PDF."""
    scale = min(DOTS_PER_INCH / 72, MAX_PIXELS / max(page.get_width(), page.get_height()))
    bitmap = page.render(scale=scale, grayscale=True)
    page.close()
    # As PGM, which tesseract reads too: the image has no Pillow. A row may be longer than its pixels.
    pixels = bytes(bitmap.buffer)
    rows = (pixels[at : at + bitmap.width] for at in range(0, bitmap.stride * bitmap.height, bitmap.stride))
    return recognize(f"P5 {bitmap.width} {bitmap.height} 255\n".encode() + b"".join(rows))
