"""Where below an org's own folder a snapshot lies: names that callers give, and one for every index."""

import hashlib
import re
from urllib.parse import quote

from shared.errors import InvalidRequest

MANIFEST = "manifest.json"
# Where a snapshot lies unless somebody says where: KAITO's own word, which its clients send.
DEFAULT = "storage"
DATA = re.compile(r"data-(\d{8}T\d{6}Z)-[0-9a-f]{32}\.jsonl\.gz")
# What a folder's name may have in bytes anywhere, and what object stores take of a whole name, less what
# stands before it and behind.
MAX_SEGMENT, MAX_PATH = 255, 600
# They mean something to some file system, or to a shell.
_SPECIAL = set('\\:*?"<>|#[]~')


def directory_of(index: str) -> str:
    """The folder of an index: its name where that is plain, or encoded. No two indexes have one, and none is
    called like a file of a snapshot, since it has no dot."""
    encoded = quote(index, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(encoded) <= MAX_SEGMENT:
        return encoded
    # A tilde is in no name that was short enough.
    digest = hashlib.sha256(index.encode()).hexdigest()
    return f"{encoded[: MAX_SEGMENT - 1 - len(digest)]}~{digest}"


def segments_of(path: str) -> tuple[str, ...]:
    """The folders that a relative path names, from the org's own on. Raises InvalidRequest for one that leads
    anywhere else, or may."""
    if path in (".", "./"):
        return ()
    segments = tuple(path.removeprefix("./").split("/"))
    if len(path.encode()) > MAX_PATH or not all(_is_plain(segment) for segment in segments):
        raise InvalidRequest(
            "path: names of folders with / between, below the root of your organisation's snapshots",
            code="invalid_path",
        )
    return segments


def _is_plain(segment: str) -> bool:
    return (
        segment not in ("", ".", "..", MANIFEST)
        and len(segment.encode()) <= MAX_SEGMENT
        and segment.isprintable()
        and not _SPECIAL & set(segment)
        and not DATA.fullmatch(segment)
    )
