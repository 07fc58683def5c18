"""Rules of an imported org's rows that tables do not check, and its retention."""

from typing import Any

import psycopg
from psycopg import sql

from local.errors import CommandError

OF_A_DOCUMENT = ("originals", "chunks", "mentions", "relations", "jobs")
OF_ANOTHER_PLACE = """
select exists (
  select from {} as own
  join rag.documents on documents.org_id = own.org_id and documents.id = own.document_id
  where own.org_id = %(org)s
    and (own.collection_id, own.owner_id) is distinct from (documents.collection_id, documents.owner_id))
"""
# Rules of the functions that write these rows, which the tables do not check.
RULES = {
    "a document in a private collection belongs to another user": """
      select exists (
        select from rag.documents
        join rag.collections
          on collections.org_id = documents.org_id and collections.id = documents.collection_id
        where documents.org_id = %(org)s and collections.owner_id is not null
          and documents.owner_id is distinct from collections.owner_id)
    """,
    "a chunk has an embedding of another model, or with other dimensions, than the manifest states": """
      select exists (
        select from rag.chunks
        where org_id = %(org)s and (embedding_model <> all (%(models)s)
          or extensions.vector_dims(embedding) <> rag.dimensions_of(embedding_model)))
    """,
    "a session has more messages than it counts": """
      select exists (
        select from rag.messages
        join rag.sessions on sessions.org_id = messages.org_id and sessions.id = messages.session_id
        where messages.org_id = %(org)s and messages.ordinal >= sessions.message_count)
    """,
}
# The org's own retention applies, whatever the archive states.
EXPIRE_RECORDS = (
    """
    delete from rag.request_records using rag.orgs
    where request_records.org_id = %(org)s and orgs.id = %(org)s and (orgs.record_days is null
      or request_records.created_at + make_interval(days => orgs.record_days) <= now())
    """,
    """
    update rag.request_records
    set expires_at = least(request_records.created_at, now()) + make_interval(days => orgs.record_days)
    from rag.orgs
    where request_records.org_id = %(org)s and orgs.id = %(org)s
      and expires_at > least(request_records.created_at, now()) + make_interval(days => orgs.record_days)
    """,
)


def require_rules(connection: psycopg.Connection[Any], models: list[str], org: str) -> None:
    """Raises CommandError for rows of the org that no function of the project writes."""
    rules = {
        f"a row of {name} has another collection or owner than its document": sql.SQL(
            OF_ANOTHER_PLACE
        ).format(sql.Identifier("rag", name))
        for name in OF_A_DOCUMENT
    }
    rules |= {sentence: sql.Composed([sql.SQL(query)]) for sentence, query in RULES.items()}
    for sentence, query in rules.items():
        if connection.execute(query, {"org": org, "models": models}).fetchone() == (True,):
            raise CommandError(f"the archive cannot be imported: {sentence}")


def expire_records(connection: psycopg.Connection[Any], org: str) -> None:
    for statement in EXPIRE_RECORDS:
        connection.execute(statement, {"org": org})
