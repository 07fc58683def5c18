"""Wire models of sources."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from shared.api.contracts.ignored_names import IgnoredNames, LenientModel
from shared.api.contracts.platform.documents import error_of
from shared.api.contracts.shared_fields import Flag, WithoutNul

Kind = Literal["website", "bucket"]
Secret = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4000), WithoutNul]
Address = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]
Interval = Annotated[int, Field(strict=True, ge=300, le=2_592_000)]
MaxItems = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


class Credentials(BaseModel):
    """Credentials of a bucket, which no response shows."""

    # A validation error would quote them.
    model_config = ConfigDict(hide_input_in_errors=True)

    access_key_id: Secret
    secret_access_key: Secret
    session_token: Secret | None = None


class NewSource(BaseModel):
    """`address` of a bucket: s3://bucket/prefix. `endpoint`: an S3-compatible service of the operator's
    settings, by default AWS. Without `credentials` the bucket must be public. `interval_seconds`: between two
    runs, from five minutes to thirty days. `max_items`: a source with more items fails; a website may have
    10,000, a bucket 1,000,000. `include_noindex`: also pages of a website that ask not to be indexed."""

    collection_id: str
    kind: Kind
    address: Address
    interval_seconds: Interval = 86_400
    max_items: MaxItems = 1000
    include_noindex: Flag = False
    endpoint: Annotated[str, StringConstraints(strict=True, max_length=500)] | None = None
    region: Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z0-9-]{1,40}$")] | None = None
    credentials: Credentials | None = None

    @model_validator(mode="after")
    def _only_buckets_have_a_service(self) -> Self:
        if self.kind == "bucket":
            if "::" in self.address or not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,62}(/.*)?", self.address):
                raise ValueError("address: must be s3://bucket or s3://bucket/prefix")
            if self.include_noindex:
                raise ValueError("include_noindex is for websites")
        elif self.endpoint or self.region or self.credentials:
            raise ValueError("endpoint, region and credentials are for buckets")
        return self


class SourceChanges(LenientModel):
    """Null leaves a field unchanged. Another address is another source."""

    interval_seconds: Interval | None = None
    max_items: MaxItems | None = None
    include_noindex: Flag | None = None
    enabled: Flag | None = None
    credentials: Credentials | None = None


class Run(BaseModel):
    """The run that is under way, or the last one. `listed`: items; `stored`: new and changed documents that
    it queued; `failed`: items that could not be read or stored; `left_out`: the number of items that are no
    documents, by reason, as `noindex`. `error`: why the run failed, or the error of
    its first failed item."""

    started_at: datetime
    finished_at: datetime | None
    listed: int
    stored: int
    deleted: int
    failed: int
    left_out: dict[str, int]
    error: dict[str, str] | None


class Source(BaseModel):
    """`next_run_at`: null while it is disabled."""

    id: str
    org_id: str
    collection_id: str
    kind: Kind
    address: str
    endpoint: str | None
    region: str | None
    has_credentials: bool
    interval_seconds: int
    max_items: int
    include_noindex: bool
    enabled: bool
    status: Literal["waiting", "running"]
    last_run: Run | None
    next_run_at: datetime | None
    created_at: datetime
    updated_at: datetime
    # Unknown fields of a PATCH.
    ignored_fields: IgnoredNames

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {
            **row,
            "status": row["state"],
            "last_run": {**row, "error": error_of(row)} if row["started_at"] else None,
            "next_run_at": row["due_at"] if row["enabled"] else None,
        }


class Sources(BaseModel):
    """At most fifty per org."""

    data: list[Source]
