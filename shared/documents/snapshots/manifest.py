"""Manifest of a snapshot: its contents, its embedding model, checksums against damage.

A writer to the store can forge a snapshot. Its documents belong to the org that loads it, and to no other.
"""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.clients.snapshot_paths import DATA
from shared.errors import SnapshotRefused

FORMAT, VERSION = "citerow-snapshot", 1
DAMAGED = "Persist the index again, because the snapshot is damaged"

Text = Annotated[str, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Sha256 = Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{64}$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(Strict):
    """The data file, its digest and its size."""

    file: Annotated[str, Field(strict=True, pattern=f"^{DATA.pattern}$")]
    sha256: Sha256
    bytes: Count


class Manifest(Strict):
    """`checksum`: of all other fields. Without chunks there is no model."""

    format: Literal["citerow-snapshot"] = "citerow-snapshot"
    version: Literal[1] = 1
    index_name: Text
    collection: dict[str, Any]
    embedding_model: Text | None
    documents: Count
    chunks: Count
    created_at: Text
    data: Data
    checksum: str = ""

    def to_bytes(self) -> bytes:
        fields = self.model_dump(exclude={"checksum"})
        return json.dumps({**fields, "checksum": _checksum(fields)}, ensure_ascii=False, indent=1).encode()

    @classmethod
    def parse(cls, content: bytes) -> "Manifest":
        """Raises SnapshotRefused."""
        try:
            fields = json.loads(content)
            stored_checksum = fields.pop("checksum")
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            raise SnapshotRefused(f"{DAMAGED}: its manifest cannot be read.") from None
        if fields.get("format") != FORMAT:
            raise SnapshotRefused("This is not a snapshot of an index. Check the path.")
        if type(version := fields.get("version")) is int and version > VERSION:
            raise SnapshotRefused(
                f"The snapshot has format {version}; this deployment reads up to {VERSION}. Upgrade it first."
            )
        if stored_checksum != _checksum(fields):
            raise SnapshotRefused(f"{DAMAGED}: its manifest was changed.")
        try:
            return cls.model_validate(fields)
        except ValidationError:
            raise SnapshotRefused(f"{DAMAGED}: its manifest is not complete.") from None


def _checksum(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
