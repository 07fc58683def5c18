"""The demo's documents on disk: a folder of Markdown or text files, each with optional TOML front matter."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from local.errors import CommandError
from shared.ingestion.synchronous_ingestion import NewDocument

CORPUS = Path(__file__).parent / "corpus"
ORGS = {
    "halden": "00000000-0000-4000-8000-00000000000a",
    "brightwater": "00000000-0000-4000-8000-00000000000b",
}
# The users that ingest an org's shared documents.
ADMINS = {"halden": "ines@halden.example", "brightwater": "rosa@brightwater.example"}
SUFFIXES = {".md", ".txt"}
_FENCE = "+++\n"


@dataclass(frozen=True)
class CorpusFile:
    """A file as a document, and the e-mail of its owner if it is private."""

    document: NewDocument
    owner: str | None


def org_id_of(name: str) -> str:
    """The id of a demo org by its short name, or an id as given. Raises CommandError for anything else."""
    try:
        return ORGS.get(name) or str(UUID(name))
    except ValueError:
        raise CommandError(f"no org is called {name}; give {', '.join(ORGS)}, or an id") from None


def read_folder(folder: Path) -> list[CorpusFile]:
    """Every document below `folder`, by name. Raises CommandError when there is none or one is malformed."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    if not files:
        raise CommandError(
            f"{folder} has no files that end in {' or '.join(sorted(SUFFIXES))}; check the path"
        )
    return [read_file(path, str(path.relative_to(folder))) for path in files]


def read_file(path: Path, name: str) -> CorpusFile:
    """One file; `name` becomes its external id, so that reading it again replaces it."""
    try:
        text = path.read_text(encoding="utf-8")
        front, body = _split(text)
        fields = tomllib.loads(front)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError(f"{path}: {error}") from None
    owner = fields.get("owner")
    document = NewDocument(
        title=fields.get("title") or path.stem,
        text=body,
        external_id=name,
        private=owner is not None,
        source_type=fields.get("source_type"),
        uri=fields.get("uri"),
        lang=fields.get("lang"),
        occurred_at=_timestamp(fields.get("date"), path),
        metadata=dict(_json_metadata(fields.get("metadata", {}))),
    )
    return CorpusFile(document, owner)


def _split(text: str) -> tuple[str, str]:
    if text.startswith(_FENCE) and "\n" + _FENCE in text:
        front, _, body = text.removeprefix(_FENCE).partition("\n" + _FENCE)
        return front, body.strip()
    return "", text.strip()


def _timestamp(value: Any, path: Path) -> datetime | None:
    if value is not None and (not isinstance(value, datetime) or value.tzinfo is None):
        raise CommandError(f"{path}: date needs a time and an offset, for example 2026-03-18T09:00:00Z")
    return value


def _json_metadata(metadata: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Metadata with TOML's dates as text, because metadata is JSON."""
    for key, value in metadata.items():
        yield key, value.isoformat() if hasattr(value, "isoformat") else value
