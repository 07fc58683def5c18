"""What a snapshot says of itself: what it holds, by which model, and the checksums that tell damage. Whoever
may write to the store can make one up that is in order: it becomes theirs who load it, and nobody else's."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.clients.object_paths import DATA
from shared.documents.snapshots.half_vectors import DIMENSIONS
from shared.errors import SnapshotRefused

FORMAT, VERSION = "rag-on-supabase-snapshot", 1
DAMAGED = "The snapshot is damaged"

Text = Annotated[str, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Sha256 = Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{64}$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(Strict):
    """The file, its digest and size as it lies there, and its size when it is unpacked."""

    file: Annotated[str, Field(strict=True, pattern=f"^{DATA.pattern}$")]
    sha256: Sha256
    bytes: Count
    unpacked_bytes: Count


class Manifest(Strict):
    """`checksum` is of all the others. No model: there is no chunk."""

    format: Literal["rag-on-supabase-snapshot"] = "rag-on-supabase-snapshot"
    version: Literal[1] = 1
    index_name: Text
    collection: dict[str, Any]
    embedding_model: Text | None
    dimensions: Count = DIMENSIONS
    documents: Count
    chunks: Count
    created_at: Text
    data: Data
    checksum: str = ""

    def sealed(self) -> bytes:
        """As it is stored."""
        fields = self.model_dump(exclude={"checksum"})
        return json.dumps({**fields, "checksum": _checksum(fields)}, ensure_ascii=False, indent=1).encode()

    @classmethod
    def opened(cls, content: bytes) -> "Manifest":
        """Raises SnapshotRefused."""
        try:
            fields = json.loads(content)
            stored_checksum = fields.pop("checksum")
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            raise SnapshotRefused(f"{DAMAGED}: its manifest cannot be read.") from None
        if fields.get("format") != FORMAT:
            raise SnapshotRefused("This is no snapshot of an index.")
        if type(version := fields.get("version")) is int and version > VERSION:
            raise SnapshotRefused(
                f"The snapshot's format is newer, {version}, than what is read here, {VERSION}."
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
