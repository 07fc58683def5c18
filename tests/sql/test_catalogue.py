"""Rules of the catalogue: grants of functions and tables, and the policies that separate tenants.

verify/catalogue.json has every grant and policy of the release. These rules hold of a changed release, too.
"""

import re
from typing import Any

import psycopg
import pytest

from local.declared_schema import exposed_functions
from local.tools import sql_reference
from shared.clients.supabase_storage import MAX_BYTES
from tests.actors import World

# Functions that run as their owner, and why.
DEFINERS = {
    "rag.store_in_vault()": "Vault grants the creation of a secret to the owner alone",
    "rag.erase_from_vault()": "Vault grants the deletion of a secret to the owner alone",
    "rag.secret_in_vault(uuid)": "Vault grants the reading of a secret to the owner alone",
    "rag.broadcast_change()": "neither users nor the worker may send on the channels of Realtime",
}
# Every exposed function, with its kind of caller. Each runs as its caller.
CALLERS = exposed_functions()
EXPOSED = set(CALLERS)
# The worker's role alone executes these.
WORKER_FUNCTIONS = {name for name, caller in CALLERS.items() if caller == "worker"} | {
    "rag.clear_deliveries()", "rag.due_deliveries(integer)", "rag.due_jobs(text,integer,uuid[])",
    "rag.fail_exhausted_jobs()", "rag.secret_in_vault(uuid)",
}  # fmt: skip
# PostgREST calls the first of them before each request, as any role.
OF_EVERY_ROLE = {"rag.check_request()", "rag.check_direct_size()"}
# What a role may not do, by table: privileges on any column, or on the named ones.
REFUSED: dict[str, dict[str, dict[str, set[str]]]] = {
    "authenticated": {
        # The API shows a secret once. Only the worker reads credentials.
        "endpoints": {"SELECT": {"secret", "old_secret"}},
        "source_credentials": {"SELECT": {"credentials"}},
        # What a key may do never changes.
        "api_keys": {
            "UPDATE": {
                "org_id", "owner_id", "hash", "scopes", "collection_id", "requests_per_minute", "name",
                "created_at",
            },
            "DELETE": set(),
        },
        # The database notes who created a row.
        "collections": {"UPDATE": {"created_by"}},
        "documents": {"INSERT": {"created_by"}, "UPDATE": {"created_by"}},
        # A count that could be deleted could begin again.
        **{
            table: {"DELETE": set()}
            for table in ("rate_limits", "request_counts", "api_metrics", "org_calls", "token_usage")
        },
        # A message, and a noted event, stays as it is.
        "messages": {"UPDATE": set()},
        "audit_events": {"UPDATE": set(), "DELETE": set()},
        # The deployer writes these.
        **{
            table: {"INSERT": set(), "UPDATE": set(), "DELETE": set()}
            for table in ("settings", "tiers", "oauth_clients")
        },
        "orgs": {
            "INSERT": set(), "DELETE": set(), "UPDATE": {"id", "name", "tier", "served", "embedding_model"},
        },
        # A grant stays its grantee's.
        "collection_grants": {
            "UPDATE": {"org_id", "id", "collection_id", "owner_id", "group_name", "user_id"},
        },
        # Admins write these too, and the trigger check_consent restricts updates further.
        "members": {"INSERT": {"created_at"}, "UPDATE": {"org_id", "user_id", "created_at"}},
        # The owner exchanges embedding models.
        "other_embeddings": {name: set() for name in ("SELECT", "INSERT", "UPDATE", "DELETE")},
    },
    "rag_worker": {
        # It reads no text, no name and no vector.
        "documents": {"SELECT": {"title", "content", "metadata"}, "INSERT": set(), "DELETE": set()},
        "chunks": {"SELECT": {"content", "embedding", "metadata"}, "INSERT": set(), "DELETE": set()},
        "originals": {"SELECT": {"bytes", "url"}},
        **{
            table: {name: set() for name in ("SELECT", "INSERT", "UPDATE", "DELETE")}
            for table in (
                "mentions", "title_entities", "relations", "document_terms", "term_segments", "term_blocks",
                "facets", "messages", "members", "groups", "group_members", "collection_grants",
                "oauth_clients", "api_keys", "other_embeddings",
            )
        },
        # A job stays its user's.
        "jobs": {
            "SELECT": {"document", "passages_hash", "embeddings"},
            "UPDATE": {"user_id", "document", "org_id"}, "INSERT": set(), "DELETE": set(),
        },
    },
}  # fmt: skip
# The owner alone reads and writes it: no grants, and a policy that permits nothing.
OWNER_TABLES = {"other_embeddings"}
# Counts of users, whichever orgs they belong to, and settings.
WITHOUT_ORG = {"settings", "tiers", "orgs", "rate_limits", "request_counts", "api_metrics", "oauth_clients"}
# Keys that are bound to a collection do not use these at all, or they have no collection.
WITHOUT_COLLECTION = {
    "webhooks", "endpoints", "deliveries", "sources", "source_credentials", "source_items", "org_calls",
    "token_usage", "stored_bytes", "groups", "group_members",
}  # fmt: skip
# Unique without org_id in front, and why no other tenant can learn anything from that.
UNIQUE_ACROSS_ORGS = {
    "orgs_pkey": "an org's own id is the org_id",
    "settings_pkey": "one row for the whole deployment",
    "tiers_pkey": "the same tiers for the whole deployment",
    "oauth_clients_pkey": "the deployer's, for the whole deployment; a token reads the row of its client",
    "api_keys_hash": "a key is looked up before its org is known; only the key's holder knows its hash",
    "rate_limits_pkey": "a caller has one budget, whichever orgs they belong to; who it is the token says",
    "request_counts_pkey": "a user's own requests, whichever orgs they belong to",
    "api_metrics_pkey": "the same of what their requests did",
}
MEMBERSHIP = (
    "((org_id = ANY (ARRAY( SELECT rag.current_org_ids() AS current_org_ids)))"
    " AND ({shared} OR (owner_id = ( SELECT rag.current_user_id() AS current_user_id))"
    " OR (org_id = ANY (ARRAY( SELECT rag.admin_org_ids() AS admin_org_ids)))))"
)
SHARED = "(owner_id IS NULL)"
OPEN = "(NOT ({column} IN ( SELECT rag.closed_collections('view'::text) AS closed_collections)))"
# The function that finds the closed collections reads these two tables.
UNLESS_READ = (
    "((( SELECT current_setting('rag.reads_grants'::text, true) AS current_setting) = 'true'::text)"
    f" OR {OPEN})"
)


def membership(table: str, nullable: bool | None) -> str:
    """The membership expression of a table. nullable: whether its collection_id is; None: it has none."""
    if table in ("collections", "collection_grants"):
        column = "id" if table == "collections" else "collection_id"
        is_open = UNLESS_READ.format(column=column)
    elif nullable is None:
        return MEMBERSHIP.format(shared=SHARED)
    else:
        is_open = OPEN.format(column="collection_id")
        if nullable:
            is_open = f"((collection_id IS NULL) OR {is_open})"
    return MEMBERSHIP.format(shared=f"({SHARED} AND {is_open})")


# A key is also seen by the token that looks it up, which knows its hash; usage by that of the metrics.
WHOLE_ORG = membership("", None)
EXPRESSIONS = {
    "api_keys": f"({WHOLE_ORG} OR (hash = ( SELECT rag.lookup_hash() AS lookup_hash)))",
    "token_usage": f"({WHOLE_ORG} OR ( SELECT rag.reads_metrics() AS reads_metrics))",
}
OURS = """
    from pg_proc
    where pronamespace in ('rag'::regnamespace, 'public'::regnamespace)
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid
        and deptype = 'e')
"""


def functions(world: World, condition: str = "true") -> set[str]:
    """Our functions that a condition on pg_proc holds of."""
    return names(world, f"select oid::regprocedure::text {OURS} and ({condition})")


def names(world: World, statement: str, *parameters: Any) -> set[str]:
    return {name for (name,) in world.sql(statement, *parameters)}


def tables(world: World, condition: str = "true", kinds: str = "rp") -> set[str]:
    """Our tables, or relations of other kinds, that a condition on pg_class holds of."""
    ours = "relnamespace = 'rag'::regnamespace and relkind::text = any (%s)"
    return names(world, f"select relname from pg_class where {ours} and ({condition})", list(kinds))


def tenant_tables(world: World) -> set[str]:
    column = "exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'org_id')"
    return tables(world, column) - {"members"} - OWNER_TABLES


def test_the_server_has_the_requested_postgres_version(world: World, pytestconfig: pytest.Config):
    ((version,),) = world.sql("select current_setting('server_version_num')::integer / 10000")
    assert version == pytestconfig.getoption("postgres")


def test_the_exposed_functions_are_the_documented_list(world: World):
    assert functions(world, "pronamespace = 'public'::regnamespace") == EXPOSED


def test_the_reference_is_generated_and_every_object_has_a_comment(world: World):
    with psycopg.connect(world.stack.database_url()) as connection:
        text = sql_reference.reference(connection)
    assert "\n\nNone\n" not in text
    assert "| None |" not in text
    assert sql_reference.PATH.read_text() == text, "run: make generated"


def test_definer_functions_are_listed(world: World):
    """In whatever schema: an owner with BYPASSRLS is bound by no policy inside a definer function."""
    definers = "from pg_proc where prosecdef and proowner = 'postgres'::regrole"
    assert names(world, f"select oid::regprocedure::text {definers}") == set(DEFINERS)
    # None reads or writes a table of the schema.
    bodies = world.sql(f"select prosrc {definers}")
    assert not [body for (body,) in bodies if re.search(r"(from|join|into|update|table) rag\.", body)]


def test_every_function_sets_its_search_path(world: World):
    assert functions(world, "proconfig is null or not proconfig @> array['search_path=\"\"']") == set()


def test_no_policy_calls_a_volatile_function(world: World):
    """Volatile is the default, and a policy would call the function for each row."""
    called = (
        "select refobjid::regprocedure::text from pg_depend join pg_proc on pg_proc.oid = refobjid "
        "where classid = 'pg_policy'::regclass and refclassid = 'pg_proc'::regclass and provolatile = 'v'"
    )
    assert names(world, called) == set()


def test_the_schema_public_has_no_table_view_or_type_of_the_project(world: World):
    types = "select typname from pg_type where typnamespace = 'public'::regnamespace"
    relations = "select relname from pg_class where relnamespace = 'public'::regnamespace"
    assert names(world, f"{types} union all {relations}") == set()


def test_other_roles_execute_the_pre_request_function_only(world: World):
    """Grantee 0 is PUBLIC; an ACL that was never set grants it."""
    for role in ("anon", "service_role"):
        assert functions(world, f"has_function_privilege('{role}', oid, 'execute')") == OF_EVERY_ROLE, role
    granted = "exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)"
    assert functions(world, granted) == OF_EVERY_ROLE


def test_authenticated_can_execute_every_function_of_the_project(world: World):
    executed = functions(world, "has_function_privilege('authenticated', oid, 'execute')")
    assert executed == functions(world) - WORKER_FUNCTIONS - set(DEFINERS)


def test_the_worker_s_role_can_execute_its_own_exposed_functions(world: World):
    executed = functions(world, "has_function_privilege('rag_worker', oid, 'execute')")
    assert executed & EXPOSED == WORKER_FUNCTIONS & EXPOSED | {"rag_health()"}
    assert executed >= WORKER_FUNCTIONS
    attributes = "select rolcanlogin, rolbypassrls, rolsuper from pg_roles where rolname = 'rag_worker'"
    assert world.sql(attributes) == [(False, False, False)]


def test_no_role_of_postgrest_creates_objects_in_the_project_s_schemas(world: World):
    creating = world.sql(
        "select role, schema from unnest(array['anon', 'authenticated', 'authenticator', 'rag_worker', "
        "'service_role']) as role, unnest(array['rag', 'public']) as schema "
        "where has_schema_privilege(role, schema, 'create')"
    )
    assert creating == []


def test_no_role_has_a_refused_privilege(world: World):
    rows = world.sql(
        "select role, relname, privilege, attname from pg_class join pg_attribute on attrelid = pg_class.oid "
        "cross join unnest(array['authenticated', 'rag_worker', 'anon', 'service_role']) as role "
        "cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as privilege "
        "where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p') and attnum > 0 "
        "and not attisdropped and case privilege when 'DELETE' then has_table_privilege(role, "
        "pg_class.oid, privilege) else has_column_privilege(role, pg_class.oid, attnum, privilege) end"
    )
    assert [row for row in rows if row[0] in ("anon", "service_role")] == []
    permitted = [
        (role, table, privilege, column)
        for role, table, privilege, column in rows
        if (refused := REFUSED.get(role, {}).get(table, {}).get(privilege)) is not None
        and (not refused or column in refused)
    ]
    assert permitted == []
    readable = {table for _, table, _, _ in rows}
    assert {table for refused in REFUSED.values() for table in refused} <= readable | OWNER_TABLES


def test_every_table_and_view_has_row_security(world: World):
    """Of tables it is forced, and a view has that of its caller."""
    assert tables(world, "not (relrowsecurity and relforcerowsecurity)", "rpf") == set()
    assert tables(world, "not coalesce('security_invoker=true' = any (reloptions), false)", "vm") == set()


def test_tables_without_an_org_are_the_documented_list(world: World):
    assert tables(world) - tenant_tables(world) == WITHOUT_ORG | OWNER_TABLES | {"members"}


def test_every_tenant_table_has_one_policy_with_the_membership_expression(world: World):
    """Word for word, for reading as for writing, so that one overlay can swap it everywhere."""
    columns = world.sql(
        "select relname, not attnotnull from pg_attribute join pg_class on pg_class.oid = attrelid "
        "where relnamespace = 'rag'::regnamespace and relkind = 'r' and attname = 'collection_id'"
    )
    nullable = dict(columns)
    expected = {
        table: (EXPRESSIONS.get(table, membership(table, nullable.get(table))),) * 2
        for table in tenant_tables(world)
    }
    rows = world.sql(
        "select relname, polcmd::text, polroles::regrole[]::text[], "
        "pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) "
        "from pg_policy join pg_class on pg_class.oid = polrelid where relname = any (%s) and polpermissive "
        "and polroles <> array['rag_worker'::regrole::oid]",
        sorted(expected),
    )
    # The token of the metrics writes nothing.
    expected["token_usage"] = (EXPRESSIONS["token_usage"], WHOLE_ORG)
    assert sorted(rows) == [(table, "*", ["authenticated"], *expected[table]) for table in sorted(expected)]


def test_every_tenant_table_restricts_bound_keys(world: World):
    rows = world.sql(
        "select relname, array_agg(polname::text) from pg_policy "
        "join pg_class on pg_class.oid = polrelid and relnamespace = 'rag'::regnamespace "
        "where not polpermissive group by 1"
    )
    restrictive = {table: set(names) for table, names in rows}
    bound = {table for table, names in restrictive.items() if "a bound key stays in its collection" in names}
    of_tenants = tenant_tables(world)
    assert bound == of_tenants - WITHOUT_COLLECTION
    # Each has another one as well: for the scopes of keys, or for admins.
    assert {table for table in of_tenants if len(restrictive[table]) < 1 + (table in bound)} == set()


def test_every_policy_is_for_authenticated_or_the_worker_alone(world: World):
    rows = world.sql(
        "select polname::text, polroles::regrole[]::text[] from pg_policy "
        "join pg_class on pg_class.oid = polrelid where relnamespace = 'rag'::regnamespace"
    )
    for name, roles in rows:
        assert roles == ["rag_worker" if name.startswith("the worker ") else "authenticated"], name


def test_the_bucket_is_private_and_limited(world: World):
    buckets = world.sql("select id, public, file_size_limit from storage.buckets")
    assert buckets == [("rag-originals", False, MAX_BYTES)]


def test_unique_keys_start_with_the_org_with_documented_exceptions(world: World):
    """A key that is unique across orgs tells one tenant of another's rows, and cannot be distributed."""
    rows = world.sql(
        "select indexrelid::regclass::text, attname from pg_index "
        "join pg_class on pg_class.oid = indrelid and relnamespace = 'rag'::regnamespace "
        "join pg_attribute on attrelid = indrelid and attnum = indkey[0] where indisunique"
    )
    otherwise = {index.removeprefix("rag.") for index, first in rows if first != "org_id"}
    assert otherwise == set(UNIQUE_ACROSS_ORGS)
    assert len(rows) > len(otherwise)


def test_foreign_keys_between_tenant_tables_include_the_org(world: World):
    """(org_id, x) refers to (org_id, id): no row can hang on another tenant's."""
    rows = world.sql(
        "select child.relname, parent.relname, "
        "array(select attname::text from unnest(conkey) with ordinality as key (number, place) "
        "  join pg_attribute on attrelid = conrelid and attnum = number order by place), "
        "array(select attname::text from unnest(confkey) with ordinality as key (number, place) "
        "  join pg_attribute on attrelid = confrelid and attnum = number order by place) "
        "from pg_constraint join pg_class as child on child.oid = conrelid "
        "join pg_class as parent on parent.oid = confrelid "
        "where contype = 'f' and child.relnamespace = 'rag'::regnamespace"
    )
    between = [row for row in rows if set(row[:2]) <= tenant_tables(world)]
    assert [row for row in between if row[2][0] != "org_id" or row[3][0] != "org_id"] == []
    # And every tenant row hangs, directly or not, on an org.
    assert ("collections", "orgs", ["org_id"], ["id"]) in rows


def test_embeddings_are_stored_in_the_row(world: World):
    rows = world.sql(
        "select attstorage::text, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = 'rag.chunks'::regclass and attname = 'embedding'"
    )
    assert rows == [("p", "extensions.halfvec")]
