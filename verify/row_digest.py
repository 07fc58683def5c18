"""Digests of the victim's rows, read without row security."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from verify.actors import Actors

# Counters, which a refused request changes too.
COUNTERS = ("rate_limits", "request_counts", "org_calls", "api_metrics", "token_usage")
# api_keys.last_used_at: a key whose request is refused was used. chunks.in_hnsw: the worker sets it at any
# time.
VOLATILE_COLUMNS = ("last_used_at", "in_hnsw")
OWNER_COLUMNS = ("owner_id", "user_id", "caller_id")

Rows = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Extent:
    """The rows that a digest covers: those of the org, of an owner, of a collection without those of the
    colleague, or of all collections but one."""

    owner_id: str | None = None
    outside_of_collection: str | None = None
    collection_id: str | None = None


class State:
    """Reads the rows of the victim org from every table of the schema."""

    def __init__(self, actors: Actors) -> None:
        self._actors = actors
        self._columns: dict[str, set[str]] = {}
        for table, column in actors.sql(
            "select relname, attname from pg_class "
            "join pg_attribute on attrelid = pg_class.oid and attnum > 0 "
            "where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p') and not attisdropped"
        ):
            if table not in COUNTERS:
                self._columns.setdefault(table, set()).add(column)

    def rows(self, extent: Extent) -> Rows:
        """(table, digest) of each row."""
        selects: list[str] = []
        parameters: list[object] = []
        for table, columns in self._columns.items():
            condition, more = self._condition(table, columns, extent)
            if condition:
                is_volatile = columns & set(VOLATILE_COLUMNS)
                row = f"(to_jsonb(t) - array{list(VOLATILE_COLUMNS)})" if is_volatile else "t"
                selects.append(f"select '{table}', md5({row}::text) from rag.{table} as t where {condition}")  # noqa: S608
                parameters += more
        return Counter(
            (table, digest) for table, digest in self._actors.sql(" union all ".join(selects), *parameters)
        )

    def _condition(self, table: str, columns: set[str], extent: Extent) -> tuple[str, Sequence[object]]:
        actors = self._actors
        if extent.owner_id:
            owners = [f"{column} = %s" for column in OWNER_COLUMNS if column in columns]
            return " or ".join(owners), [extent.owner_id] * len(owners)
        column = "id" if table == "collections" else "collection_id"
        if extent.collection_id:
            if column not in columns or "org_id" not in columns:
                return "", []
            owners = [f" and {owner} is distinct from %s" for owner in OWNER_COLUMNS if owner in columns]
            own = [actors.colleague.id] * len(owners)
            return f"{column} = %s" + "".join(owners), [extent.collection_id, *own]
        if extent.outside_of_collection:
            condition = f"org_id = %s and {column} <> %s" if {"org_id", column} <= columns else ""
            return condition, [actors.org_id, extent.outside_of_collection] if condition else []
        if table == "orgs":
            return "id = %s", [actors.org_id]
        if "org_id" in columns:
            return "org_id = %s", [actors.org_id]
        people = [actors.admin.id, actors.member.id, actors.colleague.id]
        owners = [f"{column} = any (%s::uuid[])" for column in OWNER_COLUMNS if column in columns]
        return " or ".join(owners), [people] * len(owners)


def difference(before: Rows, after: Rows) -> str:
    """The tables whose rows differ, with the numbers of removed and added rows; empty for no difference."""
    gone, new = before - after, after - before
    tables = sorted({table for table, _ in (gone + new)})
    return ", ".join(
        f"{table} (-{sum(count for (name, _), count in gone.items() if name == table)}"
        f" +{sum(count for (name, _), count in new.items() if name == table)})"
        for table in tables
    )
