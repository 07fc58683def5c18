"""A throw-away stack with many tenants' chunks in one table: one large org, one middling, one small, and
many other small ones.

Loaded by COPY as the superuser, past the API and its triggers, the HNSW index created afterwards: only
reading is measured. bench/synthetic_vectors.py says what the embeddings are like.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any
from uuid import UUID

import psycopg

from bench.bench_stack import temporary_stack
from bench.synthetic_vectors import BATCH
from bench.tenant_rows import Org, chunk_columns, copy_rows, document_columns
from local import access_tokens
from local.postgres import SUPERUSER
from local.stack import Stack

LARGE = Org(1, 50_000, 1500)
MEDIUM = Org(2, 3_000, 1000)
SMALL = Org(3, 100, 100)
# Memory for data and for building an index: more than either needs, so that neither limits the measurement.
SETTINGS = {
    "shared_buffers": "6GB",
    "maintenance_work_mem": "3GB",
    "max_parallel_maintenance_workers": "2",
    "max_wal_size": "8GB",
}
IN_INDEX = "in_hnsw and extensions.vector_dims(embedding) = {0}"
INDEX = f"""
create index chunks_by_embedding_{{0}} on rag.chunks
  using hnsw ((embedding::extensions.halfvec({{0}})) extensions.halfvec_cosine_ops)
  where {IN_INDEX}"""


# What the triggers would have counted: how many chunks each collection has. (The words are left out.)
COUNTS = """
insert into rag.term_segments
  (org_id, segment, config, collection_id, embedding_model, documents, chunks, length)
select org_id, collection_id, 'english', collection_id, embedding_model,
  least(count(distinct document_id), 65535), count(*), count(*)
from rag.chunks
where org_id = any (%s)
group by org_id, collection_id, embedding_model
"""


def small_orgs(chunks: int, orgs: int) -> list[Org]:
    """That many chunks spread evenly over that many small orgs, whose numbers begin with 10."""
    share, rest = divmod(chunks, orgs)
    return [Org(10 + number, share + (number < rest), 100) for number in range(orgs)]


@dataclass
class TenantDatabase:
    stack: Stack
    connection: psycopg.Connection[Any]
    model: str
    orgs: list[Org] = field(default_factory=list)

    @property
    def postgrest(self) -> str:
        return f"http://127.0.0.1:{self.stack.state.postgrest_port}"

    def add(self, orgs: Sequence[Org]) -> None:
        """The orgs with all their rows."""
        rows = [(org.id, f"Org {org.number}") for org in orgs]
        with self.connection.cursor() as cursor:
            cursor.executemany("insert into rag.orgs (id, name) values (%s, %s)", rows)
            cursor.executemany(
                "insert into rag.collections (org_id, id, name) values (%s, %s, 'default')",
                [(org.id, org.id) for org in orgs],
            )
        with self.without_triggers("rag.documents"), self.without_triggers("rag.chunks"):
            for org in orgs:
                copy_rows(self.connection, "rag.documents", document_columns(org))
                embeddings = org.embeddings()
                for first in range(0, org.chunks, BATCH):
                    part = embeddings[first : first + BATCH]
                    copy_rows(self.connection, "rag.chunks", chunk_columns(org, part, first, self.model))
        self.connection.execute(COUNTS.encode(), [[org.id for org in orgs]])
        self.orgs += orgs

    @contextmanager
    def without_triggers(self, table: str) -> Iterator[None]:
        """Without what would fill other tables with every row; foreign keys are checked all the same."""
        self.connection.execute(f"alter table {table} disable trigger user")
        yield
        self.connection.execute(f"alter table {table} enable trigger user")

    def user(self, name: str, orgs: Sequence[Org]) -> UUID:
        """A member of those orgs."""
        row = self.connection.execute(
            "insert into auth.users (email) values (%s) returning id", [f"{name}@bench.example"]
        ).fetchone()
        assert row is not None
        user_id: UUID = row[0]
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "insert into rag.members (org_id, user_id) values (%s, %s)",
                [(org.id, user_id) for org in orgs],
            )
        return user_id

    def token(self, user_id: UUID, role: str = "authenticated") -> str:
        return access_tokens.user_token(self.stack.signing_key, self.stack.url, str(user_id), role=role)

    def without_index(self, dimensions: int = 1536) -> None:
        self.connection.execute(f"drop index if exists rag.chunks_by_embedding_{dimensions}".encode())

    def with_index(self, dimensions: int = 1536) -> float:
        """Make it and settle the tables; the seconds that the index took."""
        started = perf_counter()
        self.connection.execute(INDEX.format(dimensions).encode())
        taken = perf_counter() - started
        self.connection.execute("vacuum analyze")
        self.connection.execute("checkpoint")
        return taken

    def show_functions(self) -> None:
        """PostgREST reads anew which functions there are, and has read them on return."""
        self.connection.execute("notify pgrst, 'reload schema'")
        sleep(1)

    def number(self, query: str) -> float:
        (value,) = self.connection.execute(query).fetchone() or (0,)
        return float(value)


@contextmanager
def tenant_database() -> Iterator[TenantDatabase]:
    """An empty stack with its schema, taken away afterwards."""
    with temporary_stack(seed=False) as stack:
        _configure(stack)
        with psycopg.connect(stack.database_url(SUPERUSER), autocommit=True) as connection:
            row = connection.execute("select embedding_model from rag.settings").fetchone()
            database = TenantDatabase(stack, connection, str((row or [""])[0]))
            database.without_index()
            yield database


def _configure(stack: Stack) -> None:
    """Some settings need another start."""
    with psycopg.connect(stack.database_url(SUPERUSER), autocommit=True) as connection:
        for name, value in SETTINGS.items():
            connection.execute(f"alter system set {name} = '{value}'")
    stack.down()
    stack.up(0, durable=False, seed=False)
