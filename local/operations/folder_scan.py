"""Scan of a folder for files that can become documents: names, sizes and digests."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path

from local.errors import CommandError
from shared.clients.supabase_storage import MAX_BYTES as MAX_UPLOAD_BYTES
from shared.documents.documents import MAX_BYTES, external_id_of
from shared.ingestion.file_type import EXTENSIONS, SUPPORTED, UNREADABLE
from shared.ingestion.parsers.limits_and_tables import is_text
from shared.text.normalize import clean_line

# Bytes read from the start of a file to decide whether it is text.
SNIFF_BYTES = 64 * 1024
# Most kinds of unsupported files that a message lists; and the setting that would make a kind supported.
MAX_KINDS = 12
HINTS = {
    frozenset({".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".heic", ".avif"}):
        "pictures are read where tesseract is installed (--all sends them)",
    frozenset({".mp3", ".wav", ".ogg", ".flac", ".m4a", ".mp4", ".mov", ".avi", ".mkv", ".webm", ".mpg"}):
        "sound and film are read where RAG_TRANSCRIPTION_KEY is set (--all sends them)",
}  # fmt: skip


class UnreadableFile(Exception):
    """A file that cannot be sent, with an error code like the API's and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class TooLarge(UnreadableFile):
    """A file above the size limit."""


def too_large_error(limit: int) -> TooLarge:
    message = f"A file may have at most {limit // 2**20} MB. Divide it, and upload the parts."
    return TooLarge("file_too_large", message)


@dataclass(frozen=True)
class File:
    """A file and its name: its path that starts with the name of the scanned folder. The name stays the same
    when the folder moves."""

    path: Path
    name: str

    @property
    def external_id(self) -> str:
        return external_id_of(self.name)

    @cached_property
    def identifier(self) -> str:
        return sha256_digest(self.external_id.encode())

    def digest(self) -> str:
        """SHA-256 of the content. Raises UnreadableFile, also for a file above the upload limit."""
        if self.size > MAX_UPLOAD_BYTES:
            raise too_large_error(MAX_UPLOAD_BYTES)
        with self.open() as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"

    @property
    def size(self) -> int:
        """In bytes. Raises UnreadableFile."""
        with self.open() as stream:
            return stream.seek(0, os.SEEK_END)

    def read(self) -> bytes:
        """The content. Raises UnreadableFile, also for a file above the limit of one request."""
        with self.open() as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise too_large_error(MAX_BYTES)
        return data

    @property
    def is_supported(self) -> bool:
        """Whether the file type is supported, by its suffix or because the content is text. True for a file
        that cannot be opened: sending it then reports the reason."""
        suffix = self.path.suffix.lower()
        if suffix in EXTENSIONS or suffix in UNREADABLE:
            return suffix in EXTENSIONS
        try:
            with self.open() as stream:
                start = stream.read(SNIFF_BYTES)
        except UnreadableFile:
            return True
        return bool(start.strip()) and is_text(start, whole=len(start) < SNIFF_BYTES)

    @contextmanager
    def open(self) -> Iterator[BufferedReader]:
        """Raises UnreadableFile for every OSError while the file is open."""
        try:
            with self.path.open("rb") as stream:
                yield stream
        except OSError as error:
            raise UnreadableFile("unreadable_file", error.strerror or type(error).__name__) from None


@dataclass(frozen=True)
class Folder:
    """Supported files, sorted; unsupported files; the common prefix of all names (None for a single file)."""

    files: list[File]
    unsupported: list[File]
    prefix: str | None


def read_folder(path: Path, *, everything: bool = False) -> Folder:
    """Scan a folder recursively, or a single file. Skips hidden files, links that lead out of the folder,
    and, without `everything`, unsupported files.

    Raises CommandError when no file remains, or when a folder cannot be listed: its files would look deleted.
    """
    # A link given as `path` itself is followed.
    root = path.resolve()
    if root.is_file():
        paths, prefix, base = [root], None, root.parent
    else:
        paths, prefix, base = sorted(_files_below(root)), f"{_decode_name(root.name)}/", root
    scanned = [
        File(file, f"{_decode_name(base.name)}/{_decode_name(file.relative_to(base).as_posix())}")
        for file in paths
    ]
    files = [file for file in scanned if everything or file.is_supported]
    supported = set(files)
    unsupported = [file for file in scanned if file not in supported]
    if not files:
        note = f" but {kinds_of(unsupported)}, passed over" if unsupported else ""
        raise CommandError(f"nothing to read in {one_line(str(path))}{note}; supported types: {SUPPORTED}")
    return Folder(files, unsupported, prefix)


def kinds_of(files: Iterable[File]) -> str:
    """The number of files of each kind, with hints on how to make kinds supported."""
    counts = Counter(file.path.suffix.lower() or one_line(file.path.name) for file in files)
    scanned = [f"{one_line(kind)} {count}" for kind, count in counts.most_common(MAX_KINDS)]
    more = [f"{len(counts) - MAX_KINDS} other kinds"] if len(counts) > MAX_KINDS else []
    hints = [hint for kinds, hint in HINTS.items() if kinds & counts.keys()]
    return ", ".join(scanned + more) + "".join(f"; {hint}" for hint in hints)


def sha256_digest(data: bytes) -> str:
    """The digest as the API shows it for a document's content and for its external id."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def one_line(text: str) -> str:
    """The text on one line without terminal control characters: names and messages are untrusted."""
    return clean_line(text.encode(errors="backslashreplace").decode())


def _files_below(root: Path) -> Iterator[Path]:
    def raise_error(error: OSError) -> None:
        raise CommandError(f"{one_line(str(error.filename))}: {error.strerror}")

    # Links to folders are not followed: the target is scanned anyway, or lies outside.
    for folder, folders, names in os.walk(root, onerror=raise_error):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(folder, name) for name in names if not name.startswith(".")):
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path


def _decode_name(name: str) -> str:
    """A file name, which may be any bytes, as text that Postgres can store."""
    return os.fsencode(name).decode(errors="backslashreplace")
