"""Recall of vector search among an adopter's own rows, by size of org.

Each query is the embedding of a stored chunk. A member of the org calls rag_match, and the result is
compared with the nearest chunks that the member may see, found without an index. Nothing is written.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from verify.actors import act_as
from verify.target_deployment import Finding

Connection = psycopg.Connection[Any]

# Upper bounds of an org's chunks, of which the last is above any table's; orgs of each size, and queries for
# each org.
SIZES = (100, 1_000, 10_000, 100_000, 10_000_000, 10_000_000_000)
ORGS, QUERIES, TOP_K = 3, 5, 10
LEAST_RECALL = 0.95
# Similarities are stored as 32-bit numbers.
TOLERANCE = 1e-6
# Members by the product's own table, and users who added documents: an adopter may have a table of
# memberships of their own.
USERS = """
select user_id from rag.members where org_id = %(org)s and accepted_at is not null
union
select created_by from rag.documents where org_id = %(org)s and created_by in (select id from auth.users)
limit 50
"""
ORGS_BY_SIZE = """
select org_id, embedding_model, chunks from (
  select *,
    row_number() over (partition by width_bucket(chunks, %(sizes)s::bigint[]) order by chunks desc) as place
  from (select org_id, embedding_model, count(*) as chunks from rag.chunks group by 1, 2) as orgs
) as placed where place <= %(most)s order by chunks
"""
EXACT = """
select (embedding operator(extensions.<=>) %(query)s::extensions.halfvec) + 0 as distance from rag.chunks
where org_id = %(org)s and embedding_model = %(model)s order by distance limit %(top_k)s
"""
MATCH = """
select similarity from public.rag_match(%(query)s::extensions.vector, %(top_k)s,
  jsonb_build_object('org_id', %(org)s::text, 'model', %(model)s::text))
"""


@dataclass(frozen=True)
class Recall:
    """Recall for the orgs of one size: of `expected` nearest chunks, `retrieved` were returned."""

    chunks: int
    orgs: int
    queries: int
    expected: int
    retrieved: int
    # Orgs without a user whose membership is known.
    skipped: int

    @property
    def recall(self) -> float | None:
        return self.retrieved / self.expected if self.expected else None


def measure(connection: Connection) -> list[Recall]:
    """The recall for each size of orgs that the database has."""
    rows = connection.execute(ORGS_BY_SIZE, {"sizes": list(SIZES), "most": ORGS}).fetchall()
    results = []
    for size in SIZES:
        smaller = max((other for other in SIZES if other < size), default=-1)
        orgs = [row for row in rows if smaller <= row[2] < size]
        if orgs:
            counts = [_of_org(connection, str(org_id), model) for org_id, model, _ in orgs]
            measured = [count for count in counts if count is not None]
            queries, expected, retrieved = (sum(column) for column in zip((0, 0, 0), *measured, strict=True))
            results.append(
                Recall(size, len(measured), queries, expected, retrieved, len(counts) - len(measured))
            )
    return results


def findings(results: list[Recall]) -> list[Finding]:
    return [
        Finding(
            "rag_match", f"recall, orgs of less than {result.chunks:,} chunks", f"it is {result.recall:.3f}"
        )
        for result in results
        if result.recall is not None and result.recall < LEAST_RECALL
    ]


def _of_org(connection: Connection, org_id: str, model: str) -> tuple[int, int, int] | None:
    """Queries, and expected and retrieved chunks; None if no user is known to be a member."""
    queries = connection.execute(
        "select embedding::text from rag.chunks where org_id = %s and embedding_model = %s "
        "order by md5(id::text) limit %s",
        [org_id, model, QUERIES],
    ).fetchall()
    for (user_id,) in connection.execute(USERS, {"org": org_id}).fetchall():
        with _as_user(connection, str(user_id)):
            (is_member,) = connection.execute("select public.is_org_member(%s)", [org_id]).fetchone() or (
                False,
            )
            if is_member:
                counts = [_of_query(connection, org_id, model, query) for (query,) in queries]
                return len(counts), sum(count for count, _ in counts), sum(count for _, count in counts)
    return None


def _of_query(connection: Connection, org_id: str, model: str, query: str) -> tuple[int, int]:
    parameters = {"query": query, "org": org_id, "model": model, "top_k": TOP_K}
    nearest = [max(0, min(1, 1 - distance)) for (distance,) in connection.execute(EXACT, parameters)]
    matches = [similarity for (similarity,) in connection.execute(MATCH, parameters)]
    # Equally near chunks may take each other's place.
    return len(nearest), sum(similarity >= nearest[-1] - TOLERANCE for similarity in matches)


@contextmanager
def _as_user(connection: Connection, user_id: str) -> Iterator[None]:
    """A transaction as that user, as PostgREST does it, that cannot write."""
    with connection.transaction(force_rollback=True):
        connection.execute("set transaction read only")
        connection.execute("set local statement_timeout = 0")
        act_as(connection, user_id)
        yield
