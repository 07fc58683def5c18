"""Files of an upload: open files, bytes and paths, as parts of a form."""

import hashlib
import io
import mimetypes
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO, Any

Content = IO[bytes] | bytes
File = Content | str | PathLike[str] | tuple[str, Content]
# Called with the number of bytes sent and the file's size in bytes.
Progress = Callable[[int, int], None]
# A larger file does not fit into one request.
MAX_REQUEST_BYTES = 6 * 1024 * 1024
PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    content_type: str
    _content: Content = field(repr=False)
    _opened: bool = field(default=False, repr=False)

    def part(self) -> tuple[str, Content, str]:
        """The part of a form for httpx; a seekable file is read from its beginning."""
        return self.name, self._content, self.content_type

    @property
    def size(self) -> int:
        """In bytes."""
        if isinstance(self._content, bytes):
            return len(self._content)
        return self._content.seek(0, os.SEEK_END)

    def pieces(self) -> Iterator[bytes]:
        """The content from its beginning."""
        content = io.BytesIO(self._content) if isinstance(self._content, bytes) else self._content
        content.seek(0)
        while piece := content.read(PIECE_BYTES):
            yield piece

    def content_hash(self) -> str:
        """As the API writes it."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return f"sha256:{digest.hexdigest()}"

    def close(self) -> None:
        """Close a file that this package opened; the caller's own stays open."""
        if self._opened and not isinstance(self._content, bytes):
            self._content.close()


def upload_of(file: File, filename: str | None = None) -> Upload:
    """The upload of a value. Raises TypeError for another value than a file of bytes, OSError for a path that
    cannot be read."""
    if isinstance(file, tuple):
        return _upload(file[1], filename or file[0])
    if isinstance(file, str | PathLike):
        path = Path(file)
        return _upload(path.open("rb"), filename or path.name, opened=True)
    return _upload(file, filename or _name_of(file))


def _upload(content: Content, name: str, *, opened: bool = False) -> Upload:
    if isinstance(content, bytes | bytearray | memoryview):
        content = bytes(content)
    elif isinstance(content, io.TextIOBase) or not hasattr(content, "read"):
        raise TypeError("file: must be a file that is open in binary mode, bytes, or a path")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if not isinstance(content, bytes) and not _can_be_sought_in(content):
        # A pipe can be read once, and its length is unknown.
        content = content.read()
    return Upload(name, kind, content, opened)


def _can_be_sought_in(content: IO[bytes]) -> bool:
    with suppress(AttributeError, OSError):
        return content.seekable()
    return False


def _name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return Path(name).name if isinstance(name, str) and name else "unnamed"
