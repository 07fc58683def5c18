"""Storage of snapshots: a folder of any fsspec store, with one folder for each org.

A snapshot is a folder with a few files, which manifest.py and jsonl.py define."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO
from uuid import uuid4

from shared.clients.snapshot_paths import MANIFEST
from shared.errors import ConfigurationError, InvalidRequest, RagError, SnapshotFailed

# A manifest is about a page long; the metadata in it have at most 10 KB.
MAX_MANIFEST = 1 << 20


class Store:
    """Safe to use from many threads."""

    def __init__(self, url: str) -> None:
        """Raises ConfigurationError for a store whose package is not installed."""
        import fsspec

        try:
            # Other processes write to it too, so that no list may be cached.
            self._files, root = fsspec.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(
                f"RAG_SNAPSHOT_URL: its store cannot be opened ({error}); check the URL and its package"
            ) from None
        self._is_local = bool(getattr(self._files, "local_file", False))
        self._root = os.path.realpath(root) if self._is_local else root.rstrip("/")

    def folder(self, org_id: str, segments: Sequence[str]) -> "SnapshotFolder":
        """A folder below the org's own, which need not exist."""
        home = f"{self._root}/{org_id}"
        return SnapshotFolder(self._files, home, "/".join((home, *segments)), self._is_local)


@dataclass(frozen=True, slots=True)
class SnapshotFolder:
    """The folder of one snapshot. All methods raise SnapshotFailed when the store cannot answer, and
    InvalidRequest where a symbolic link leads out of the org's folder."""

    _files: Any
    _home: str
    _path: str
    _is_local: bool

    def manifest(self) -> bytes | None:
        """The manifest, or its beginning; None without one."""
        try:
            with self.reading(MANIFEST) as file:
                return file.read(MAX_MANIFEST)
        except FileNotFoundError:
            return None

    def replace_manifest(self, content: bytes) -> None:
        """Replace the manifest atomically."""
        with _translated_errors():
            if not self._is_local:
                self._files.pipe_file(self._file(MANIFEST), content)
                return
            draft = self._file(f".manifest-{uuid4().hex}")
            try:
                self._files.pipe_file(draft, content)
                os.replace(draft, self._file(MANIFEST))  # noqa: PTH105  # fsspec's names are no Paths
            finally:
                with suppress(FileNotFoundError):
                    self._files.rm_file(draft)

    def names(self) -> list[str]:
        with _translated_errors():
            entries = self._files.ls(self._path, detail=False)
        return [str(name).rsplit("/", 1)[-1] for name in entries]

    def count_files(self) -> int:
        """The number of files in it and in folders below it; 0 where it does not exist."""
        with _translated_errors():
            return len(self._files.find(self._path))

    def folders(self) -> list[str]:
        """The names of the folders in it, sorted; none where the folder does not exist."""
        try:
            with _translated_errors(FileNotFoundError, NotADirectoryError):
                entries = self._files.ls(self._path, detail=True)
        except FileNotFoundError:
            return []
        return sorted(
            str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]
            for entry in entries
            if entry["type"] == "directory"
        )

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """Raises FileNotFoundError too."""
        with _translated_errors(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            path = self._file(name)
            file = self._files.open(path, "rb")
        try:
            yield _File(file)  # type: ignore[misc]
        finally:
            file.close()

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A new file, which is complete when the context ends, and removed after an error."""
        with _translated_errors():
            path = self._file(name)
            if self._is_local:
                self._files.makedirs(self._path, exist_ok=True)
            file = self._files.open(path, "wb")
        try:
            yield _File(file)  # type: ignore[misc]
        except BaseException:
            with suppress(Exception):
                file.close()
            self.remove(name)
            raise
        with _translated_errors():
            file.close()

    def remove(self, name: str) -> None:
        """Remove the file if possible. A later snapshot removes a file that is left over."""
        with suppress(Exception):
            self._files.rm_file(self._file(name))

    def _file(self, name: str) -> str:
        path = f"{self._path}/{name}"
        if self._is_local:
            real = os.path.realpath(path)
            # Nor may the org's own folder be a link: its realpath could be another org's.
            if not real.startswith(f"{self._home}/") or os.path.realpath(self._home) != self._home:
                raise InvalidRequest(
                    "path: must be below the root of your org's snapshots", code="invalid_path"
                )
        return path


@dataclass(frozen=True, slots=True)
class _File:
    """A file whose errors become SnapshotFailed."""

    _file: Any

    def read(self, size: int = -1) -> bytes:
        with _translated_errors():
            return bytes(self._file.read(size))

    def write(self, data: bytes) -> int:
        with _translated_errors():
            self._file.write(data)
        return len(data)


@contextmanager
def _translated_errors(*missing: type[Exception]) -> Iterator[None]:
    """Errors of the type `missing` become FileNotFoundError; all others, whose types depend on the store,
    SnapshotFailed."""
    try:
        yield
    except RagError:
        raise
    except missing:
        raise FileNotFoundError from None
    except Exception as error:
        raise SnapshotFailed from error
