"""Command `change-model`: every chunk embedded by another model, org by org, while the deployment is in use.

A killed run loses at most one batch: the next one continues. The functions search with both models
meanwhile (docs/embedding-models.md).
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row
from rich.console import Console
from rich.progress import Progress

from local.errors import CommandError
from local.operations.org_data.database import connected
from local.progress_columns import columns
from shared.access.token_usage import Quota, measured
from shared.config import Settings
from shared.errors import ConfigurationError, EmbeddingFailed, TextTooLong
from shared.ingestion.chunking.chunked_document import passage_of
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed
from shared.models.vectors import vector_literal
from shared.services import Services

BATCH = 64
# After a failed batch: the seconds before each further attempt.
PAUSES = (2, 10, 60, 300)
# Before the next attempt to exchange embeddings of which another transaction changes some.
BUSY_SECONDS = 5.0
FIRST = "00000000-0000-0000-0000-000000000000"
UNCHANGED_ORGS = """
select orgs.id from rag.orgs
where exists (select from rag.chunks where chunks.org_id = orgs.id and chunks.embedding_model < %(model)s)
  or exists (select from rag.chunks where chunks.org_id = orgs.id and chunks.embedding_model > %(model)s)
  or orgs.embedding_model <> %(model)s
order by orgs.id
"""
NEW_DOCUMENTS = "update rag.orgs set embedding_model = %(model)s where id = %(org)s"
START = """
update rag.settings
set next_embedding_model = %(model)s,
  other_embedding_models = array_remove(other_embedding_models, %(model)s) || %(model)s::text
"""
FINISH = """
update rag.settings
set embedding_model = %(model)s, next_embedding_model = null, other_embedding_models = '{}'
"""


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """`tokens`: those of the chunks that have no embedding of the model yet."""

    orgs: int
    changed_orgs: int
    chunks: int
    embedded: int
    tokens: int

    @property
    def is_complete(self) -> bool:
        return self.changed_orgs == self.orgs

    def sentence(self, model: str, price: float | None) -> str:
        cost = f", ${self.tokens / 1e6 * price:,.2f}" if price is not None else ""
        return (
            f"{model}: {self.changed_orgs:,} of {self.orgs:,} orgs changed; {self.embedded:,} of "
            f"{self.chunks:,} chunks embedded; about {self.tokens:,} tokens to embed{cost}"
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        metavar="MODEL",
        help="the model of RAG_OTHER_EMBEDDING (default), or, to go back, that of RAG_EMBEDDING_MODEL",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--status", action="store_true", help="print the progress and the cost, change nothing"
    )
    action.add_argument(
        "--finish",
        action="store_true",
        help="make it the deployment's model, and delete the former embeddings",
    )
    parser.add_argument(
        "--price", type=float, metavar="DOLLARS", help="the model's price of a million tokens"
    )
    parser.add_argument(
        "--per-minute", type=int, default=6000, metavar="CHUNKS", help="at most so many; default %(default)s"
    )
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, settings: Settings, options: argparse.Namespace) -> None:
    """Raises CommandError, ConfigurationError, EmbeddingFailed; a later run continues."""
    with (
        closing(Services(settings)) as services,
        connected(database_url, autocommit=True) as connection,
    ):
        other = services.other_embedder
        model: str | None = options.to or (other.model if other else None)
        if model is None:
            raise ConfigurationError("RAG_OTHER_EMBEDDING: set the new model (docs/embedding-models.md)")
        console = Console(soft_wrap=True)
        progress = progress_of(connection, model)
        console.print(progress.sentence(model, options.price), highlight=False)
        if options.finish:
            finish(connection, model)
            console.print(f"{model} is the deployment's model; the former embeddings are deleted")
        elif not options.status:
            with Progress(*columns(), console=console) as bar:
                task = bar.add_task("chunks", total=progress.chunks, completed=progress.embedded)
                tokens = change(
                    connection,
                    _embedder(services, model),
                    options.per_minute,
                    lambda count: bar.advance(task, count),
                    lambda line: console.print(line, highlight=False),
                )
            console.print(progress_of(connection, model).sentence(model, options.price), highlight=False)
            console.print(f"{tokens:,} tokens were embedded", highlight=False)


def progress_of(connection: psycopg.Connection[Any], model: str) -> ModelProgress:
    row = connection.execute("select * from rag.embedding_progress(%s)", [model]).fetchone()
    return ModelProgress(*row) if row else ModelProgress(0, 0, 0, 0, 0)


def change(
    connection: psycopg.Connection[Any],
    embedder: Embedder,
    per_minute: int,
    advance: Callable[[int], None] = lambda count: None,
    report: Callable[[str], None] = lambda line: None,
) -> int:
    """Change all orgs to the embedder's model, also documents that are stored meanwhile. Returns the number
    of embedded tokens. The connection commits each statement.

    Raises CommandError if another run changes the model, EmbeddingFailed and psycopg.Error.
    """
    pace, tokens = _Pace(per_minute), 0
    with _only_run(connection):
        connection.execute(START, {"model": embedder.model})
        while orgs := connection.execute(UNCHANGED_ORGS, {"model": embedder.model}).fetchall():
            for (org,) in orgs:
                for count, used in embed_org(connection, embedder, org):
                    tokens += used
                    advance(count)
                    pace.wait(count)
                started = time.monotonic()
                exchanged = exchange(connection, embedder.model, org)
                if exchanged is None:
                    # A document was stored meanwhile, which the next round embeds. Until then others may be
                    # stored: from now on with the new model's embeddings, so that the rounds come to an end.
                    connection.execute(NEW_DOCUMENTS, {"model": embedder.model, "org": org})
                elif exchanged < 0:
                    report(f"org {org}: another transaction changes its chunks; again in {BUSY_SECONDS:g} s")
                    time.sleep(BUSY_SECONDS)
                else:
                    seconds = time.monotonic() - started
                    report(f"org {org}: {exchanged:,} embeddings exchanged in {seconds:.1f} s")
    return tokens


def embed_org(connection: psycopg.Connection[Any], embedder: Embedder, org: str) -> Iterator[tuple[int, int]]:
    """Store the org's missing embeddings beside the present ones. Yields the numbers of chunks and tokens of
    each batch; one that is not full is the last. Raises as `change`."""
    model, after = embedder.model, FIRST
    while chunks := _chunks(connection, org, model, after):
        with measured() as usage:
            vectors = json.dumps(_embedded(embedder, chunks))
        connection.execute("select rag.put_other_embeddings(%s, %s, %s)", [org, model, vectors])
        after = chunks[-1]["chunk_id"]
        yield len(chunks), usage.tokens(Quota.EMBEDDING)
        if len(chunks) < BATCH:
            # Documents that are stored all the time would be found again and again.
            return


def exchange(connection: psycopg.Connection[Any], model: str, org: str) -> int | None:
    """Exchange the org's embeddings in one transaction. Returns their number; without a change None if a
    chunk has no embedding of the model, and -1 while another transaction changes or deletes a chunk."""
    row = connection.execute("select rag.exchange_embeddings(%s, %s)", [org, model]).fetchone()
    return row and row[0]


def finish(connection: psycopg.Connection[Any], model: str) -> None:
    """Make the model the deployment's, and delete the former embeddings. Raises CommandError while an org has
    other embeddings."""
    with _only_run(connection), connection.transaction():
        # No document is stored between the check and the end of the transaction.
        connection.execute("lock table rag.chunks in share mode")
        progress = progress_of(connection, model)
        if not progress.is_complete:
            count = progress.orgs - progress.changed_orgs
            raise CommandError(
                f"{count:,} orgs have embeddings of another model; run change-model --to {model}"
            )
        connection.execute(FINISH, {"model": model})
        connection.execute("truncate rag.other_embeddings")


class _Pace:
    """At most so many chunks a minute."""

    def __init__(self, per_minute: int) -> None:
        self._seconds = 60 / per_minute
        self._next = time.monotonic()

    def wait(self, count: int) -> None:
        self._next = max(self._next, time.monotonic() - self._seconds * count) + self._seconds * count
        time.sleep(max(0.0, self._next - time.monotonic()))


@contextmanager
def _only_run(connection: psycopg.Connection[Any]) -> Iterator[None]:
    lock = "hashtextextended('rag.change_model', 0)"
    if connection.execute(f"select pg_try_advisory_lock({lock})".encode()).fetchone() != (True,):
        raise CommandError("another run of change-model works on this database; wait for it, or stop it")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(f"select pg_advisory_unlock({lock})".encode())


def _embedder(services: Services, model: str) -> Embedder:
    """Raises ConfigurationError for a model that the settings do not name."""
    for embedder in (services.other_embedder, services.embedder):
        if embedder is not None and embedder.model == model:
            return embedder
    raise ConfigurationError(f"--to {model}: neither RAG_OTHER_EMBEDDING nor RAG_EMBEDDING_MODEL is it")


def _chunks(
    connection: psycopg.Connection[Any], org: str, model: str, after: str
) -> Sequence[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "select * from rag.chunks_to_embed(%s, %s, %s, %s)", [org, model, after, BATCH]
        ).fetchall()


def _embedded(embedder: Embedder, chunks: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The embeddings of chunks. Raises EmbeddingFailed after several attempts, CommandError for a chunk that
    is too long."""
    columns = ("title", "header", "content", "section")
    passages = [passage_of(embedder, *(row[column] for column in columns)) for row in chunks]
    for pause in (*PAUSES, None):
        try:
            vectors = embed(embedder, passages, Role.DOCUMENT, background=True)
            break
        except TextTooLong as error:
            row = chunks[error.text or 0]
            raise CommandError(
                f'chunk {row["chunk_id"]} of "{row["title"]}" is too long for {embedder.model} '
                f"({error.log_reason}): index its document again with a smaller chunk_size"
            ) from None
        except EmbeddingFailed:
            if pause is None:
                raise
            time.sleep(pause)
    return [
        {"chunk_id": str(row["chunk_id"]), "embedding": vector_literal(vector)}
        for row, vector in zip(chunks, vectors, strict=True)
    ]
