"""Wire models of /api/keys: users manage their own API keys. Errors have the rag format."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from shared.api.contracts.shared_fields import ResponseModel, stripped
from shared.types import Scope


class NewKeyRequest(BaseModel):
    """Members of one org may omit `org_id`; `collection`: the name of the only collection of the key.
    An unknown field is an error: a misspelled restriction would otherwise be ignored."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, stripped(100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]
    kind: Literal["live", "test", "admin", "sk"] = "live"
    org_id: UUID | None = None
    collection: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] | None = None
    expires_at: datetime | None = None

    def to_request(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"kind"})

    @field_validator("expires_at")
    @classmethod
    def _has_offset(cls, timestamp: datetime | None) -> datetime | None:
        if timestamp is not None and timestamp.tzinfo is None:
            raise ValueError("needs an offset, for example 2027-01-31T00:00:00Z")
        return timestamp


class RotateRequest(BaseModel):
    """`overlap_seconds`: how long the old key stays valid, at most a week."""

    model_config = ConfigDict(extra="forbid")

    overlap_seconds: Annotated[int, Field(strict=True, ge=0, le=604_800)] = 0


class Key(BaseModel):
    """An API key without its text."""

    id: str
    org_id: str
    owner_id: str
    name: str
    prefix: str
    scopes: list[Scope]
    collection: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class CreatedKey(Key):
    """A new key with its text, which no later response shows."""

    # A validation error would quote the key.
    model_config = ConfigDict(hide_input_in_errors=True)

    key: str


class Keys(ResponseModel):
    """At most 1000 keys: valid ones first, then the newest."""

    keys: list[Key]
