"""Wire models of /api/keys, by which people manage their own API keys. Errors wear the rag envelope."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints, field_validator

from shared.access.api_keys import NewKey
from shared.types import Scope


class NewKeyRequest(BaseModel):
    """`org_id` may be left out by members of one org; `collection` is the name of one to bind the key to."""

    name: Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]
    kind: Literal["live", "test", "admin", "sk"] = "live"
    org_id: UUID | None = None
    collection: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] | None = None
    expires_at: datetime | None = None

    def to_request(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"kind"})

    @field_validator("expires_at")
    @classmethod
    def _offset(cls, moment: datetime | None) -> datetime | None:
        if moment is not None and moment.tzinfo is None:
            raise ValueError("needs an offset, for example 2027-01-31T00:00:00Z")
        return moment


class RotateRequest(BaseModel):
    """For how long the old key goes on working beside the new one, at most a week."""

    overlap_seconds: Annotated[int, Field(strict=True, ge=0, le=604_800)] = 0


class Key(BaseModel):
    """A key as lists show it: never the key itself."""

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


class Created(Key):
    """A new key, with its text: shown this once."""

    key: str

    @classmethod
    def of_new(cls, key: NewKey) -> Self:
        return cls(**key.row, key=key.text)


class Keys(BaseModel):
    """At most 1000: working ones first, then the newest."""

    keys: list[Key]

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> Self:
        return cls(keys=[Key(**row) for row in rows])
