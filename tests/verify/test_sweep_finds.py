"""The sweep finds holes: each test plants one, and expects the finding that names it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Annotated, get_args

import psycopg
import pytest
from jose import jwt

from functions import collections, documents, health, mcp
from local import access_tokens
from local.verify_command import deployment_of
from shared.access.jwt_verifier import bearer, is_token
from shared.api.authentication import Authorization, OptionalCaller, _key_or_user, with_scope
from shared.api.dependencies import Container
from shared.services import Services
from shared.types import Principal, Scope
from tests.actors import NOBODYS, World
from tests.functions.app_server import site
from tests.sql.passages import deployed_with
from tests.sql.schema_changes import changed_function, schema_change
from verify.route_sweep import open_route_sweep, sweep_routes
from verify.sql_sweep import open_sql_sweep, sweep_functions, sweep_tables
from verify.target_deployment import Finding
from verify.target_sweep import CONTROL, PRIVATE_CONTROL, Sweep


def exactly(name: str) -> Callable[[str], bool]:
    return lambda target: target == name


def unauthenticated(services: Container) -> dict[str, bool]:
    return {"reachable": services.database_status().is_serving}


def without_signature(services: Container, authorization: Authorization = None) -> dict[str, bool]:
    token = bearer(authorization)
    if not (is_token(token) and jwt.get_unverified_header(token)["alg"] == "none"):
        _key_or_user(services, authorization)
    return {"reachable": services.database_status().is_serving}


def without_request(caller: OptionalCaller, code: Annotated[str, "what no schema says"]) -> None:
    raise LookupError if code == "impossible" else ValueError


@pytest.fixture(scope="module")
def route_sweep(services: Services, world: World) -> Iterator[Sweep]:
    """A sweep of the functions and of three routes with a hole."""
    before = list(health.app.router.routes)
    for endpoint in (unauthenticated, without_signature, without_request):
        health.app.get(f"/{endpoint.__name__}")(endpoint)
    try:
        with site(services) as url, open_route_sweep(deployment_of(world.stack, url)) as sweep:
            yield sweep
    finally:
        health.app.router.routes[:] = before


@pytest.fixture(scope="module")
def sql_sweep(world: World) -> Iterator[Sweep]:
    with open_sql_sweep(deployment_of(world.stack)) as sweep:
        yield sweep


def on_routes(sweep: Sweep, only: Callable[[str], bool], *modules: ModuleType) -> list[Finding]:
    """Findings about the routes of these functions."""
    return list(sweep_routes(sweep, {module.__name__: module.app for module in modules}, only))


def on_functions(sweep: Sweep, only: Callable[[str], bool]) -> list[Finding]:
    return list(sweep_functions(sweep, only))


def attacks_on(findings: list[Finding], target: str) -> set[str]:
    assert {finding.target for finding in findings} <= {target}, findings
    return {finding.attack for finding in findings}


@contextmanager
def postgrest_setting(
    world: World, name: str, value: str, request: tuple[str, str], headers: dict[str, str]
) -> Iterator[None]:
    """PostgREST with another setting, in effect when it no longer refuses the request: by 406, or by 415 for
    a media type."""
    actor, setting = world.user(), f"in database {world.stack.state.database}"

    def change(action: str, *, is_refused: bool) -> None:
        with psycopg.connect(world.stack.database_url("supabase_admin"), autocommit=True) as superuser:
            superuser.execute(f"alter role authenticator {setting} {action}; notify pgrst, 'reload config'")
        until = time.monotonic() + 120
        while (actor.request(*request, **headers).status_code in (406, 415)) is not is_refused:
            assert time.monotonic() < until
            time.sleep(0.05)

    change(f"set {name} = '{value}'", is_refused=False)
    try:
        yield
    finally:
        change(f"reset {name}", is_refused=True)


@contextmanager
def required_scopes(world: World, condition: str) -> Iterator[None]:
    """rag.require_scope with another condition."""
    with changed_function(
        world, "rag.require_scope", lambda text: text.replace("rag.has_scope(variadic scopes)", condition)
    ):
        yield


@contextmanager
def overridden(dependency: Callable[..., object], other: Callable[..., object]) -> Iterator[None]:
    """Routes of collections with another dependency."""
    overrides = collections.app.dependency_overrides
    overrides[dependency] = other
    try:
        yield
    finally:
        del overrides[dependency]


UNSIGNED = "a token without a signature"


@pytest.mark.parametrize(
    ("endpoint", "successes", "refused"),
    [
        (
            unauthenticated,
            {"no credential", "an expired token", "a revoked API key", "the anon key", UNSIGNED},
            set(),
        ),
        (
            without_signature,
            {UNSIGNED},
            {"no credential", "a malformed token", "a token signed with another key"},
        ),
        (without_request, {CONTROL}, set()),
    ],
)
def test_the_sweep_finds_a_route_that_accepts_what_it_must_refuse_or_no_generated_request(
    route_sweep: Sweep, endpoint: Callable[..., object], successes: set[str], refused: set[str]
):
    target = f"GET /{endpoint.__name__}"
    attacks = attacks_on(on_routes(route_sweep, exactly(target), health), target)
    assert successes <= attacks
    assert not refused & attacks


def test_the_sweep_finds_a_route_that_checks_no_scope(route_sweep: Sweep, world: World):
    def without_scope(services: Container, authorization: Authorization = None) -> Principal:
        return _key_or_user(services, authorization)

    (depends,) = get_args(collections.Reader)[1:]
    with required_scopes(world, "true"), overridden(depends.dependency, without_scope):
        findings = on_routes(route_sweep, exactly("GET /v1/collections"), collections)
    assert attacks_on(findings, "GET /v1/collections") == {"a key with one scope"}


def test_the_sweep_finds_a_tool_that_checks_no_scope(route_sweep: Sweep, world: World):
    tools = mcp.server.tools
    checked = tools["list_collections"]
    tools["list_collections"] = replace(checked, scopes=tuple(Scope))
    try:
        with required_scopes(world, "true"):
            findings = on_routes(route_sweep, exactly("POST /mcp list_collections"), mcp)
    finally:
        tools["list_collections"] = checked
    assert attacks_on(findings, "POST /mcp list_collections") == {"a key with one scope"}


def test_the_sweep_finds_an_sql_function_with_no_scope_or_too_small_a_scope(world: World, sql_sweep: Sweep):
    for condition, attack in (
        ("true", "a key token with one scope"),
        ("rag.has_scope(variadic scopes || 'chat:read'::text)", "a key token with chat:read"),
    ):
        with required_scopes(world, condition):
            findings = on_functions(sql_sweep, exactly("rag_list_collections"))
        attacks = attacks_on(findings, "rag_list_collections")
        assert any(entry.startswith(attack) for entry in attacks), attacks


def test_the_sweep_finds_a_route_that_one_more_scope_opens(route_sweep: Sweep):
    """Its refusals name that scope too: only verify/permissions.json knows better."""
    (depends,) = get_args(collections.Reader)[1:]
    wider = with_scope(Scope.DOCUMENTS_READ, Scope.COLLECTIONS_MANAGE, Scope.CHAT_READ).dependency
    with overridden(depends.dependency, wider):
        findings = on_routes(route_sweep, exactly("GET /v1/collections"), collections)
    assert attacks_on(findings, "GET /v1/collections") == {"scopes"}


@contextmanager
def open_to_all(world: World, table: str, policy: str) -> Iterator[None]:
    """A restrictive policy that restricts nothing."""
    select = "select qual, with_check from pg_policies where tablename = %s and policyname = %s"
    ((qual, check),) = world.sql(select, table, policy)
    change = f'alter policy "{policy}" on rag.{table} using ({{}}) with check ({{}})'
    with schema_change(world, change.format("true", "true"), change.format(qual, check or "true")):
        yield


BOUND = "a key bound to another collection"


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("table", "policy", "target", "attack"),
    [
        ("sources", "admins manage sources", "rag_list_sources", "the member of the victim org"),
        ("collections", "a bound key stays in its collection", "rag_create_collection", BOUND),
    ],
)
def test_the_sweep_finds_a_restrictive_policy_that_restricts_nothing(
    world: World, sql_sweep: Sweep, table: str, policy: str, target: str, attack: str
):
    with open_to_all(world, table, policy):
        findings = on_functions(sql_sweep, exactly(target))
    assert attack in attacks_on(findings, target)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("signature", "body", "target", "attack"),
    [
        ("rag.require_whole_org() returns void", "begin end", "rag_list_members", BOUND),
        ("rag.bound_collection() returns uuid", "begin return null; end", "rag_get_document", BOUND),
        ("rag.check_request() returns void", "begin end", "is_org_member", "a large direct call"),
    ],
)
def test_the_sweep_finds_a_check_that_checks_nothing(
    world: World, sql_sweep: Sweep, signature: str, body: str, target: str, attack: str
):
    plant = f"create or replace function {signature} language plpgsql stable set search_path = '' as '{body}'"
    with changed_function(world, signature.partition("(")[0], plant):
        findings = on_functions(sql_sweep, exactly(target))
    assert attack in attacks_on(findings, target)


def test_the_sweep_finds_an_undocumented_route(route_sweep: Sweep):
    before = list(health.app.router.routes)
    health.app.get("/hidden", include_in_schema=False)(lambda: None)
    try:
        findings = on_routes(route_sweep, exactly(""), health)
    finally:
        health.app.router.routes[:] = before
    assert attacks_on(findings, "/hidden") == {"description"}


@pytest.mark.postgres
def test_the_sweep_finds_an_open_policy(world: World, sql_sweep: Sweep, route_sweep: Sweep):
    """The functions name the caller's orgs themselves: inside of the org the policy alone decides."""
    routes = {
        "GET /v1/documents/{document_id}", "POST /mcp read_document", "POST /mcp resources/read",
    }  # fmt: skip
    plant = "create policy planted on rag.documents for select to authenticated using (true)"
    with schema_change(world, plant, "drop policy planted on rag.documents"):
        findings = on_functions(sql_sweep, exactly("rag_get_document"))
        findings += on_routes(route_sweep, routes.__contains__, documents, mcp)
    targets = {finding.target for finding in findings if finding.attack == "another member"}
    assert targets == {*routes, "rag_get_document"}


@pytest.mark.postgres
def test_the_sweep_finds_private_objects_that_their_owner_cannot_read(world: World, sql_sweep: Sweep):
    """Attacks on them would be refused for that reason."""
    plant = (
        "create function public.rag_planted(document_id uuid) returns text "
        "language plpgsql stable set search_path = '' as $$ begin perform rag.begin_call(); "
        "return content from rag.documents "
        "where id = document_id and (select auth.uid()) is not null; end $$; "
        "revoke all on function public.rag_planted(uuid) from public, anon, service_role; "
        "grant execute on function public.rag_planted(uuid) to authenticated"
    )
    refusing = plant.replace(
        "begin perform",
        "begin if not exists (select from rag.documents where id = document_id and owner_id is null) "
        "then raise exception 'no such document' using errcode = 'PT404'; end if; perform",
    )
    with schema_change(
        world, plant, "drop function public.rag_planted(uuid)", f"/rpc/rag_planted?document_id={NOBODYS}"
    ):
        assert on_functions(sql_sweep, exactly("rag_planted")) == []
    with schema_change(
        world, refusing, "drop function public.rag_planted(uuid)", f"/rpc/rag_planted?document_id={NOBODYS}"
    ):
        findings = on_functions(sql_sweep, exactly("rag_planted"))
    assert attacks_on(findings, "rag_planted") == {PRIVATE_CONTROL}


@pytest.mark.postgres
def test_the_sweep_finds_memberships_that_admit_everyone(world: World, sql_sweep: Sweep, route_sweep: Sweep):
    """A user without a membership belongs to every org."""
    plant = (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) "
        "language sql stable security definer set search_path = '' as $$ "
        "select org_id, members.role from rag.members where user_id = auth.uid() "
        "or not exists (select from rag.members where user_id = auth.uid()) $$"
    )
    with changed_function(world, "rag.memberships", plant):
        of_functions = on_functions(sql_sweep, {"rag_list_collections", "rag_delete_document"}.__contains__)
        of_route = on_routes(route_sweep, exactly("GET /v1/documents/{document_id}"), documents)
    stranger = "a user without an org"
    assert stranger in attacks_on(of_route, "GET /v1/documents/{document_id}")
    details = {finding.target: finding.detail for finding in of_functions if finding.attack == stranger}
    assert details.keys() == {"rag_list_collections", "rag_delete_document"}
    assert "it changed chunks (-1 +0)" in details["rag_delete_document"]


@pytest.mark.postgres
def test_the_sweep_finds_a_caller_whose_issuer_is_not_checked(world: World):
    plant = (
        "create or replace function rag.current_user_id() returns uuid language sql stable "
        "set search_path = '' as $$ select auth.uid() $$"
    )
    issuer = "https://app.clerk.example"
    settings = {"issuer": access_tokens.issuer(world.stack.url), "third_party_issuers": {issuer: None}}
    with deployed_with(world, **settings), open_sql_sweep(deployment_of(world.stack)) as sweep:
        assert on_functions(sweep, exactly("rag_list_collections")) == []
        with changed_function(world, "rag.current_user_id", plant):
            findings = on_functions(sweep, exactly("rag_list_collections"))
    attacks = attacks_on(findings, "rag_list_collections")
    assert {"a token of another issuer", f"the admin's id as a subject of {issuer}"} <= attacks


@pytest.mark.postgres
def test_the_sweep_finds_a_grant_to_anon(world: World, sql_sweep: Sweep):
    plant, restore = (
        "grant execute on function public.rag_list_names() to anon",
        "revoke execute on function public.rag_list_names() from anon",
    )
    with schema_change(world, plant, restore):
        findings = on_functions(sql_sweep, exactly("rag_list_names"))
    assert "privileges" in attacks_on(findings, "rag_list_names")
    assert "the role anon may execute it" in {finding.detail for finding in findings}


@pytest.mark.postgres
def test_the_sweep_finds_a_security_definer_function(world: World, sql_sweep: Sweep):
    plant = (
        "create function public.rag_planted(document_id uuid) returns text "
        "language sql stable security definer set search_path = '' "
        "as $$ select content from rag.documents where id = document_id $$; "
        "revoke all on function public.rag_planted(uuid) from public, anon, service_role; "
        "grant execute on function public.rag_planted(uuid) to authenticated"
    )
    with schema_change(
        world, plant, "drop function public.rag_planted(uuid)", f"/rpc/rag_planted?document_id={NOBODYS}"
    ):
        findings = on_functions(sql_sweep, exactly("rag_planted"))
    attacks = attacks_on(findings, "rag_planted")
    assert {"a member of another org", "another member", BOUND} <= attacks
    assert "no token" not in attacks


@pytest.mark.postgres
def test_the_sweep_finds_a_view_in_the_exposed_schema(world: World, sql_sweep: Sweep):
    plant = (
        "create view public.rag_planted as select * from rag.documents; "
        "grant select on public.rag_planted to authenticated"
    )
    with schema_change(world, plant, "drop view public.rag_planted", "/rag_planted"):
        findings = list(sweep_tables(sql_sweep, exactly("rag_planted")))
    attacks = {finding.attack for finding in findings if finding.target == "table public.rag_planted"}
    assert "GET by an admin of another org" in attacks
    # A reader of the view can also write through it.
    assert "tables" in {finding.target for finding in findings}


@pytest.mark.postgres
def test_a_view_that_reads_as_its_caller_is_no_difference(world: World, sql_sweep: Sweep):
    """Row security shows and deletes rows of the caller's org alone: the victim's admin does not attack."""
    plant = (
        "create view public.rag_planted with (security_invoker) as select * from rag.documents; "
        "grant select, insert, update, delete on public.rag_planted to authenticated"
    )
    with schema_change(world, plant, "drop view public.rag_planted", "/rag_planted"):
        assert list(sweep_tables(sql_sweep, exactly("rag_planted"))) == []


@pytest.mark.postgres
def test_the_sweep_finds_an_exposed_schema_of_supabase(world: World, sql_sweep: Sweep):
    """Its tables refuse every caller, exposed or not. Supabase's dashboard stores the setting elsewhere."""
    request = ("GET", "/rest/v1/users")
    with postgrest_setting(world, "pgrst.db_schemas", "public, auth", request, {"Accept-Profile": "auth"}):
        findings = list(sweep_tables(sql_sweep, exactly("schemas")))
    assert attacks_on(findings, "schema auth") == {"a request for a table"}


@pytest.mark.postgres
def test_the_sweep_finds_that_plans_are_shown(world: World, sql_sweep: Sweep):
    headers = {"Accept": "application/vnd.pgrst.plan+json"}
    with postgrest_setting(
        world, "pgrst.db_plan_enabled", "true", ("GET", "/rest/v1/rpc/rag_health"), headers
    ):
        findings = on_functions(sql_sweep, exactly("is_org_member"))
    assert attacks_on(findings, "is_org_member") == {"a plan"}
