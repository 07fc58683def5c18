"""The extraction state of documents, and their names."""

from typing import Any

from tests.actors import World

Row = dict[str, Any]
STATE = "(state = 'done')::integer, next_ordinal, attempts, lease is not null, state = 'failed', error_code"


def mentions(world: World, document_id: str) -> list[tuple[int, str]]:
    return world.sql(
        "select ordinal, entity from rag.mentions where document_id = %s order by 1, 2", document_id
    )


def relations(world: World, document_id: str) -> list[tuple[int, str, str, str]]:
    return world.sql(
        "select ordinal, subject, type, object from rag.relations where document_id = %s order by 1, 2, 3, 4",
        document_id,
    )


def state(world: World, document_id: str) -> tuple[Any, ...] | None:
    """1 if it is extracted, next chunk, attempts, whether it is leased, whether it was given up, and why."""
    rows = world.sql(f"select {STATE} from rag.jobs where id = %s", document_id)
    return rows[0] if rows else None


def graph_rows(world: World, document_id: str) -> int:
    """Of whatever kind."""
    return sum(counts(world, document_id))


def counts(world: World, *document_ids: str) -> list[int]:
    """How many rows of the graph these documents have: subjects, mentions, relations, extractions."""
    tables = (
        "title_entities where", "mentions where", "relations where", "jobs where kind = 'extraction' and",
    )  # fmt: skip
    return [
        world.sql(f"select count(*) from rag.{table} document_id = any (%s::uuid[])", list(document_ids))[0][
            0
        ]
        for table in tables
    ]
