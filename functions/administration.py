"""administration: health, registration, orgs, invitations; for admins members, groups, jobs, events."""

from typing import Annotated, Any
from uuid import UUID

from starlette.responses import Response

from shared.access import registration
from shared.access.org_administration import (
    answer_invitation,
    delete_group,
    list_events,
    list_groups,
    list_invitations,
    list_members,
    list_orgs,
    list_usage,
    org_statistics,
    put_group,
    put_member,
    remove_member,
    restrict_new_collections,
)
from shared.api.app import PlatformRoutes, create_app, lambda_handler
from shared.api.authentication import InvitedCaller, OptionalCaller, registration_only, with_scope
from shared.api.contracts.ignored_names import ignored_names
from shared.api.contracts.platform import administration as wire
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform.pagination import Limit
from shared.api.contracts.shared_fields import Offset
from shared.api.dependencies import Container
from shared.api.health import check
from shared.api.health_probes import State
from shared.documents import ingestion_jobs
from shared.types import Principal, Scope

# Starts without an embedder or a gateway, so that health can report their failure.
app = create_app(error_format, "administration", more_errors=(409,), searches=False)
routes = PlatformRoutes(app)

Admin = Annotated[Principal, with_scope(Scope.ADMIN)]
AnyCaller = Annotated[Principal, with_scope(*Scope)]
UNHEALTHY: dict[int | str, dict[str, Any]] = {
    503: {"model": wire.Health, "description": "The same report, while the database is unavailable"}
}


@routes.get("/health", response_model=wire.Health, responses=UNHEALTHY)
def health(caller: OptionalCaller, services: Container) -> Response:
    report = check(services, caller)
    status = 503 if report.status is State.UNHEALTHY else 200
    body = wire.Health.of(report).model_dump_json()
    return Response(body, status, media_type="application/json")


@routes.post("/auth/register", status_code=201, dependencies=[registration_only])
def register(services: Container, body: wire.NewUser) -> wire.RegisteredUser:
    password = body.password.get_secret_value()
    user = registration.register(services.auth, services.verifier, services.database, body.email, password)
    return wire.RegisteredUser.of(user)


@routes.get("/stats")
def stats(caller: Admin, services: Container) -> wire.Stats:
    return wire.Stats.of(org_statistics(services.database, caller))


@routes.get("/orgs")
def orgs(caller: AnyCaller, services: Container) -> wire.Orgs:
    return wire.Orgs.of({"data": list_orgs(services.database, caller)})


@routes.patch("/orgs/{org_id}")
def change_org(caller: Admin, services: Container, org_id: UUID, body: wire.OrgChanges) -> wire.OrgSettings:
    restricts = body.restricts_collections
    restrict_new_collections(services.database, caller, str(org_id), restricts=restricts)
    return wire.OrgSettings(
        org_id=str(org_id), restricts_collections=restricts, ignored_fields=ignored_names(body)
    )


@routes.get("/invitations")
def invitations(caller: InvitedCaller, services: Container) -> wire.Invitations:
    return wire.Invitations.of({"data": list_invitations(services.database, caller)})


@routes.post("/invitations/{org_id}", status_code=204)
def answer(caller: InvitedCaller, services: Container, org_id: UUID, body: wire.InvitationAnswer) -> Response:
    answer_invitation(services.database, caller, str(org_id), accept=body.accept)
    return Response(status_code=204)


@routes.get("/usage")
def usage(caller: Admin, services: Container, days: wire.Days = 30) -> wire.Usage:
    return wire.Usage.of({"data": list_usage(services.database, caller, days)})


@routes.get("/members")
def members(
    caller: Admin, services: Container, limit: Limit = 20, offset: Offset = 0, invited: bool = False
) -> wire.Members:
    rows, total = list_members(services.database, caller, limit, offset, invited=invited)
    return wire.Members.of([wire.Member(**row) for row in rows], total, limit, offset)


@routes.post("/members", status_code=204)
def put(caller: Admin, services: Container, body: wire.NewMember) -> Response:
    put_member(services.database, caller, body.model_dump(mode="json"))
    return Response(status_code=204)


@routes.delete("/members/{user_id}", status_code=204)
def remove(caller: Admin, services: Container, user_id: UUID, org_id: UUID | None = None) -> Response:
    remove_member(services.database, caller, str(user_id), str(org_id) if org_id else None)
    return Response(status_code=204)


@routes.get("/groups")
def groups(caller: Admin, services: Container, org_id: UUID | None = None) -> wire.Groups:
    return wire.Groups.of(list_groups(services.database, caller, str(org_id) if org_id else None))


@routes.post("/groups", status_code=204)
def put_group_of_org(caller: Admin, services: Container, body: wire.NewGroup) -> Response:
    put_group(services.database, caller, body.model_dump(mode="json"))
    return Response(status_code=204)


@routes.delete("/groups", status_code=204)
def remove_group(
    caller: Admin, services: Container, name: wire.GroupName, org_id: UUID | None = None
) -> Response:
    delete_group(services.database, caller, name, str(org_id) if org_id else None)
    return Response(status_code=204)


@routes.get("/jobs")
def jobs(
    caller: Admin,
    services: Container,
    limit: Limit = 20,
    offset: Offset = 0,
    state: wire.JobState | None = None,
) -> wire.Jobs:
    rows, total = ingestion_jobs.list_jobs(services.database, caller, state, limit, offset)
    return wire.Jobs.of([wire.Job(**row) for row in rows], total, limit, offset)


@routes.post("/jobs/retry", status_code=202)
def retry_jobs(caller: Admin, services: Container, body: wire.JobIds) -> wire.RetriedJobs:
    ids = [str(job_id) for job_id in body.job_ids]
    return wire.RetriedJobs(job_ids=ingestion_jobs.retry(services.database, caller, ids))


@routes.get("/events")
def events(
    caller: Admin,
    services: Container,
    limit: Limit = 20,
    offset: Offset = 0,
    namespace: wire.Namespace | None = None,
    event: wire.EventName | None = None,
) -> wire.Events:
    rows, total = list_events(services.database, caller, limit, offset, namespace, event)
    return wire.Events.of([wire.Event(**row) for row in rows], total, limit, offset)


handler = lambda_handler(app)
