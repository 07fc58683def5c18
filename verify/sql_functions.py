"""SQL functions and tables of the catalogue, with requests for PostgREST."""

from collections.abc import Iterator
from dataclasses import dataclass

from verify import request_examples
from verify.actors import Actors
from verify.request_generator import Request, sql_value
from verify.victim_objects import Values

ROLES = ("anon", "authenticated", "service_role")


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    has_default: bool


@dataclass(frozen=True)
class SqlFunction:
    """A function of the exposed schema, and the roles that may execute it."""

    name: str
    parameters: tuple[Parameter, ...]
    roles: frozenset[str]

    def request(self, values: Values, *, optional: bool) -> Request:
        """A valid call for the objects of these values."""
        known = {parameter.name for parameter in self.parameters}
        arguments = {
            parameter.name: sql_value(parameter.name, parameter.kind, values)
            for parameter in self.parameters
            if not parameter.has_default or (optional and parameter.name in values)
        }
        if self.name in request_examples.ARGUMENTS:
            more = request_examples.ARGUMENTS[self.name](values)
            arguments |= {name: value for name, value in more.items() if name in known}
        return Request("POST", f"/rest/v1/rpc/{self.name}", body=arguments)


def sql_functions(actors: Actors) -> list[SqlFunction]:
    """The exposed functions, by their names. Functions of the adopter's, which might do anything, are not
    called."""
    rows = actors.sql(
        "select proname, proargnames, "
        "array(select format_type(kind, null) from unnest(proargtypes) as kind), pronargdefaults, "
        "array(select rolname::text from pg_roles where rolname = any (%s) "
        "and has_function_privilege(rolname, pg_proc.oid, 'execute')) "
        "from pg_proc where pronamespace = 'public'::regnamespace and prorettype <> 'trigger'::regtype "
        "and (proname like 'rag\\_%%' or proname = 'is_org_member') order by proname",
        list(ROLES),
    )
    functions = []
    for name, names, kinds, defaults, roles in rows:
        first_default = len(kinds) - defaults
        parameters = tuple(
            Parameter(names[place] if names else f"${place}", kind, place >= first_default)
            for place, kind in enumerate(kinds)
        )
        functions.append(SqlFunction(name, parameters, frozenset(roles)))
    return functions


@dataclass(frozen=True)
class Table:
    """A table or view, with requests to PostgREST for it."""

    schema: str
    name: str
    # A table of schema rag, or a view of one. Nothing is written to the adopter's own tables, nor Supabase's.
    is_ours: bool

    def __str__(self) -> str:
        return f"table {self.schema}.{self.name}"

    @property
    def is_exposed(self) -> bool:
        return self.schema == "public"

    def requests(self, org_id: str) -> Iterator[tuple[str, Request]]:
        """Requests for the table, with descriptions: in the exposed schema, and in its own schema."""
        profile = {"Accept-Profile": self.schema, "Content-Profile": self.schema}
        for headers, place in (({}, ""), (profile, f" in schema {self.schema}")):
            yield f"GET{place}", Request("GET", f"/rest/v1/{self.name}", headers=headers)
            if not self.is_ours:
                continue
            only = {"org_id": f"eq.{org_id}"}
            address = f"/rest/v1/{self.name}"
            yield f"POST{place}", Request("POST", address, body={"org_id": org_id}, headers=headers)
            yield (
                f"PATCH{place}",
                Request("PATCH", address, only, {"created_at": "2026-01-01"}, headers=headers),
            )
            yield f"DELETE{place}", Request("DELETE", address, only, headers=headers)


def tables(actors: Actors) -> list[Table]:
    """The tables and views of the product's schema, of Supabase's, and of the exposed one."""
    rows = actors.sql(
        "select nspname, relname, nspname = 'rag' or exists ("
        "select from pg_rewrite "
        "join pg_depend on objid = pg_rewrite.oid and classid = 'pg_rewrite'::regclass "
        "join pg_class as source on source.oid = refobjid and refclassid = 'pg_class'::regclass "
        "where ev_class = pg_class.oid and source.relnamespace = 'rag'::regnamespace "
        # Of a view that reads as its caller, row security decides.
        "and not coalesce(array_to_string(pg_class.reloptions, ',') "
        "~ 'security_invoker=(true|on|1)', false)) "
        "from pg_class join pg_namespace as schema on schema.oid = relnamespace "
        "where nspname in ('rag', 'auth', 'storage', 'public') and relkind in ('r', 'p', 'v', 'm', 'f') "
        "and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'e') order by 1, 2"
    )
    return [Table(*row) for row in rows]
