"""Paths of snapshots below the folder of an org."""

import hashlib
import re
from urllib.parse import quote

from shared.errors import InvalidRequest

MANIFEST = "manifest.json"
# The default path of a snapshot: KAITO's own, which its clients send.
DEFAULT = "storage"
DATA = re.compile(r"data-(\d{8}T\d{6}Z)-[0-9a-f]{32}\.jsonl\.gz")
# In bytes. Object stores allow 1,024 for a whole name, which has further parts before and after the path.
MAX_SEGMENT, MAX_PATH = 255, 600
# Characters with a meaning for some file systems or shells.
_SPECIAL = set('\\:*?"<>|#[]~')


def directory_of(index: str) -> str:
    """The folder of an index: its name, percent-encoded. Each index has its own, and none has the name of a
    snapshot's file, since it has no dot."""
    encoded = quote(index, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(encoded) <= MAX_SEGMENT:
        return encoded
    # Shorter names have no tilde.
    digest = hashlib.sha256(index.encode()).hexdigest()
    return f"{encoded[: MAX_SEGMENT - 1 - len(digest)]}~{digest}"


def segments_of(path: str) -> tuple[str, ...]:
    """The folders of a relative path, below the org's own. Raises InvalidRequest for a path that may lead
    elsewhere."""
    if path in (".", "./"):
        return ()
    segments = tuple(path.removeprefix("./").split("/"))
    if len(path.encode()) > MAX_PATH or not all(_is_plain(segment) for segment in segments):
        raise InvalidRequest(
            "path: must be names of folders separated by /, below the root of your org's snapshots",
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
