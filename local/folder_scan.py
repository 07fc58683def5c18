"""Files on disk that may become documents: which there are, what each is called, what is in it."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path

from local.processes import StackError
from shared.clients.supabase_storage import MAX_BYTES as LARGEST
from shared.documents.documents import MAX_BYTES, external_id_of
from shared.ingestion.file_type import EXTENSIONS, SUPPORTED, UNREADABLE
from shared.ingestion.parsers.base import is_text
from shared.text.normalize import clean_line

# What is looked at of a file to see whether it is a text.
BEGINNING = 64 * 1024
# How many kinds of files that are passed over are named; and of which of them what would read them.
MOST_KINDS = 12
HINTS = {
    frozenset({".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".heic", ".avif"}):
        "pictures are read where tesseract is installed (--all sends them)",
    frozenset({".mp3", ".wav", ".ogg", ".flac", ".m4a", ".mp4", ".mov", ".avi", ".mkv", ".webm", ".mpg"}):
        "sound and film are read where RAG_TRANSCRIPTION_KEY is set (--all sends them)",
}  # fmt: skip


class Unreadable(Exception):
    """A file that is not sent, and why: a code as the API has them, and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class TooLarge(Unreadable):
    """A file of more bytes than may be sent."""


def too_large(most: int) -> TooLarge:
    return TooLarge("file_too_large", f"A file may have {most // 2**20} MB.")


@dataclass(frozen=True)
class File:
    """A file, and its path from its folder's own name on, by which it is known wherever the folder stands."""

    path: Path
    name: str

    @property
    def external_id(self) -> str:
        return external_id_of(self.name)

    @cached_property
    def identifier(self) -> str:
        return digest_of(self.external_id.encode())

    def digest(self) -> str:
        """Of what is in it. Raises Unreadable, also for more than any document may have."""
        if self.size > LARGEST:
            raise too_large(LARGEST)
        with self.opened() as opened:
            return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"

    @property
    def size(self) -> int:
        """In bytes. Raises Unreadable."""
        with self.opened() as opened:
            return opened.seek(0, os.SEEK_END)

    def read(self) -> bytes:
        """Of a file that a request takes. Raises Unreadable, also for a larger one."""
        with self.opened() as opened:
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise too_large(MAX_BYTES)
        return data

    @property
    def is_known(self) -> bool:
        """Whether it is of a kind that is read here: by its name, or as the text that it looks like. (Of one
        that may not be looked at nobody knows: then sending it says why.)"""
        ending = self.path.suffix.lower()
        if ending in EXTENSIONS or ending in UNREADABLE:
            return ending in EXTENSIONS
        try:
            with self.opened() as opened:
                beginning = opened.read(BEGINNING)
        except Unreadable:
            return True
        return bool(beginning.strip()) and is_text(beginning, whole=len(beginning) < BEGINNING)

    @contextmanager
    def opened(self) -> Iterator[BufferedReader]:
        """Raises Unreadable, for whatever goes wrong meanwhile."""
        try:
            with self.path.open("rb") as opened:
                yield opened
        except OSError as error:
            raise Unreadable("unreadable_file", error.strerror or type(error).__name__) from None


@dataclass(frozen=True)
class Folder:
    """The files, sorted; those of kinds that are not read here; what all names begin with (None for a file
    alone)."""

    files: list[File]
    others: list[File]
    prefix: str | None


def read_folder(path: Path, *, everything: bool = False) -> Folder:
    """A folder with all below it, or a file. Hidden ones are passed over, and links that lead out; so is what
    is not read here, unless it is to be `everything`.

    Raises StackError when there is nothing to read, or a folder that may not be looked into: what is in there
    would seem to be gone.
    """
    # Before it is resolved: a link that somebody names is meant.
    root = path.resolve()
    if root.is_file():
        found, prefix, base = [root], None, root.parent
    else:
        found, prefix, base = sorted(_below(root)), f"{_text(root.name)}/", root
    named = [File(file, f"{_text(base.name)}/{_text(file.relative_to(base).as_posix())}") for file in found]
    files = [file for file in named if everything or file.is_known]
    known = set(files)
    others = [file for file in named if file not in known]
    if not files:
        passed_over = f" but {kinds_of(others)}, passed over" if others else ""
        raise StackError(f"nothing to read in {shown(str(path))}{passed_over}; what is read: {SUPPORTED}")
    return Folder(files, others, prefix)


def kinds_of(files: Iterable[File]) -> str:
    """How many there are of each kind, and what would read those that may be read."""
    counts = Counter(file.path.suffix.lower() or shown(file.path.name) for file in files)
    named = [f"{shown(kind)} {count}" for kind, count in counts.most_common(MOST_KINDS)]
    more = [f"{len(counts) - MOST_KINDS} other kinds"] if len(counts) > MOST_KINDS else []
    hints = [hint for kinds, hint in HINTS.items() if kinds & counts.keys()]
    return ", ".join(named + more) + "".join(f"; {hint}" for hint in hints)


def digest_of(data: bytes) -> str:
    """As the API shows them: of what a document was made of, and of its external id."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def shown(text: str) -> str:
    """The text on one line and without what a terminal would act on: names and messages are others' words."""
    return clean_line(text.encode(errors="backslashreplace").decode())


def _below(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise StackError(f"{shown(str(error.filename))}: {error.strerror}")

    # Links to folders are not followed: what they lead to is met anyway, or is elsewhere.
    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(folder, name) for name in names if not name.startswith(".")):
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path


def _text(name: str) -> str:
    """A name of the file system's, which may be any bytes, as one that can be stored."""
    return os.fsencode(name).decode(errors="backslashreplace")
