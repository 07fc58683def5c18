"""rag.current_user_id(): the caller by the issuer and the subject of the token, straight in SQL."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from local import access_tokens
from shared.access.jwt_verifier import third_party_user_id
from tests.actors import World
from tests.conftest import People

OWN, CLERK, AUTH0 = (
    "https://ref.supabase.co/auth/v1",
    "https://app.clerk.example",
    "https://app.auth0.example/",
)
# Each function that the worker may call, with nulls.
CALLS_OF_THE_WORKER = r"""
select format('select from public.%%I(%%s)', proname,
  (select string_agg('null::' || type::regtype, ', ') from unnest(proargtypes) as type))
from pg_proc
where pronamespace = 'public'::regnamespace and proname like 'rag\_%%'
  and has_function_privilege('rag_worker', oid, 'execute')
"""
SUBJECT = "(auth.jwt() ->> 'sub')::uuid"
CURRENT = "select rag.current_user_id()::text"


@pytest.fixture
def issuers(world: World) -> Iterator[None]:
    """Clerk, whose tokens have no audience, and Auth0, with an audience."""
    world.sql(
        "update rag.settings set issuer = %s, "
        "third_party_issuers = jsonb_build_object(%s::text, null, %s::text, 'app')",
        OWN, CLERK, AUTH0,
    )  # fmt: skip
    yield
    world.sql("update rag.settings set issuer = null, third_party_issuers = '{}'")


def current(world: World, people: People, **claims: Any) -> str | None:
    ((user_id,),) = world.as_user(people.ann, CURRENT, **claims)
    return str(user_id) if user_id else None


def refuse(world: World, people: People, **claims: Any) -> None:
    with pytest.raises(psycopg.Error) as raised:
        current(world, people, **claims)
    assert (raised.value.sqlstate, raised.value.diag.message_detail) == ("PT401", "untrusted_issuer"), claims


def test_without_configuration_only_tokens_of_supabase_auth_count(world: World, people: People):
    for issuer in (access_tokens.issuer(people.ann.stack.url), OWN, None):
        assert current(world, people, iss=issuer) == people.ann.id
    # An issuer that the project trusts for other parts of an app may have ann's id as a subject.
    for issuer in (CLERK, f"{OWN}/", "", "supabase"):
        refuse(world, people, iss=issuer)


def test_supabase_s_own_users_keep_their_id(issuers: None, world: World, people: People):
    assert current(world, people, iss=OWN) == people.ann.id
    # Now only this issuer is Supabase Auth.
    for issuer in ("https://another.supabase.co/auth/v1", f"{OWN}/", None):
        refuse(world, people, iss=issuer)


def test_another_issuer_s_user_has_an_id_of_issuer_and_subject(issuers: None, world: World, people: People):
    by_clerk = current(world, people, iss=CLERK, sub="user_2abc")
    by_auth0 = current(world, people, iss=AUTH0, sub="user_2abc", aud=["app", "userinfo"])
    assert by_clerk == third_party_user_id(CLERK, "user_2abc")
    assert by_auth0 == third_party_user_id(AUTH0, "user_2abc")
    assert by_clerk != by_auth0
    assert UUID(by_clerk).version == 8
    subjects = ("", "auth0|5f7c", "ü", people.ann.id, people.ann.id.upper())
    ids = [current(world, people, iss=CLERK, sub=subject) for subject in subjects]
    assert ids == [None, *(third_party_user_id(CLERK, subject) for subject in subjects[1:])]
    assert people.ann.id not in ids


def test_unlisted_issuers_and_other_audiences_are_refused(issuers: None, world: World, people: People):
    for claims in (
        {"iss": f"{CLERK}/"},
        {"iss": CLERK.upper()},
        {"iss": AUTH0.rstrip("/"), "aud": "app"},
        {"iss": AUTH0, "aud": "another"},
        {"iss": AUTH0, "aud": ["another"]},
        {"iss": AUTH0, "aud": {"app": 1}},
        {"iss": AUTH0},
    ):
        refuse(world, people, sub="x", **claims)
    assert current(world, people, sub="x", iss=CLERK, aud="anything")


def test_a_token_of_supabase_auth_for_another_audience_is_refused(world: World, people: People):
    """As PostgREST's jwt-aud, which is unset in a project with third-party issuers. Without aud there is no
    other audience; the functions refuse such a token."""
    for audience in ("another", ["another"], [], {"authenticated": 1}):
        refuse(world, people, aud=audience)
    for audience in ("authenticated", ["another", "authenticated"]):
        assert current(world, people, aud=audience) == people.ann.id
    assert current(world, people) == people.ann.id


def test_an_own_memberships_takes_no_third_party_user_for_one_of_supabase(
    issuers: None, world: World, people: People
):
    own = (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) "
        "language sql stable set search_path = '' {}"
    )
    query = "select org_id, role from rag.members where user_id = (select auth.uid())"
    quoted = query.replace("auth.", '"auth" . ')
    ((original,),) = world.sql("select pg_get_functiondef('rag.memberships'::regproc)")
    try:
        for body in (
            f"as $$ {query} $$",
            f"begin atomic {quoted}; end",
            # As for a table whose policy contains auth.uid().
            "as $$ select org_id, role from rag.members $$",
            f"as $$ {query.replace('auth.uid()', SUBJECT)} $$",
            f"as $$ {query.replace('auth.uid()', 'rag.current_user_id()')} union all {query} $$",
            f"as $$ {query} -- not rag.current_user_id() \n $$",
        ):
            world.sql(own.format(body))
            for subject in (people.ann.id, people.ann.id.replace("-", "").upper(), f"{{{people.ann.id}}}"):
                refuse(world, people, iss=CLERK, sub=subject)
            assert current(world, people, iss=OWN) == people.ann.id
            assert current(world, people, iss=CLERK, sub="user_2abc")
        world.sql(own.format(f"as $$ {query.replace('auth.uid()', 'rag.current_user_id()')} $$"))
        assert current(world, people, iss=CLERK, sub=people.ann.id) != people.ann.id
    finally:
        world.sql(original)


def test_a_third_party_token_has_no_claim_of_the_functions(issuers: None, world: World, people: People):
    claims: dict[str, Any]
    for claims in ({"org": people.acme.id}, {"metrics": True}, {"key_hash": "0" * 64}, {"object": "a/b/c"}):
        refuse(world, people, iss=CLERK, sub="x", rag=claims)
        for function in ("reads_metrics", "lookup_hash", "lease_of_token", "deletable_object", "caller_id"):
            with pytest.raises(psycopg.Error) as raised:
                world.as_user(people.ann, f"select rag.{function}()", iss=CLERK, sub="", rag=claims)
            assert raised.value.sqlstate == "PT401"
    assert world.as_user(people.ann, "select rag.reads_metrics()", iss=OWN, rag={"metrics": True}) == [
        (True,)
    ]


def test_a_token_without_a_user_is_no_error_in_an_adopter_s_definer_function(issuers: None, world: World):
    """Supabase's legacy keys have the issuer "supabase" and no subject."""
    with psycopg.connect(world.stack.database_url()) as connection:
        for claims in ({"iss": "supabase", "role": "service_role"}, {"iss": "supabase", "role": "anon"}):
            connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
            assert connection.execute(CURRENT).fetchone() == (None,)
        connection.rollback()


@pytest.mark.parametrize("role", ["authenticated", "rag_worker"])
def test_a_role_of_the_schema_needs_a_trusted_issuer_without_a_subject_too(world: World, role: str):
    statements = [CURRENT]
    if role == "rag_worker":
        statements += [statement for (statement,) in world.sql(CALLS_OF_THE_WORKER)]
        assert len(statements) > 12
    with psycopg.connect(world.stack.database_url()) as connection:
        for statement in statements:
            with connection.transaction(force_rollback=True):
                claims = json.dumps({"iss": CLERK, "role": role})
                connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
                connection.execute("select set_config('role', %s, true)", [role])
                with pytest.raises(psycopg.Error) as raised:
                    connection.execute(statement.encode())
            assert raised.value.sqlstate == "PT401", statement
        connection.rollback()


def test_the_configuration_is_checked(world: World):
    for fields in (
        f"third_party_issuers = '{{\"{CLERK}\": null}}'",
        f"issuer = '{OWN}', third_party_issuers = '{{\"{OWN}\": null}}'",
        f"issuer = '{OWN}', third_party_issuers = '{{\"{CLERK}\": 1}}'",
        f"issuer = '{OWN}', third_party_issuers = '{{\"{CLERK} \": null}}'",
        f"issuer = '{OWN}', third_party_issuers = '[\"{CLERK}\"]'",
        "issuer = ''",
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            world.sql(f"update rag.settings set {fields}")


def test_rows_of_users_that_are_not_in_auth_users(people: People, world: World):
    """Their foreign key refuses no third-party user, and still refuses an unknown user of Supabase Auth."""
    user = third_party_user_id(CLERK, "user_2abc")
    add = "insert into rag.members (org_id, user_id) values (%s, %s)"
    world.sql(add, people.acme.id, user)
    assert world.sql("select auth_user_id from rag.members where user_id = %s", user) == [(None,)]
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        world.sql(add, people.acme.id, str(uuid4()))
    world.sql("delete from auth.users where id = %s", people.ann.id)
    assert world.sql("select from rag.members where user_id = %s", people.ann.id) == []
