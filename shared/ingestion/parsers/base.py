"""What all readers use: what they give back, what they refuse, archives, tables."""

import codecs
import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass

from shared.errors import UnreadableDocument

# What a reader's process says first: whatever ends it then, it is the file.
READY = "reading\n"
# Unpacked and together; and what a document may come to.
MAX_UNPACKED = 300_000_000
MAX_CHARACTERS = 20_000_000
MAX_CELLS = 2_000_000
MAX_MEMBERS = 10_000
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
# Control characters that no text has, which tabs, line ends and form feeds are not.
_NO_TEXT = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f]")
# Titles that programs give to what nobody has named, and what they put before those of files.
_NO_TITLE = re.compile(
    r"|[(\[]?(untitled|no title|unknown|anonymous|unspecified)( (document|page|presentation))?[)\]]?"
    r"|untitled[ -]?\d+|(document|presentation|book)\d+|(powerpoint|microsoft powerpoint) presentation",
    re.IGNORECASE,
)
_PROGRAM = re.compile(r"^Microsoft (Office )?(Word|PowerPoint|Excel) - ")


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
    members = archive.infolist()
    if sum(member.file_size for member in members) > MAX_UNPACKED or len(members) > MAX_MEMBERS:
        raise too_large()
    # Of other ways to pack, zipfile unpacks more than a member says of itself.
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise UnreadableDocument("The file is packed in a way that is not read.")
    if any(member.flag_bits & 1 for member in members):
        raise locked()
    return archive


def member_of(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (KeyError, zipfile.BadZipFile, zipfile.error, EOFError):
        raise UnreadableDocument("The file is not whole.") from None


def one_line(text: str) -> str:
    return " ".join(text.split())


def own_title(text: str) -> str | None:
    """What a document calls itself; None where that is only what its program calls everything."""
    title = _PROGRAM.sub("", one_line(text))
    return None if _NO_TITLE.fullmatch(title) else title


def locked() -> UnreadableDocument:
    return UnreadableDocument("The file has a password: bring it without.", code="password_protected")


def too_large() -> UnreadableDocument:
    return UnreadableDocument("Unpacked, the file is too large to read.", code="file_too_large")


def marked_encoding(data: bytes) -> str | None:
    """What the byte-order mark says, if there is one."""
    return next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)


def is_text(data: bytes, *, whole: bool = True) -> bool:
    """Whether bytes, or the beginning of some, are plainly text: UTF-8, or UTF-16 by its mark, with nothing
    in it that only machines write."""
    decoder = codecs.getincrementaldecoder(marked_encoding(data) or "utf-8")()
    try:
        return not _NO_TEXT.search(decoder.decode(data, final=whole))
    except UnicodeDecodeError:
        return False


def decoded(data: bytes) -> str:
    """A text by its byte-order mark, or as UTF-8. Raises UnreadableDocument."""
    try:
        text = data.decode(marked_encoding(data) or "utf-8")
    except UnicodeDecodeError:
        raise UnreadableDocument(
            "The file is not text in UTF-8 or UTF-16: save it as UTF-8.", code="not_text"
        ) from None
    if "\0" in text:
        raise UnreadableDocument("The file has NUL bytes: it is not text.", code="not_text")
    return text


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows of cells as a Markdown table, the first as its head; a row a line, whatever is in it. Rows and
    columns in which there is nothing are left out. Raises UnreadableDocument for one of too many cells."""
    filled = [cells for row in rows if any(cells := [one_line(cell).replace("|", "\\|") for cell in row])]
    used = sorted({column for row in filled for column, cell in enumerate(row) if cell})
    # A row is as wide as the widest: one long row makes all others long.
    if len(filled) * len(used) > MAX_CELLS:
        raise too_large()
    lines = [f"| {' | '.join(row[at] if at < len(row) else '' for at in used)} |" for row in filled]
    return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if lines else ""
