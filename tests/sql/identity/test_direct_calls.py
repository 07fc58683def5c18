"""Calls without the functions' secret: refused by every exposed function but those for browsers."""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from local.declared_schema import exposed_functions
from shared.api.health import check
from shared.clients.postgrest import SECRET_HEADER
from shared.config import Settings
from shared.errors import DatabaseBusy, TooManyCalls
from shared.services import Services
from shared.types import Principal, Scope
from tests.actors import (
    Actor,
    World,
    client,
    hit_arguments,
    put_arguments,
    vector,
    webhook_arguments,
)
from tests.conftest import People
from tests.functions.app_server import services_with
from tests.process_faults import long_lock_waits, wait_for_waiters
from tests.sql.base.test_value_checks import largest_growth
from tests.sql.schema_changes import changed_function

READERS: dict[str, dict[str, Any]] = {
    "rag_match": {"query_vector": vector(1)},
    "rag_search": {"query_text": "kettle", "query_vector": vector(1)},
    "rag_graph_search": {"query_text": "kettle", "query_vector": vector(1)},
    "rag_graph_of": {"org_id": None, "document_ids": []},
    "rag_similar": {"document_id": "5a0e4f1c-9d0b-4b5e-8a53-0c7d1e6f2b94"},
    "rag_widen": {"chunk_ids": [], "neighbours": 1},
    "is_org_member": {"org_id": None},
    "rag_health": {},
}
CALLER_OF = {name.partition("(")[0]: caller for name, caller in exposed_functions().items()}
GUARDED = sorted(name for name, caller in CALLER_OF.items() if caller == "guarded")
LIMITED = sorted(name for name, caller in CALLER_OF.items() if caller in ("direct", "guarded"))


@pytest.fixture
def settings_row(world: World) -> Iterator[World]:
    """The database's settings, restored afterwards, with the default of a user's reads."""
    limits = "reads_per_user, reads_per_org, writes_per_user, writes_per_org"
    columns = f"functions_secret_hashes, open_to_direct_callers, {limits}"
    (row,) = world.sql(f"select {columns} from rag.settings")
    world.sql("update rag.settings set reads_per_user = default")
    yield world
    world.sql(f"update rag.settings set ({columns}) = (%s, %s, %s, %s, %s, %s)", *row)


@pytest.fixture
def open_world(settings_row: World) -> World:
    """A deployment that is open to direct callers."""
    settings_row.sql("update rag.settings set open_to_direct_callers = true")
    return settings_row


def required_arguments(world: World, function: str) -> dict[str, None]:
    """Null for each parameter without a default."""
    ((names, count),) = world.sql(
        "select coalesce(proargnames[:pronargs], '{}'), pronargs - pronargdefaults from pg_proc "
        "where pronamespace = 'public'::regnamespace and proname = %s",
        function,
    )
    return dict.fromkeys(names[:count])


def refusal(actor: Actor, world: World, function: str, **headers: str) -> tuple[int, str]:
    """Status and machine code of a call with nothing but nulls."""
    path = f"/rest/v1/rpc/{function}"
    answer = actor.request("POST", path, required_arguments(world, function), **headers)
    return answer.status_code, str(answer.json().get("details")) if answer.is_error else ""


def test_a_browser_can_call_reading_functions(people: People, subtests: pytest.Subtests):
    assert set(READERS) == {name for name, caller in CALLER_OF.items() if caller in ("direct", "unguarded")}
    for function, arguments in READERS.items():
        with subtests.test(function=function):
            org = {"org_id": people.acme.id} if "org_id" in arguments else {}
            answer = people.ann.direct().rpc(function, arguments | org)
            assert "functions_secret" not in answer.text.replace('"functions_secret":"wrong"', "")
            assert answer.status_code in (200, 404), answer.text


def test_an_invalid_secret_is_refused_and_two_are_valid_during_a_rotation(
    people: People, settings_row: World
):
    ann, world = people.ann.direct(), settings_row
    old, new = "the former secret of this deployment", "the new secret of this deployment"

    def answers(secret: str) -> bool:
        status, code = refusal(ann, world, "rag_list_names", **{SECRET_HEADER: secret})
        assert (status, code) in [(200, ""), (403, "functions_secret_required")]
        return status == 200

    def write(*secrets: str) -> None:
        hashes = [hashlib.sha256(secret.encode()).hexdigest() for secret in secrets]
        world.sql("update rag.settings set functions_secret_hashes = %s", hashes)

    write(old)
    assert [answers(secret) for secret in (old, new, "", "x")] == [True, False, False, False]
    write(old, new)
    assert [answers(secret) for secret in (old, new)] == [True, True]
    write(new)
    assert [answers(secret) for secret in (old, new)] == [False, True]


def test_a_missing_secret_is_reported(people: People, settings_row: World, settings: Settings):
    settings_row.sql("update rag.settings set functions_secret_hashes = '{}'")
    assert refusal(people.ann, settings_row, "rag_list_names") == (403, "functions_secret_unset")
    assert people.ann.rpc("rag_health").json()[0]["functions_secret"] == "unset"
    answer = people.ann.request("GET", "/api/v1/collections")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "functions_secret_unset")
    with services_with(settings) as new_process:
        assert check(new_process, None).services["database"] == "unhealthy"


def test_health_reports_the_secret_and_a_deployer_may_open_the_functions(people: People, settings_row: World):
    direct = people.ann.direct()
    assert people.ann.rpc("rag_health").json()[0]["functions_secret"] == "ok"
    assert direct.rpc("rag_health").json()[0]["functions_secret"] == "wrong"
    settings_row.sql("update rag.settings set open_to_direct_callers = true")
    assert direct.rpc("rag_list_names").status_code == 200
    assert direct.rpc("rag_health").json()[0]["functions_secret"] == "ok"


def answer_of(response: httpx.Response) -> tuple[int, str | None]:
    """Status and machine code."""
    return response.status_code, response.json()["details"] if response.is_error else None


@contextmanager
def locked(world: World, statement: str, *parameters: Any) -> Iterator[None]:
    """Another transaction holds the locks that the statement takes."""
    with psycopg.connect(world.stack.database_url()) as connection:
        connection.execute(statement.encode(), parameters)
        yield
        connection.rollback()


def test_a_user_has_two_concurrent_searches(people: People, settings_row: World):
    """Direct ones and those of our functions count together. Other users have their own."""
    world = settings_row
    search = {"query_vector": vector(1)}
    ann = people.ann.direct()
    with ThreadPoolExecutor(6) as pool, long_lock_waits(world.stack):
        with locked(world, "lock table rag.chunks in access exclusive mode"):
            running = [pool.submit(actor.rpc, "rag_match", search) for actor in (ann, people.ann)]
            wait_for_waiters(world.stack, 2)
            for function in ("rag_match", "rag_search", "rag_graph_search", "rag_similar", "rag_widen"):
                assert answer_of(ann.rpc(function, READERS[function])) == (429, "too_many_reads")
            others = (people.bob, people.alf.direct())
            running += [pool.submit(actor.rpc, "rag_match", search) for actor in others]
            wait_for_waiters(world.stack, 4)
        assert [answer.result().status_code for answer in running] == [200] * 4
    assert ann.rpc("rag_match", search).status_code == 200


def post(actor: Actor, function: str, content: Any) -> tuple[int, str | None]:
    """Straight to PostgREST, with a body of any form."""
    address = f"http://127.0.0.1:{actor.stack.state.postgrest_port}/rpc/{function}"
    headers = {**actor.headers(), "Content-Type": "application/json"}
    return answer_of(client().post(address, content=content, headers=headers))


def test_a_direct_call_s_size_is_limited(people: People, subtests: pytest.Subtests):
    body = json.dumps({"query_vector": vector(1)}).encode().ljust((1 << 20) + 1)
    large, unknown = (413, "body_too_large"), (400, "length_required")
    cases: list[tuple[str, Actor, str, Any, tuple[int, str | None]]] = [
        ("of a megabyte", people.ann.direct(), "rag_match", body[:-1], (200, None)),
        ("of a byte more", people.ann.direct(), "rag_match", body, large),
        ("of unknown size", people.ann.direct(), "rag_match", iter([body]), unknown),
        ("with an encoded name", people.ann.direct(), "rag%5Fmatch", body, large),
        ("of our functions", people.ann, "rag_match", body, (200, None)),
        ("of our functions, of unknown size", people.ann, "rag_match", iter([body]), (200, None)),
    ]
    for name, actor, function, content, expected in cases:
        with subtests.test(name):
            assert post(actor, function, content) == expected


def test_a_function_checks_the_size_too(people: People, open_world: World, subtests: pytest.Subtests):
    """For projects that have not set the pre-request function."""
    for function in LIMITED:
        with subtests.test(function=function):
            assert sqlstate_of_call(people.ann, open_world, function, (1 << 20) + 1) == "PT413"


def sqlstate_of_call(actor: Actor, world: World, function: str, size: int) -> str | None:
    """The error of a call with nulls, in a session that PostgREST has told the size of the body."""
    nulls = ", ".join(["null"] * len(required_arguments(world, function)))
    call = (
        f"select public.{function}({nulls}) from (select set_config('request.headers', %s, true), "
        "set_config('statement_timeout', '60s', true)) as request"
    )
    try:
        world.as_user(actor, call, json.dumps({"content-length": str(size)}))
    except psycopg.Error as error:
        return error.sqlstate
    return None


def test_a_large_body_is_refused_before_its_conversion(people: People, world: World):
    """Its conversion would take 180 MB. Each connection of PostgREST's pool is open by now."""
    numbers = b",".join([b"1e131071"] * ((8 << 20) // 9))
    with largest_growth(world) as largest:
        body = b'{"query_vector": "[1]", "filters": {"a": [' + numbers + b"]}}"
        assert post(people.ann.direct(), "rag_match", body) == (413, "body_too_large")
    assert largest[0] < 50 << 20


def test_only_calls_of_the_project_s_functions_have_a_size_limit(world: World, subtests: pytest.Subtests):
    headers = json.dumps({"content-length": str(2 << 20)})
    statement = """
        select rag.check_request()
        from (select set_config('request.headers', %s, true), set_config('request.path', %s, true)) as request
    """
    for path, is_limited in {
        "/rpc/rag_search": True, "/rpc/is_org_member": True, "/rpc/rag%5fsearch": True, "/%72pc/x": True,
        "/documents": False, "/rag_documents": False, "/My%20table": False, "/rpc/ragtime": False,
    }.items():  # fmt: skip
        for role in ("anon", "service_role", "rag_worker", "authenticated"):
            with subtests.test(path=path, role=role):
                refused = pytest.raises(psycopg.DatabaseError, match="at most 1,048,576 bytes")
                with refused if is_limited else nullcontext():
                    world.as_role(role, statement, headers, path)


def test_only_calls_of_the_project_s_functions_run_without_jit(world: World):
    """The setting of a database whose Postgres has a JIT compiler; the one of the tests' has none."""
    statement = """
        select current_setting('jit')
        from (select set_config('jit', 'on', true) || set_config('request.headers', %s, true)
          || set_config('request.path', %s, true)) as request (settings)
        cross join lateral (
          select rag.check_request()::text where settings is not null offset 0) as call (checked)
        where checked is not null
    """
    headers = json.dumps({"content-length": "0"})
    for path, jit in {"/rpc/rag_search": "off", "/documents": "on"}.items():
        for role in ("authenticated", "rag_worker"):
            assert world.as_role(role, statement, headers, path) == [(jit,)]


def arguments_of(world: World, function: str) -> dict[str, Any]:
    return READERS.get(function) or required_arguments(world, function)


# By our functions, a user without an org may call these.
WITHOUT_AN_ORG = ("rag_check_rate_limit", "rag_list_invitations", "rag_answer_invitation")


def test_a_caller_without_an_org_is_refused(people: People, open_world: World, subtests: pytest.Subtests):
    """Called by a browser, and by our functions, which count such a user's requests."""
    narrowed = people.ann.token(rag={"org": people.bolt.id})
    for function in LIMITED:
        with subtests.test(function=function):
            arguments = arguments_of(open_world, function)
            direct = people.ann.direct().rpc(function, arguments, token=narrowed)
            assert answer_of(direct) == (403, "no_org")
            if function not in WITHOUT_AN_ORG:
                assert answer_of(people.sam.rpc(function, arguments)) == (403, "no_org")


def test_the_rate_limit_counts_a_user_without_an_org(people: People):
    for hits in (1, 2):
        (row,) = people.sam.rpc("rag_check_rate_limit", hit_arguments()).json()
        assert (row["hits"], row["has_org"]) == (hits, False)
    assert people.ann.rpc("rag_check_rate_limit", hit_arguments()).json()[0]["has_org"]


def test_a_user_s_concurrent_direct_calls_are_limited(
    people: People, open_world: World, subtests: pytest.Subtests
):
    world, ann = open_world, people.ann.direct()
    world.sql("update rag.settings set reads_per_user = 1, writes_per_org = 1")
    with taken_slots(world, ann, "read", 1), taken_slots(world, ann, "write", 1):
        for function in LIMITED:
            with subtests.test(function=function):
                ((kind,),) = world.sql("select provolatile from pg_proc where proname = %s", function)
                refused = "too_many_writes" if kind == "v" else "too_many_reads"
                assert answer_of(ann.rpc(function, arguments_of(world, function))) == (429, refused)
    assert ann.rpc("rag_list_names").status_code == 200


@contextmanager
def taken_slots(world: World, actor: Actor, kind: str, slots: int) -> Iterator[None]:
    """So many slots of the user, and of their org, are taken, as by running calls."""
    with ExitStack() as sessions:
        for _ in range(slots):
            session = sessions.enter_context(psycopg.connect(world.stack.database_url()))
            claims = json.dumps({"sub": actor.id})
            session.execute("select set_config('request.jwt.claims', %s, true)", [claims])
            session.execute("select rag.take_slot(%s)", [kind])
        yield


def test_a_user_s_concurrent_reads_by_the_functions_are_limited(
    people: People, open_world: World, subtests: pytest.Subtests
):
    world = open_world
    world.sql("update rag.settings set reads_per_user = 2")
    readers = [
        name
        for name in LIMITED
        if world.sql("select 1 from pg_proc where proname = %s and provolatile <> 'v'", name)
    ]
    assert {"rag_search", "rag_judged_search", "rag_list_names"} <= set(readers)
    with taken_slots(world, people.ann, "read", 2):
        for function in readers:
            with subtests.test(function=function):
                answer = people.ann.rpc(function, arguments_of(world, function))
                assert answer_of(answer) == (429, "too_many_reads")
        # Other users have own slots, and writes too.
        assert people.alf.rpc("rag_list_names").status_code == 200
        assert people.ann.put([vector(1)])
    with taken_slots(world, people.ann, "read", 1):
        assert people.ann.rpc("rag_list_names").status_code == 200


def test_concurrent_calls_of_an_org_are_limited_whoever_of_its_members_calls(
    people: People, open_world: World
):
    world = open_world
    world.sql("update rag.settings set reads_per_org = 1, writes_per_org = 1")
    with taken_slots(world, people.ann, "read", 1), taken_slots(world, people.ann, "write", 1):
        for member in (people.alf, people.alf.direct()):
            assert answer_of(member.rpc("rag_search", {"query_text": "kettle"})) == (429, "too_many_reads")
            for function in (
                "rag_put_documents", "rag_update_document", "rag_delete_document", "rag_save_turn",
            ):  # fmt: skip
                answer = member.rpc(function, arguments_of(world, function))
                assert answer_of(answer) == (429, "too_many_writes")
        # A member of two orgs calls while one of them has a free slot.
        for other in (people.bob, people.kim):
            assert other.rpc("rag_search", {"query_text": "kettle"}).status_code == 200
        with taken_slots(world, people.bob, "read", 1):
            refused = people.kim.rpc("rag_search", {"query_text": "kettle"})
            assert answer_of(refused) == (429, "too_many_reads")


def test_a_job_and_a_download_by_a_link_take_no_slot_of_the_org(people: People, open_world: World):
    world, ann = open_world, people.ann
    world.sql("update rag.settings set reads_per_org = 1, writes_per_org = 1")
    claims = {"sub": ann.id, "role": "authenticated"}
    of_job = {**claims, "rag": {"lease": str(uuid4())}}
    by_link = {**claims, "rag": {"document": str(uuid4()), "org": people.acme.id, "scopes": []}}
    with taken_slots(world, ann, "read", 1), taken_slots(world, ann, "write", 1):
        for token, slots in ((of_job, "read write read write"), (by_link, "read")):
            with psycopg.connect(world.stack.database_url()) as session:
                session.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps(token)])
                for kind in slots.split():
                    session.execute("select rag.take_slot(%s)", [kind])
        with (
            pytest.raises(psycopg.Error, match="Too many searches"),
            taken_slots(world, people.alf, "read", 1),
        ):
            pass


def test_no_function_raises_503(world: World):
    """PostgREST connects again and loads its schema cache after each response with this status, so that one
    user's refused calls would slow all others down."""
    raised = "select proname from pg_proc where prosrc ~ 'PT503'"
    assert world.sql(raised) == []


def test_eight_calls_of_a_user_twelve_of_an_org_and_24_in_all_wait_some_seconds_for_a_slot_of_a_read(
    people: People, open_world: World, services: Services
):
    def search(caller: Principal) -> Any:
        return services.database.call(caller, "rag_search", {"query_text": "kettle"})

    open_world.sql("update rag.settings set reads_per_user = 1")
    with taken_slots(open_world, people.ann, "read", 1):
        with pytest.raises(TooManyCalls) as refused:
            search(people.ann.principal)
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "3"})
    # With a token of a download link, ann has places of its own.
    link = replace(people.ann.principal, scopes=frozenset({Scope.DOCUMENTS_READ}))
    ann, alf, bob, eve = people.ann, people.alf, people.bob, open_world.user(open_world.org())
    # Of nine calls each wait: 8 of ann, 4 by the link, none of alf in the same org, 8 of bob and 4 of eve in
    # other orgs.
    most = (ann.principal, 8), (link, 4), (alf.principal, 0), (bob.principal, 8), (eve.principal, 4)
    with ThreadPoolExecutor(45) as pool, ExitStack() as slots:
        for reader in (ann, alf, bob, eve):
            slots.enter_context(taken_slots(open_world, reader, "read", 1))
        waiting = list[Future[Any]]()
        for caller, places in most:
            calls = [pool.submit(search, caller) for _ in range(9)]
            refused_calls = list(islice(as_completed(calls), 9 - places))
            assert {type(call.exception()) for call in refused_calls} == {TooManyCalls}
            waiting += [call for call in calls if call not in refused_calls]
        assert not any(call.done() for call in waiting)
        slots.close()
        assert [call.result() for call in waiting] == [[]] * 24


def test_every_guarded_function_reports_a_lock(people: People, open_world: World, subtests: pytest.Subtests):
    """In one session, because a session also waits for tables when it first compiles a function."""
    world = open_world
    tables = world.sql(
        "select relname from pg_class where relnamespace = 'rag'::regnamespace and relkind = 'r' "
        "and relname not in ('settings', 'orgs', 'members', 'tiers')"
    )
    lock = f"lock table {', '.join(f'rag.{name}' for (name,) in tables)} in access exclusive mode"
    before = {function: sqlstate_of_call(people.ann, world, function, 2) for function in GUARDED}
    after = dict[str, str | None]()
    with psycopg.connect(world.stack.database_url()) as connection:
        connection.execute(lock.encode())
        with changed_function(world, "rag.begin_call", lambda text: text.replace("'3s'", "'20ms'")):
            for function in GUARDED:
                with subtests.test(function=function):
                    # Some functions validate their arguments first, and some read none of these tables.
                    after[function] = sqlstate_of_call(people.ann, world, function, 2)
                    assert after[function] in ("55P03", before[function])
    assert sum(after[function] != before[function] for function in GUARDED) > 40


def test_a_call_waits_three_seconds_for_a_lock(people: People, open_world: World, services: Services):
    """PostgREST answers SQLSTATE 55P03 with 500; the functions answer with 503."""
    world = open_world
    document = people.ann.put([vector(1)], external_id="a")
    put = put_arguments(people.acme, [vector(1)], external_id="a")
    hook = people.ada.rpc("rag_create_webhook", webhook_arguments()).json()[0]["id"]
    with (
        ThreadPoolExecutor(4) as pool,
        locked(world, "select from rag.documents where id = %s for update", document),
        locked(world, "select from rag.webhooks where id = %s for update", hook),
    ):
        delete = {"document_id": document}
        calls = [
            pool.submit(people.ann.direct().store, put),
            pool.submit(people.ada.rpc, "rag_delete_document", delete),
            # The trigger that writes the delivery waits at the end of the transaction.
            pool.submit(people.ann.rpc, "rag_create_collection", {"name": "new"}),
        ]
        python = pool.submit(services.database.call, people.alf.principal, "rag_delete_document", delete)
        with pytest.raises(DatabaseBusy) as busy:
            python.result()
        for call in calls:
            assert (call.result().status_code, call.result().json()["code"]) == (500, "55P03")
    assert (busy.value.status, busy.value.headers) == (503, {"Retry-After": "3"})
