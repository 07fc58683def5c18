"""The sweeps of SQL functions and of tables, straight through PostgREST."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from shared.clients.postgrest import SECRET_HEADER
from verify import attacks, request_examples, sql_functions
from verify.actors import RAG_MEMBERS, SCOPES, Person
from verify.attacks import REFUSALS
from verify.permissions import Permission, permissions
from verify.request_generator import Request
from verify.row_digest import difference
from verify.row_states import PLATFORM
from verify.target_deployment import Deployment, Finding
from verify.target_sweep import TIMEOUT_SECONDS, Sweep, bearer, open_sweep
from verify.temporary_rows import Memberships

# Statuses for a schema, table or function that PostgREST does not expose.
UNEXPOSED_SCHEMA = 406
UNEXPOSED = REFUSALS | {UNEXPOSED_SCHEMA}
NO_PERMISSION = Permission("member", None)
NO_TOKEN, ADMIN, SERVICE = "no token", "the admin of the victim org", "a token of the service role"


def open_sql_sweep(
    deployment: Deployment, memberships: Memberships = RAG_MEMBERS
) -> AbstractContextManager[Sweep]:
    return open_sweep(deployment, deployment.project_url, deployment.project_headers, memberships)


def sweep_functions(sweep: Sweep, only: Callable[[str], bool] = lambda _: True) -> Iterator[Finding]:
    """Findings about the SQL functions, called straight through PostgREST, whose name `only` accepts."""
    for function in sql_functions.sql_functions(sweep.actors):
        if only(function.name):
            yield from _attack_function(sweep, function)
            if function.name == "is_org_member":
                yield from _send_large_body(sweep)
                yield from _ask_for_membership(sweep, function)
                yield from _ask_for_plan(sweep, function)


def _send_large_body(sweep: Sweep) -> Iterator[Finding]:
    """Only PostgREST's pre-request function refuses it: is_org_member itself has no limit."""
    request = Request("POST", "/rest/v1/rpc/is_org_member", body={"org_id": "x" * (2 << 20)})
    headers = bearer(sweep.actors.token(sweep.actors.admin)) | {SECRET_HEADER: ""}
    response = sweep.attempt("is_org_member", "a large direct call", request, headers)
    if response.status_code != 413:
        detail = f"the status is {response.status_code}: set pgrst.db_pre_request (docs/install.md)"
        yield Finding("is_org_member", "a large direct call", detail)


def _ask_for_membership(sweep: Sweep, function: sql_functions.SqlFunction) -> Iterator[Finding]:
    """No response of is_org_member shows an object: only the answer is right or wrong."""
    request, actors = function.request(sweep.objects.shared, optional=True), sweep.actors
    for person, answer in (
        (actors.member, "true"),
        (actors.foreign_admin, "false"),
        (actors.stranger, "false"),
        (actors.invited, "false"),
    ):
        response = sweep.attempt(function.name, "membership", request, bearer(actors.token(person)))
        if response.text != answer:
            yield Finding(function.name, "membership", f"it is {response.text[:200]}, not {answer}")


def _ask_for_plan(sweep: Sweep, function: sql_functions.SqlFunction) -> Iterator[Finding]:
    """A plan has the numbers of rows that the policies hide."""
    request, attack = function.request(sweep.objects.shared, optional=True), "a plan"
    headers = bearer(sweep.actors.token(sweep.actors.stranger)) | {
        "Accept": "application/vnd.pgrst.plan+json"
    }
    if sweep.attempt(function.name, attack, request, headers).is_success:
        yield Finding(function.name, attack, "PostgREST shows it: set pgrst.db_plan_enabled to false")


def _attack_function(sweep: Sweep, function: sql_functions.SqlFunction) -> Iterator[Finding]:
    sweep.factory.delete_attackers_objects(sweep.objects)
    refused = {"anon", "service_role"}
    if function.name in request_examples.OF_THE_WORKER:
        refused.add("authenticated")
    for role in sorted(function.roles & refused):
        yield Finding(function.name, "privileges", f"the role {role} may execute it")
    yield from _call_without_secret(sweep, function)
    for group in attacks.on_sql_functions(sweep.actors, sweep.objects):
        yield from sweep.attack(function, group, group.attacks)
    sweep.renew_if_changed()
    if function.name in request_examples.WITHOUT_CONTROL:
        return
    callers = _callers_of_functions(sweep)
    control = sweep.control(function, callers)
    needs_effect = function.name not in request_examples.WITHOUT_EFFECT
    if needs_effect and control.caller and not control.has_effect:
        needs_effect = not _differs(sweep, function, callers)
    yield from sweep.control_findings(function, control, needs_effect=needs_effect)
    yield from sweep.private_control_findings(function, control)
    has_scopes = function.name not in request_examples.OPEN_TO_EVERY_SCOPE
    if has_scopes and control.has_effect and control.caller in ("member", "admin"):
        yield from _attack_scopes(sweep, function, getattr(sweep.actors, control.caller))


def _attack_scopes(sweep: Sweep, function: sql_functions.SqlFunction, owner: Person) -> Iterator[Finding]:
    """Call with one scope, which must not suffice, then with every scope that does not suffice: the refusal
    names those that do. Row security refuses some calls without naming a scope: for these, the function's
    permission has them."""
    attack = "a key token with one scope"
    for scope in SCOPES:
        response, effect = sweep.effect(function, bearer(sweep.actors.key_token(owner, [scope])), attack)
        if not effect:
            break
    else:
        yield Finding(function.name, attack, "every scope suffices")
        return
    named = {scope for scope in SCOPES if response.is_error and re.search(rf"\b{scope}\b", response.text)}
    stated = permissions().get(function.name, NO_PERMISSION).scopes
    if named:
        yield from sweep.scope_findings(function, named)
    others = sorted({*SCOPES} - {*(named or stated or ()), "admin"})
    attack = f"a key token with {', '.join(others)}"
    is_known = bool(named) or stated is not None
    if is_known and sweep.effect(function, bearer(sweep.actors.key_token(owner, others)), attack)[1]:
        yield Finding(function.name, attack, "the scopes suffice")


def _call_without_secret(sweep: Sweep, function: sql_functions.SqlFunction) -> Iterator[Finding]:
    """Send the admin's valid request without the secret: refused, unless browsers may call the function."""
    if function.name in request_examples.OPEN_TO_BROWSERS | request_examples.OF_THE_WORKER:
        return
    request = function.request(sweep.objects.shared, optional=True)
    headers = bearer(sweep.actors.token(sweep.actors.admin)) | {SECRET_HEADER: ""}
    attack = "a call without the functions' secret"
    response = sweep.attempt(function.name, attack, request, headers)
    if response.status_code != 403 or "functions_secret" not in response.text:
        detail = f"the status is {response.status_code}: {response.text[:200]}"
        yield Finding(function.name, attack, detail)
    sweep.renew_if_changed()


def _differs(
    sweep: Sweep, function: sql_functions.SqlFunction, callers: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether an authorized call succeeds with another result than the same call of a user of no org."""
    request = function.request(sweep.objects.shared, optional=True)
    stranger = sweep.send(request, bearer(sweep.actors.token(sweep.actors.stranger))).text
    answers = [sweep.send(request, headers) for headers in callers.values()]
    sweep.renew_if_changed()
    return any(answer.is_success and answer.text != stranger for answer in answers)


def _callers_of_functions(sweep: Sweep) -> dict[str, dict[str, str]]:
    """Authorized callers: users of the org, workers by role and by lease, and tokens for one purpose."""
    actors, values = sweep.actors, sweep.objects.shared
    writing = ["documents:read", "documents:write"]
    tokens = {
        "member": actors.token(actors.member),
        "admin": actors.token(actors.admin),
        "invited": actors.token(actors.invited),
        "the worker with a job": actors.key_token(actors.admin, writing, lease=values["job_lease"]),
        "the worker with an extraction": actors.key_token(
            actors.admin, writing, lease=values["extraction_lease"]
        ),
        "the worker with a source": actors.key_token(
            actors.admin, [*writing, "admin"], lease=values["source_lease"][1]
        ),
        "the worker": actors.signer.token(TIMEOUT_SECONDS, role="rag_worker"),
        "the look-up of keys": actors.signer.token(
            TIMEOUT_SECONDS, rag={"key_hash": values["key_hash_of_key"]}
        ),
        "the metrics": actors.signer.token(TIMEOUT_SECONDS, rag={"metrics": True}),
    }
    return {name: bearer(token) for name, token in tokens.items()}


def sweep_tables(sweep: Sweep, only: Callable[[str], bool] = lambda _: True) -> Iterator[Finding]:
    """Findings about the tables, reached through PostgREST, whose name `only` accepts."""
    actors = sweep.actors
    before = sweep.rows()
    callers = {
        NO_TOKEN: {},
        ADMIN: bearer(actors.token(actors.admin)),
        "an admin of another org": bearer(actors.token(actors.foreign_admin)),
        SERVICE: bearer(actors.token(actors.admin, role="service_role")),
        "the worker's role": bearer(actors.signer.token(TIMEOUT_SECONDS, role="rag_worker")),
    }
    if only("schemas"):
        yield from _ask_for_schemas(sweep)
    for table in sql_functions.tables(actors):
        if only(table.name):
            requests = table.requests(actors.org_id)
            # The admin may read the own org in a table of the adopter's, and the service role all of it.
            is_own = table.is_exposed and not table.is_ours
            outsiders = {name: headers for name, headers in callers.items() if name not in (ADMIN, SERVICE)}
            attackers = outsiders if is_own else callers
            yield from _attack_unexposed(sweep, str(table), requests, attackers, table.is_exposed)
    if changed := difference(before, sweep.rows()):
        yield Finding("tables", "all attacks", f"one of them changed {changed}")


def _ask_for_schemas(sweep: Sweep) -> Iterator[Finding]:
    """A request for a table that is in no schema tells whether PostgREST exposes the schema."""
    hidden = sorted(("rag", "auth", *PLATFORM))
    present = (
        "select nspname from pg_namespace where nspname = any (%s) and nspname <> 'graphql_public' order by 1"
    )
    for (schema,) in sweep.actors.sql(present, hidden):
        request = Request("GET", "/rest/v1/no_such_table", headers={"Accept-Profile": schema})
        target, attack = f"schema {schema}", "a request for a table"
        response = sweep.attempt(target, attack, request, bearer(sweep.actors.token(sweep.actors.admin)))
        if response.status_code != UNEXPOSED_SCHEMA:
            yield Finding(target, attack, f"the schema is exposed, the status is {response.status_code}")


def _attack_unexposed(
    sweep: Sweep,
    target: str,
    requests: Iterable[tuple[str, Request]],
    callers: Mapping[str, Mapping[str, str]],
    is_exposed: bool = False,
) -> Iterator[Finding]:
    """A request for a schema that is not exposed fails. `is_exposed`: it may succeed, without rows."""
    actors = sweep.actors
    markers = (actors.marker, actors.private_marker, actors.other_marker, actors.org_marker)
    for description, request in requests:
        for caller, headers in callers.items():
            if request.headers and caller != ADMIN:
                continue  # The schema is refused before the caller is known.
            attack = f"{description} by {caller}"
            response = sweep.attempt(target, attack, request, headers)
            if response.status_code not in UNEXPOSED and not (is_exposed and response.is_success):
                detail = f"the status is {response.status_code}: {response.text[:200]}"
                yield Finding(target, attack, detail)
            elif output := attacks.leak(response, request, markers, sweep.objects.ids):
                yield Finding(target, attack, f"the response shows {output}")
