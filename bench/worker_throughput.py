"""Throughput, latency and memory of the worker, beside COPY of the same rows.

Documents are synthetic prose of six to ten chunks (bench/synthetic_text.py), added as plain text to an org
with 10,000 chunks. The embedder returns random vectors at once, so embedding takes no time. Direct calls to
PostgREST: the local gateway would take most of a call's time.
"""

import io
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import median, quantiles
from threading import Event, Thread
from time import perf_counter, sleep
from typing import TypeVar

import numpy as np
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas
from rich.console import Console

from bench.figures import Figure
from bench.synthetic_text import Prose
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.text_corpus import index_words, load_corpus
from local import ROOT
from local.seed_demo import make_services
from shared.documents import documents
from shared.documents.documents import NewUpload
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import Jobs
from shared.models.embedding_roles import NO_FORMS, Roles
from shared.models.embeddings import Embedder, local_embedder
from shared.models.vectors import DIMENSIONS
from shared.services import Services
from shared.types import Principal

LARGE_ORG, SMALL_ORG = Org(1, 10_000, 1500), Org(2, 100, 1)
DOCUMENTS, DOCUMENTS_EMBEDDED, LATENCY_SAMPLES, BACKLOG = 200, 24, 40, 10_000
FIRST_NUMBER = 2_000_000
PDF_BYTES, BYTES_A_PAGE = 50 * 2**20, 100_000
COPY_GOAL = "<= 2"
Result = TypeVar("Result")
# Every table with rows of a document, and its column that refers to the document.
KEYS = {
    "documents": "id",
    "originals": "document_id",
    "jobs": "document_id",
    "chunks": "document_id",
    "document_terms": "document_id",
    "facets": "document_id",
    "title_entities": "document_id",
    "mentions": "document_id",
    "relations": "document_id",
}


class RandomEmbedder:
    """An embedding service that takes no time: a direction for each text, drawn from a seed."""

    model, forms, remote = "all-MiniLM-L6-v2", NO_FORMS, True
    window, passage_tokens = 8191, 128

    def __init__(self) -> None:
        self._draw = np.random.default_rng(7)

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        rows: list[list[float]] = self._draw.normal(size=(len(texts), DIMENSIONS)).tolist()
        return rows

    def count_tokens(self, text: str) -> int:
        return len(text) // 4


@dataclass
class WorkerBench:
    """Who brings documents, and what works on them."""

    tenants: TenantDatabase
    services: Services
    prose: Prose
    number: int = FIRST_NUMBER

    def member(self, org: Org) -> tuple[Principal, str]:
        user = self.tenants.user(f"work-{org.number}", [org])
        (collection,) = self.tenants.connection.execute(
            "select id from rag.collections where org_id = %s", [org.id]
        ).fetchone() or (None,)
        return Principal(str(user), self.tenants.token(user)), str(collection)

    def texts(self, count: int) -> Iterator[tuple[str, bytes]]:
        for _ in range(count):
            self.number += 1
            documents = self.prose.document(self.number)
            yield documents.title, "\n\n".join(documents.chunks).encode()

    def add_documents(self, member: tuple[Principal, str], count: int) -> list[str]:
        caller, collection = member
        return [
            documents.add(
                self.services.database, caller, collection, NewUpload(data, title, content_type="text/plain")
            )["id"]
            for title, data in self.texts(count)
        ]  # fmt: skip

    def worker(self, embedder: Embedder) -> Worker:
        return Worker(Jobs(self.services.database, self.services.require_signer()), embedder)


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants:
        corpus = load_corpus(tenants, LARGE_ORG)
        index_words(tenants, corpus)
        tenants.add([SMALL_ORG])
        tenants.with_index()
        with closing(make_services(tenants.stack)) as services:
            services.database.address = tenants.postgrest
            worker_bench = WorkerBench(tenants, services, corpus.prose)
            member = worker_bench.member(LARGE_ORG)
            figures = [
                *throughput(worker_bench, member, console),
                *search_latency(worker_bench, member, console),
            ]
    return [*figures, *large_pdf()]


# -- documents a second, and beside COPY --------------------------------------------------------------


def throughput(worker_bench: WorkerBench, member: tuple[Principal, str], console: Console) -> list[Figure]:
    work(worker_bench.worker(RandomEmbedder()), worker_bench.add_documents(member, 16))
    document_ids, bringing = time_call(lambda: worker_bench.add_documents(member, DOCUMENTS))
    elapsed = work(worker_bench.worker(RandomEmbedder()), document_ids)
    copy_seconds, rows = time_copy(worker_bench.tenants, document_ids)
    console.print(
        f"{rows:,} rows of {DOCUMENTS} documents: worker {elapsed:.2f} s, COPY {copy_seconds:.2f} s"
    )
    embedded = work(
        worker_bench.worker(local_embedder()), worker_bench.add_documents(member, DOCUMENTS_EMBEDDED)
    )
    return [
        Figure("bringing a document", 1000 * bringing / DOCUMENTS, "ms"),
        Figure("documents a second, stand-in embedder", DOCUMENTS / elapsed, "1/s"),
        Figure("documents a second, local embedder", DOCUMENTS_EMBEDDED / embedded, "1/s"),
        Figure("rows written a second", rows / elapsed, "1/s", note=f"{rows / copy_seconds:,.0f} by COPY"),
        Figure("a document against COPY of its rows", elapsed, "s", copy_seconds, COPY_GOAL),
    ]


def time_call(call: Callable[[], Result]) -> tuple[Result, float]:
    started = perf_counter()
    result = call()
    return result, perf_counter() - started


def work(worker: Worker, document_ids: list[str]) -> float:
    """The seconds until all of them are done, by one worker."""
    started, process = perf_counter(), 0
    while process < len(document_ids):
        result = worker.work(16)
        assert result.completed == result.claimed > 0, result
        process += result.completed
    return perf_counter() - started


def time_copy(tenants: TenantDatabase, document_ids: list[str]) -> tuple[float, int]:
    """The documents' rows, taken out and copied in again: the seconds of the second half, and how many rows.

    Neither triggers nor foreign keys are minded meanwhile, as by a plain COPY.
    """
    connection, rows = tenants.connection, 0
    # Table, columns and rows.
    row_data: dict[str, bytes] = {}
    for table, key in KEYS.items():
        columns = stored_columns(tenants, table)
        of_them = f"select {columns} from rag.{table} where {key} = any (%s::uuid[])"  # noqa: S608
        copying = f"copy ({of_them}) to stdout (format binary)"
        with connection.cursor().copy(copying.encode(), [document_ids]) as out:
            row_data[f"rag.{table} ({columns})"] = b"".join(out)
    connection.execute("set session_replication_role = replica")
    for table, key in KEYS.items():
        delete = f"delete from rag.{table} where {key} = any (%s::uuid[])"  # noqa: S608
        rows += connection.execute(delete.encode(), [document_ids]).rowcount
    connection.execute("vacuum rag.chunks, rag.document_terms, rag.documents")
    started = perf_counter()
    for place, data in row_data.items():
        with connection.cursor().copy(f"copy {place} from stdin (format binary)".encode()) as into:
            into.write(data)
    seconds = perf_counter() - started
    connection.execute("set session_replication_role = origin")
    return seconds, rows


def stored_columns(tenants: TenantDatabase, table: str) -> str:
    row = tenants.connection.execute(
        "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = ''",
        [f"rag.{table}"],
    ).fetchone()
    return str((row or [""])[0])


# -- how soon -----------------------------------------------------------------------------------------


def search_latency(
    worker_bench: WorkerBench, member: tuple[Principal, str], console: Console
) -> list[Figure]:
    """With one worker that looks for work twenty times a second."""
    stopping = Event()

    def keep_working() -> None:
        worker = worker_bench.worker(RandomEmbedder())
        while not stopping.is_set():
            if worker.work(8).claimed == 0:
                sleep(0.05)

    thread = Thread(target=keep_working)
    thread.start()
    try:
        idle = [time_until_searchable(worker_bench, member) for _ in range(LATENCY_SAMPLES)]
        enqueue_backlog(worker_bench, worker_bench.member(SMALL_ORG))
        behind = [time_until_searchable(worker_bench, member) for _ in range(LATENCY_SAMPLES)]
        waiting = worker_bench.tenants.number(
            "select count(*) from rag.jobs where state in ('waiting', 'running')"
        )
        console.print(f"{waiting:,.0f} of another org's {BACKLOG:,} still waited at the end")
        assert waiting > BACKLOG / 2
    finally:
        stopping.set()
        thread.join()
    return [
        *percentile_figures("searchable, idle", idle),
        *percentile_figures("searchable, behind 10,000 of another org", behind),
    ]


def percentile_figures(name: str, seconds: list[float]) -> list[Figure]:
    return [
        Figure(f"{name}, p50", 1000 * median(seconds), "ms"),
        Figure(f"{name}, p95", 1000 * quantiles(seconds, n=20)[-1], "ms"),
    ]


def time_until_searchable(worker_bench: WorkerBench, member: tuple[Principal, str]) -> float:
    """From bringing a document to its being there for a search."""
    started = perf_counter()
    (document,) = worker_bench.add_documents(member, 1)
    chunk = "select 1 from rag.chunks where document_id = %s limit 1"
    while worker_bench.tenants.connection.execute(chunk, [document]).fetchone() is None:
        sleep(0.002)
    seconds = perf_counter() - started
    # Not always at the same moment of the worker's round.
    sleep(random.uniform(0, 0.1))  # noqa: S311  # not a secret
    return seconds


def enqueue_backlog(worker_bench: WorkerBench, member: tuple[Principal, str]) -> None:
    """As many documents of the other org, brought past the API."""
    caller, collection = member
    _, data = next(worker_bench.texts(1))
    arguments = [SMALL_ORG.id, collection, BACKLOG, data, caller.user_id]
    worker_bench.tenants.connection.execute(ENQUEUE_BACKLOG, dict(zip("ohnbu", arguments, strict=True)))
    worker_bench.tenants.connection.execute("analyze rag.jobs, rag.documents")


ENQUEUE_BACKLOG = """
with brought as (
  insert into rag.documents (org_id, collection_id, title, content, content_hash, status)
  select %(o)s, %(h)s, 'Piled ' || number, '', repeat('0', 64), 'processing'
  from generate_series(1, %(n)s) as number
  returning org_id, id, collection_id
), kept as (
  insert into rag.originals (org_id, document_id, collection_id, bytes)
  select org_id, id, collection_id, %(b)s from brought
)
insert into rag.jobs (org_id, document_id, collection_id, user_id, document)
select org_id, id, collection_id, %(u)s, '{"title": "Piled", "content_type": "text/plain"}' from brought
"""


# -- memory -------------------------------------------------------------------------------------------


def large_pdf() -> list[Figure]:
    """Of the process that reads it, and of the worker that has it read."""
    script = (
        "import resource, sys, time\n"
        "from bench.worker_throughput import pdf_of\n"
        "from shared.ingestion.file_to_markdown import convert\n"
        "data = pdf_of(int(sys.argv[1]))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "started = time.perf_counter()\n"
        "found = convert(data, 'large.pdf', None)\n"
        "seconds = time.perf_counter() - started\n"
        "own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "reader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(len(data), len(found.pages), len(found.text), seconds, own - before, reader)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(PDF_BYTES)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    size, pages, characters, seconds, process_growth, reader = map(float, process.stdout.split())
    about = f"{size / 2**20:.0f} MiB, {pages:.0f} pages, {characters:,.0f} characters"
    return [
        Figure("reading a PDF of 50 MB", seconds, "s", note=about),
        Figure("memory of its reader", reader / 1024, "MiB"),
        Figure("what the worker grew by meanwhile", process_growth / 1024, "MiB"),
    ]


def pdf_of(size: int) -> bytes:
    """A PDF of at least that size: pages of text, each with a picture that does not get smaller."""
    draw = np.random.default_rng(7)
    pdf = io.BytesIO()
    page = canvas.Canvas(pdf)
    while page.getPageNumber() * BYTES_A_PAGE < size:
        text = page.beginText(50, 800)
        for line in range(40):
            text.textLine(
                f"Line {line} of page {page.getPageNumber()}: the kiln is hot, and it cools for a day."
            )
        page.drawText(text)
        pixels = draw.integers(0, 256, size=(170, 195, 3), dtype=np.uint8)
        page.drawImage(ImageReader(Image.fromarray(pixels)), 50, 20)
        page.showPage()
    page.save()
    return pdf.getvalue()
