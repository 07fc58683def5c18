"""Wire models of webhooks, their deliveries and events."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from shared.api.contracts.ignored_names import IgnoredNames, LenientModel
from shared.api.contracts.platform.pagination import Page
from shared.api.contracts.shared_fields import Flag
from shared.types import ClaimedDelivery, Row, WebhookMessage

EventName = Literal[
    "collection.created",
    "collection.updated",
    "collection.deleted",
    "document.processing_started",
    "document.processing_completed",
    "document.processing_failed",
    "document.deleted",
    "quota.alert",
    "quota.exceeded",
]
Url = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]
Events = Annotated[
    list[EventName],
    Field(min_length=1, max_length=9),
    AfterValidator(lambda names: list(dict.fromkeys(names))),
]
Description = Annotated[str, StringConstraints(strict=True, max_length=500)]


class NewWebhook(BaseModel):
    """`collection_id`: only events of this collection. Members of one org may omit `org_id`."""

    url: Url
    events: Events
    collection_id: str | None = None
    description: Description | None = None
    org_id: UUID | None = None


class WebhookChanges(LenientModel):
    """Null leaves a field unchanged."""

    url: Url | None = None
    events: Events | None = None
    description: Description | None = None
    enabled: Flag | None = None


class Rotation(BaseModel):
    """`overlap_seconds`: how long the old secret also signs, at most a week."""

    overlap_seconds: Annotated[int, Field(strict=True, ge=0, le=604_800)] = 86_400


class Webhook(BaseModel):
    """`failing_since`: the time since which all deliveries have failed."""

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
    # Unknown fields of a PATCH.
    ignored_fields: IgnoredNames


class CreatedWebhook(Webhook):
    """With the secret that signs deliveries, which no later response shows."""

    # A validation error would quote the secret.
    model_config = ConfigDict(hide_input_in_errors=True)

    secret: str


class Webhooks(BaseModel):
    """At most twenty per org."""

    data: list[Webhook]


class Delivery(BaseModel):
    """Delivery of one event to one webhook. `error`: the failure of the last attempt."""

    id: str
    event_id: str
    type: EventName
    data: dict[str, Any]
    status: Literal["waiting", "delivered", "failed"]
    attempts: int
    response_status: int | None
    error: str | None
    # Null unless the status is waiting.
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> dict[str, Any]:
        state = {"done": "delivered", "failed": "failed"}.get(row["state"], "waiting")
        fields = {
            "event_id": _event_id(row["event_id"]),
            "type": row["event"],
            "status": state,
            "data": _data_of(row["object"]),
        }
        return {**row, **fields, "next_attempt_at": row["due_at"] if state == "waiting" else None}


class Deliveries(Page[Delivery]):
    pass


def message_of(row: ClaimedDelivery) -> WebhookMessage:
    """The message of a delivery. `created`: seconds since the epoch."""
    created = int(datetime.fromisoformat(row["created_at"]).timestamp())
    body = {
        "id": _event_id(row["event_id"]),
        "type": row["event"],
        "created": created,
        "data": _data_of(row["object"]),
    }
    return WebhookMessage(_event_id(row["event_id"]), json.dumps(body, ensure_ascii=False).encode())


def _event_id(event_id: str) -> str:
    return f"evt_{event_id}"


def _data_of(row_object: Row) -> Row:
    """The object, with its error as an object."""
    fields = {name: value for name, value in row_object.items() if not name.startswith("error_")}
    if "error_code" in row_object:
        fields["error"] = {"code": row_object["error_code"], "message": row_object.get("error_message")}
    return {"object": fields}
