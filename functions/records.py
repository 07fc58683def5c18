"""records: answered requests of an org that records them: explanation, replay, feedback, review, erasure."""

from typing import Annotated
from uuid import UUID

from fastapi import Path
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from shared.answering import request_replay
from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import with_scope
from shared.api.contracts.ignored_names import ignored_names
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform import records as wire
from shared.api.contracts.platform.pagination import Limit
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Container
from shared.observability import request_record_store as records
from shared.text.prefixed_ids import id_of
from shared.types import Principal, Scope

app = create_app(error_format, "records", more_errors=(409,))
routes = PlatformRoutes(app)

Reader = Annotated[Principal, with_scope(Scope.CHAT_READ)]
Asker = Annotated[Principal, with_scope(Scope.CHAT_READ, Scope.RETRIEVALS_READ)]
# A user without a key, or a key with the scope admin. rag_list_records, rag_summarize_records,
# rag_label_record and rag_update_record_settings require an admin of the org; rag_delete_records does so for
# the records of other users.
Admin = Annotated[Principal, with_scope(Scope.ADMIN)]
RecordId = Annotated[wire.RecordId, Path()]


@routes.get("/records")
def index(
    caller: Admin,
    services: Container,
    limit: Limit = 20,
    offset: Offset = 0,
    sort_by: wire.SortBy = "created_at",
    answered: bool | None = None,
    rating: wire.Rating | None = None,
    labelled: bool | None = None,
) -> wire.Records:
    rows, total = records.list_records(
        services.database,
        caller,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        answered=answered,
        rating=rating,
        labelled=labelled,
    )
    data = [wire.ListedRecord.of(row) for row in rows]
    return wire.Records.of(data, total, limit, offset)


@routes.get("/records/summary")
def summary(caller: Admin, services: Container, days: wire.Days = 30) -> wire.Summary:
    return wire.Summary.of(records.summary(services.database, caller, days))


@routes.get("/records/settings")
def settings(caller: Asker, services: Container, org_id: UUID | None = None) -> wire.Settings:
    return wire.Settings.of(records.settings(services.database, caller, str(org_id) if org_id else None))


@routes.patch("/records/settings")
def update_settings(caller: Admin, services: Container, body: wire.NewSettings) -> wire.Settings:
    org_id = str(body.org_id) if body.org_id else None
    changed = records.update_settings(services.database, caller, org_id, body.retention_days)
    services.recorder.reset()
    return wire.Settings.of({**changed, "ignored_fields": ignored_names(body)})


@routes.get("/records/{record_id}")
def get(caller: Reader, services: Container, record_id: RecordId) -> wire.Record:
    return wire.Record.of(records.get(services.database, caller, record_id))


@routes.post("/records/{record_id}/replay")
async def replay(caller: Reader, services: Container, record_id: RecordId) -> wire.Replay:
    record = await run_in_threadpool(records.get, services.database, caller, record_id)
    return wire.Replay.of(record, await request_replay.replay(services, caller, record))


@routes.post("/records/{record_id}/feedback", status_code=204)
def rate(caller: Asker, services: Container, record_id: RecordId, body: wire.Feedback) -> Response:
    records.rate(services.database, caller, record_id, body.rating, body.reason)
    return Response(status_code=204)


@routes.post("/records/{record_id}/label", status_code=204)
def label(caller: Admin, services: Container, record_id: RecordId, body: wire.Label) -> Response:
    ids = [id_of(document_id, "document") for document_id in body.document_ids]
    records.label(services.database, caller, record_id, body.verdict, ids)
    return Response(status_code=204)


@routes.delete("/records")
def delete(caller: Admin, services: Container, user_id: UUID | None = None) -> wire.Deleted:
    return wire.Deleted(deleted=records.delete(services.database, caller, str(user_id) if user_id else None))


handler = lambda_handler(app)
