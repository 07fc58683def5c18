"""The sweeps of SQL functions and of tables, straight through PostgREST."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from verify import attacks, examples, sql_functions
from verify.actors import SCOPES, Person
from verify.attacks import REFUSALS
from verify.deployment import Deployment, Finding
from verify.requests import Request
from verify.sweep import TIMEOUT_SECONDS, Sweep, bearer, open_sweep

# Of a schema, table or function that PostgREST does not expose.
UNEXPOSED = REFUSALS | {406}
NO_TOKEN, ADMIN = "no token", "the admin of the victim org"


def sweep_functions(deployment: Deployment, only: Callable[[str], bool] = lambda _: True) -> list[Finding]:
    """Findings about the SQL functions, called straight through PostgREST, whose name `only` accepts."""
    findings: list[Finding] = []
    with open_sweep(deployment, deployment.project_url, {"apikey": deployment.anon_key}) as sweep:
        for function in sql_functions.sql_functions(sweep.cast):
            if only(function.name):
                findings += _attack_function(sweep, function)
    return findings


def _attack_function(sweep: Sweep, function: sql_functions.SqlFunction) -> Iterator[Finding]:
    sweep.owner.tidy(sweep.objects)
    for role in sorted(function.roles & {"anon", "service_role"}):
        yield Finding(function.name, "privileges", f"the role {role} may execute it")
    for group in attacks.on_sql_function(sweep.cast, sweep.objects, function.name):
        yield from sweep.attack(function, group, group.attacks)
    sweep.renew_if_changed()
    if function.name in examples.WITHOUT_CONTROL:
        return
    callers = _callers_of_functions(sweep)
    control = sweep.control(function, callers)
    needs_effect = function.name not in examples.WITHOUT_EFFECT
    if needs_effect and control.caller and not control.has_effect:
        needs_effect = not _differs(sweep, function, callers)
    yield from sweep.control_findings(function, control, needs_effect=needs_effect)
    is_open = function.name in examples.OPEN_TO_EVERY_SCOPE_IN_SQL
    if control.has_effect and control.caller in ("member", "admin") and not is_open:
        owner: Person = getattr(sweep.cast, control.caller)
        tokens = (sweep.cast.key_token(owner, [scope]) for scope in SCOPES)
        if all(sweep.effect(function, bearer(token))[1] for token in tokens):
            yield Finding(function.name, "a key token with one scope", "every scope suffices")


def _differs(
    sweep: Sweep, function: sql_functions.SqlFunction, callers: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether a rightful call succeeds with another result than the same call of a stranger's."""
    request = function.request(sweep.objects.shared, optional=True)
    stranger = sweep.send(request, bearer(sweep.cast.token(sweep.cast.stranger))).text
    answers = [sweep.send(request, headers) for headers in callers.values()]
    sweep.renew_if_changed()
    return any(answer.is_success and answer.text != stranger for answer in answers)


def _callers_of_functions(sweep: Sweep) -> dict[str, dict[str, str]]:
    """Rightful callers: people of the org, workers by role and by lease, and tokens for one purpose."""
    cast, values = sweep.cast, sweep.objects.shared
    writing = ["documents:read", "documents:write"]
    tokens = {
        "member": cast.token(cast.member),
        "admin": cast.token(cast.admin),
        "the worker with a job": cast.key_token(cast.admin, writing, lease=values["job_lease"]),
        "the worker that reads": cast.key_token(cast.admin, writing, lease=values["reading_lease"]),
        "the worker": cast.signer.token(TIMEOUT_SECONDS, role="rag_worker"),
        "the look-up of keys": cast.signer.token(
            TIMEOUT_SECONDS, rag={"key_hash": values["key_hash_of_key"]}
        ),
        "the metrics": cast.signer.token(TIMEOUT_SECONDS, rag={"metrics": True}),
    }
    return {name: bearer(token) for name, token in tokens.items()}


def sweep_tables(deployment: Deployment, only: Callable[[str], bool] = lambda _: True) -> list[Finding]:
    """Findings about tables and internal functions, reached through PostgREST, whose name `only` accepts."""
    findings: list[Finding] = []
    with open_sweep(deployment, deployment.project_url, {"apikey": deployment.anon_key}) as sweep:
        cast = sweep.cast
        callers = {
            NO_TOKEN: {},
            ADMIN: bearer(cast.token(cast.admin)),
            "an admin of another org": bearer(cast.token(cast.rival_admin)),
            "a token of the service role": bearer(cast.token(cast.admin, role="service_role")),
            "the worker's role": bearer(cast.signer.token(TIMEOUT_SECONDS, role="rag_worker")),
        }
        for table in sql_functions.tables(cast):
            if only(table.name):
                requests = table.requests(cast.org_id)
                findings += _attack_unexposed(sweep, str(table), requests, callers, table.is_exposed)
        for name in sql_functions.internal_functions(cast):
            if only(name):
                requests = sql_functions.internal_requests(name)
                few = {caller: callers[caller] for caller in (NO_TOKEN, ADMIN)}
                findings += _attack_unexposed(sweep, f"function rag.{name}", requests, few)
        if changed := sweep.changes():
            findings.append(Finding("tables", "all attacks", f"one of them changed {changed}"))
    return findings


def _attack_unexposed(
    sweep: Sweep,
    target: str,
    requests: Iterable[tuple[str, Request]],
    callers: Mapping[str, Mapping[str, str]],
    is_exposed: bool = False,
) -> Iterator[Finding]:
    """What PostgREST does not expose is not reached. `is_exposed`: it may succeed, and show nothing."""
    markers = (sweep.cast.marker, sweep.cast.private_marker, sweep.cast.other_marker)
    for description, request in requests:
        for caller, headers in callers.items():
            if request.headers and caller != ADMIN:
                continue  # The schema is refused before the caller is known.
            response = sweep.send(request, headers)
            attack = f"{description} by {caller}"
            if response.status_code not in UNEXPOSED and not (is_exposed and response.is_success):
                detail = f"the status is {response.status_code}: {response.text[:200]}"
                yield Finding(target, attack, detail)
            elif shown := attacks.leak(response, request, markers, sweep.objects.ids):
                yield Finding(target, attack, f"the response shows {shown}")
