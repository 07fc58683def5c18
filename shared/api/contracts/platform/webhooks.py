"""Wire models of webhooks: what an org's admins say and see of them, and the events that are sent."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from shared.api.contracts.platform.common import Limit, Offset, Pagination
from shared.types import Message

__all__ = ["Limit", "Offset", "Pagination"]

EventName = Literal[
    "collection.created",
    "collection.updated",
    "collection.deleted",
    "document.processing_started",
    "document.processing_completed",
    "document.processing_failed",
    "document.deleted",
]
Url = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]
Events = Annotated[
    list[EventName],
    Field(min_length=1, max_length=7),
    AfterValidator(lambda names: list(dict.fromkeys(names))),
]
Description = Annotated[str, StringConstraints(strict=True, max_length=500)]


class NewWebhook(BaseModel):
    """`collection_id`: only what happens in that one. `org_id` may be left out by members of one org."""

    url: Url
    events: Events
    collection_id: str | None = None
    description: Description | None = None
    org_id: UUID | None = None


class WebhookChanges(BaseModel):
    """Null, as if it were not there, leaves a field as it is."""

    url: Url | None = None
    events: Events | None = None
    description: Description | None = None
    enabled: Annotated[bool, Field(strict=True)] | None = None


class Rotation(BaseModel):
    """For how long the old secret goes on signing beside the new one, at most a week."""

    overlap_seconds: Annotated[int, Field(strict=True, ge=0, le=604_800)] = 86_400


class Webhook(BaseModel):
    """`failing_since`: since when nothing has arrived there."""

    id: str
    org_id: str
    url: str
    description: str | None
    events: list[EventName]
    collection_id: str | None
    enabled: bool
    failing_since: datetime | None
    created_at: datetime
    updated_at: datetime


class CreatedWebhook(Webhook):
    """With the secret that what it is sent is signed with: shown this once."""

    secret: str


class Webhooks(BaseModel):
    """At most twenty of an org."""

    data: list[Webhook]


class Delivery(BaseModel):
    """One event on its way to one webhook, with what it says (`data`). `error`: why the last attempt was not
    enough."""

    id: str
    event_id: str
    type: EventName
    data: dict[str, Any]
    status: Literal["waiting", "delivered", "failed"]
    attempts: int
    response_status: int | None
    error: str | None
    # Of one that waits.
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> dict[str, Any]:
        state = {"done": "delivered", "failed": "failed"}.get(row["state"], "waiting")
        named = {"event_id": _event_id(row), "type": row["event"], "status": state, "data": _data_of(row)}
        return {**row, **named, "next_attempt_at": row["due_at"] if state == "waiting" else None}


class Deliveries(BaseModel):
    data: list[Delivery]
    pagination: Pagination


def message_of(row: dict[str, Any]) -> Message:
    """A delivery as it is sent. `created` is in seconds since the epoch."""
    created = int(datetime.fromisoformat(row["created_at"]).timestamp())
    body = {"id": _event_id(row), "type": row["event"], "created": created, "data": _data_of(row)}
    return Message(_event_id(row), json.dumps(body, ensure_ascii=False).encode())


def _event_id(row: dict[str, Any]) -> str:
    return f"evt_{row['event_id']}"


def _data_of(row: dict[str, Any]) -> dict[str, Any]:
    """As the contract has it: the object, whose error is an object too."""
    thing: dict[str, Any] = row["object"]
    shown = {name: value for name, value in thing.items() if not name.startswith("error_")}
    if "error_code" in thing:
        shown["error"] = {"code": thing["error_code"], "message": thing.get("error_message")}
    return {"object": shown}
