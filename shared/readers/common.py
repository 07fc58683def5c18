"""What all readers use: what they give back, what they refuse, archives, tables."""

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass

from shared.errors import UnreadableDocument

# What a reader's process says first: whatever ends it then, it is the file.
READY = "reading\n"
# Unpacked and together; and what a document may come to.
MAX_UNPACKED = 300_000_000
MAX_CHARACTERS = 20_000_000
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts of a document in reading order, each with the number of its page, slide or sheet where there
    is one; and the title that the document gives itself."""

    parts: list[tuple[int | None, str]]
    title: str | None = None


def unpacked(data: bytes) -> zipfile.ZipFile:
    """The archive, which says of itself that it unpacks to something bearable; nobody reads beyond that."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        raise UnreadableDocument("The file is not whole.") from None
    if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED:
        raise too_large()
    if any(member.flag_bits & 1 for member in archive.infolist()):
        raise locked()
    return archive


def member_of(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (KeyError, zipfile.BadZipFile, zipfile.error, EOFError):
        raise UnreadableDocument("The file is not whole.") from None


def one_line(text: str) -> str:
    return " ".join(text.split())


def locked() -> UnreadableDocument:
    return UnreadableDocument("The file has a password: bring it without.", code="password_protected")


def too_large() -> UnreadableDocument:
    return UnreadableDocument("Unpacked, the file is too large to read.", code="file_too_large")


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows of cells as a Markdown table, the first as its head; a row a line, whatever is in it. Rows and
    columns in which there is nothing are left out."""
    filled = [cells for row in rows if any(cells := [one_line(cell).replace("|", "\\|") for cell in row])]
    width = max((len(row) for row in filled), default=0)
    even = [[*row, *[""] * (width - len(row))] for row in filled]
    used = [column for column in range(width) if any(row[column] for row in even)]
    lines = [f"| {' | '.join(row[column] for column in used)} |" for row in even]
    return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if lines else ""
