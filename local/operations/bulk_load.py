"""Command `bulk-load`: the first documents of a database, with indexes built afterwards.

One transaction over the database's own URL calls the SQL function that POST /index calls: the rows are the
same, and a load that is killed leaves the database as it was.
"""

import argparse
import json
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import psycopg
from pydantic import TypeAdapter, ValidationError

from local.demo_corpus import ADMINS, org_id_of, read_folder
from local.errors import CommandError
from local.operations.folder_scan import one_line
from local.operations.org_data.database import connected, reason_of
from local.operations.org_data.import_users import is_third_party
from shared.config import Settings
from shared.errors import InvalidRequest
from shared.ingestion.chunking.chunked_document import ChunkingConfig
from shared.ingestion.synchronous_ingestion import NewDocument, chunk_and_embed
from shared.models.embeddings import Embedder, embedder_for

MAX_DOCUMENTS = 100_000
# Documents of a call, and their characters; calls that are prepared while the database stores others.
AT_ONCE, CHARACTERS_AT_ONCE, PREPARED = 250, 1_000_000, 4
# A token's issuer is checked, also here.
USER = """
select coalesce((select id from auth.users where email = %(user)s), %(third_party)s::uuid)::text, issuer
from rag.settings
"""
KEYS = {field.name for field in fields(NewDocument)}
DOCUMENT = TypeAdapter(NewDocument)
NOT_EMPTY = "The database has chunks already. Add further documents with: python -m local ingest"
# The tables that refer to documents. Their secondary indexes and foreign keys are dropped and created again.
TABLES = [f"rag.{name}" for name in ("chunks", "facets", "jobs", "mentions", "relations", "title_entities")]
SECONDARY = """
select 'drop index ' || indexrelid::regclass, pg_get_indexdef(indexrelid)
from pg_index
where indrelid = any (%(tables)s::regclass[])
  and not exists (select from pg_constraint where conindid = indexrelid and conrelid = indrelid)
union all
select 'alter table ' || conrelid::regclass || ' drop constraint ' || quote_ident(conname),
  'alter table ' || conrelid::regclass || ' add constraint ' || quote_ident(conname) || ' '
    || pg_get_constraintdef(oid)
from pg_constraint
where conrelid = any (%(tables)s::regclass[]) and contype = 'f'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="a file of JSON lines, or a folder of Markdown and text files"
    )
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")
    parser.add_argument(
        "--user",
        metavar="USER",
        default=ADMINS["halden"],
        help="the address of the user who adds them, or a third-party user's id; default %(default)s",
    )
    parser.add_argument("--org", metavar="ORG", help="an id; required for members of several orgs")
    parser.add_argument("--collection", default="default", metavar="NAME", help="default: default")
    parser.add_argument(
        "--index-memory", default="256MB", metavar="SIZE", help="for building indexes; default %(default)s"
    )


def run(database_url: str, settings: Settings, options: argparse.Namespace) -> None:
    """Raises CommandError, RagError and ConfigurationError; then nothing is stored."""
    org = org_id_of(options.org) if options.org else None
    embedder = embedder_for(settings)
    with connected(database_url) as connection:
        third_party = options.user if is_third_party(options.user) else None
        parameters = {"user": options.user, "third_party": third_party}
        user, issuer = connection.execute(USER, parameters).fetchone() or (None, None)
        if user is None:
            raise CommandError(f"no user has the address {options.user}")
        claims = {
            "sub": user,
            # As in the tokens that the functions sign for third-party users, too.
            "iss": issuer,
            "role": "authenticated",
            "rag": {"org": org} if org else None,
        }
        documents = read_documents(options.path)
        count = load(connection, embedder, claims, options.collection, documents, options.index_memory)
    print(f"{count:,} documents")


def load(
    connection: psycopg.Connection[Any],
    embedder: Embedder,
    claims: dict[str, Any],
    collection: str,
    documents: Iterable[NewDocument],
    index_memory: str = "256MB",
) -> int:
    """Store documents as the user of the claims and commit; returns their number. Searches wait meanwhile.

    Raises CommandError for a database with chunks and invalid documents, EmbeddingFailed and psycopg.Error.
    """
    connection.execute(
        "select set_config(name, value, true) from jsonb_each_text(%s) as setting (name, value)",
        [
            json.dumps(
                {
                    "request.jwt.claims": json.dumps(claims),
                    "TimeZone": "UTC",
                    "statement_timeout": "0",
                    "idle_in_transaction_session_timeout": "0",
                    "maintenance_work_mem": index_memory,
                    "work_mem": index_memory,
                }
            )
        ],
    )
    connection.execute("lock table rag.chunks in access exclusive mode")
    if connection.execute("select true from rag.chunks limit 1").fetchone():
        raise CommandError(NOT_EMPTY)
    config = _chunking(connection, collection)
    secondary = connection.execute(SECONDARY, {"tables": TABLES}).fetchall()
    for drop, _ in secondary:
        connection.execute(drop)
    count = 0
    for rows in _prepared(embedder, documents, config):
        try:
            connection.execute("select public.rag_put_documents(%s, %s)", [collection, json.dumps(rows)])
        except psycopg.OperationalError:
            # The server stopped, or the session: no fault of these documents.
            raise
        except psycopg.Error as error:
            raise CommandError(f"documents {count + 1} to {count + len(rows)}: {reason_of(error)}") from None
        count += len(rows)
    for _, create in secondary:
        connection.execute(create)
    connection.execute(
        f"analyze rag.documents, rag.document_terms, rag.term_segments, rag.term_blocks, {', '.join(TABLES)}"
    )
    connection.commit()
    return count


def _chunking(connection: psycopg.Connection[Any], collection: str) -> ChunkingConfig:
    row = connection.execute(
        "select id, config from rag.collection_by_name(rag.resolve_org(null), %s)", [collection]
    ).fetchone()
    return ChunkingConfig.of_collection(row and {"id": row[0], "config": row[1]})


def _prepared(
    embedder: Embedder, documents: Iterable[NewDocument], config: ChunkingConfig
) -> Iterator[list[dict[str, Any]]]:
    """The rows of each call, in order."""
    batches, number = _batches(_distinct(documents)), 0
    waiting: deque[Future[list[dict[str, Any]]]] = deque()
    with ThreadPoolExecutor(2) as pool:
        while True:
            while len(waiting) < PREPARED and (batch := next(batches, None)):
                waiting.append(pool.submit(chunk_and_embed, embedder, batch, config))
            if not waiting:
                return
            try:
                rows = waiting.popleft().result()
            except InvalidRequest as error:
                raise CommandError(f"document {number + error.details['document'] + 1}: {error}") from None
            number += len(rows)
            yield rows


def _batches(documents: Iterable[NewDocument]) -> Iterator[list[NewDocument]]:
    batch: list[NewDocument] = []
    room = 0
    for document in documents:
        room -= len(document.text)
        if batch and (len(batch) == AT_ONCE or room < 0):
            yield batch
            batch = []
        if not batch:
            room = CHARACTERS_AT_ONCE - len(document.text)
        batch.append(document)
    if batch:
        yield batch


def _distinct(documents: Iterable[NewDocument]) -> Iterator[NewDocument]:
    """Raises CommandError for a repeated name, and for too many documents."""
    names: set[tuple[str, bool]] = set()
    for number, document in enumerate(documents, start=1):
        if number > MAX_DOCUMENTS:
            raise CommandError(f"a load has at most {MAX_DOCUMENTS:,} documents; add the others with ingest")
        name = (document.external_id or "", document.private)
        if document.external_id is not None and name in names:
            raise CommandError(f"document {number} has the same external_id as an earlier one")
        names.add(name)
        yield document


def read_documents(path: Path) -> Iterator[NewDocument]:
    """The documents of a folder (local/demo_corpus.py), or of a file with an object in each line."""
    if path.is_dir():
        yield from (file.document for file in read_folder(path))
        return
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    values = json.loads(line)
                    if unknown := sorted(values.keys() - KEYS):
                        raise CommandError(f"{path}, line {number}: unknown key {one_line(unknown[0])}")
                    yield DOCUMENT.validate_python(values)
                except ValidationError as error:
                    fault = error.errors(include_url=False)[0]
                    raise CommandError(f"{path}, line {number}: {fault['loc'][0]}: {fault['msg']}") from None
                except (ValueError, AttributeError, RecursionError):
                    raise CommandError(f"{path}, line {number}: it is not a JSON object") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: it is not UTF-8") from None
