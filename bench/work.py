"""The worker: documents a second, how soon one is found, what writing one costs beside a COPY of its rows,
and the memory of who reads a large PDF.

Documents are made-up prose of six to ten chunks (bench/prose.py), brought as plain text into an org that has
10,000. The stand-in for an embedding service answers at once with drawn vectors, so that everything but
embedding is what is timed. Straight at PostgREST: the local gateway would be most of a call.
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
from bench.prose import Prose
from bench.rows import Org
from bench.shelf import index_words, stocked
from bench.tenants import Tenants, tenants
from local import ROOT
from local.seed_demo import make_services
from shared.documents import documents
from shared.documents.documents import NewUpload
from shared.ingestion.job_queue import Jobs
from shared.ingestion.worker import Worker
from shared.models.embeddings import DIMENSIONS, Embedder, local_embedder
from shared.services import Services
from shared.types import Principal

THERE, OTHER = Org(1, 10_000, 1500), Org(2, 100, 1)
DRAWN, EMBEDDED, SEARCHED, BACKLOG = 200, 24, 40, 10_000
FIRST = 2_000_000
PDF_BYTES, BYTES_A_PAGE = 50 * 2**20, 100_000
COPY_GOAL = "<= 4"
Result = TypeVar("Result")
# Every table that a document leaves rows in, and what it is known by there.
KEYS = {
    "documents": "id",
    "originals": "document_id",
    "jobs": "document_id",
    "chunks": "document_id",
    "postings": "document_id",
    "facets": "document_id",
}


class Drawn:
    """An embedding service that takes no time: a direction for each text, drawn from a seed."""

    model, remote, window, passage_tokens = "all-MiniLM-L6-v2", True, 8191, 128

    def __init__(self) -> None:
        self._draw = np.random.default_rng(7)

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        rows: list[list[float]] = self._draw.normal(size=(len(texts), DIMENSIONS)).tolist()
        return rows

    def count_tokens(self, text: str) -> int:
        return len(text) // 4


@dataclass
class Desk:
    """Who brings documents, and what works on them."""

    made: Tenants
    core: Services
    prose: Prose
    number: int = FIRST

    def member(self, org: Org) -> tuple[Principal, str]:
        user = self.made.user(f"work-{org.number}", [org])
        (home,) = self.made.connection.execute(
            "select id from rag.collections where org_id = %s", [org.id]
        ).fetchone() or (None,)
        return Principal(str(user), self.made.token(user)), str(home)

    def texts(self, wanted: int) -> Iterator[tuple[str, bytes]]:
        for _ in range(wanted):
            self.number += 1
            written = self.prose.document(self.number)
            yield written.title, "\n\n".join(written.chunks).encode()

    def bring(self, who: tuple[Principal, str], wanted: int) -> list[str]:
        caller, home = who
        return [
            documents.add(
                self.core.database, caller, home, NewUpload(data, title, content_type="text/plain")
            )["id"]
            for title, data in self.texts(wanted)
        ]  # fmt: skip

    def worker(self, embedder: Embedder) -> Worker:
        return Worker(Jobs(self.core.database, self.core.require_signer()), embedder)


def measure(console: Console) -> list[Figure]:
    with tenants() as made:
        shelf = stocked(made, THERE)
        index_words(made, shelf)
        made.add([OTHER])
        made.with_index()
        with closing(make_services(made.stack)) as core:
            core.database._address = made.postgrest
            desk = Desk(made, core, shelf.prose)
            who = desk.member(THERE)
            figures = [*throughput(desk, who, console), *soon(desk, who, console)]
    return [*figures, *large_pdf()]


# -- documents a second, and beside COPY --------------------------------------------------------------


def throughput(desk: Desk, who: tuple[Principal, str], console: Console) -> list[Figure]:
    work(desk.worker(Drawn()), desk.bring(who, 16))
    brought, bringing = timed(lambda: desk.bring(who, DRAWN))
    drawn = work(desk.worker(Drawn()), brought)
    copied, rows = copy_again(desk.made, brought)
    console.print(f"{rows:,} rows of {DRAWN} documents: worked on in {drawn:.2f} s, copied in {copied:.2f} s")
    embedded = work(desk.worker(local_embedder()), desk.bring(who, EMBEDDED))
    return [
        Figure("bringing a document", 1000 * bringing / DRAWN, "ms"),
        Figure("documents a second, stand-in embedder", DRAWN / drawn, "1/s"),
        Figure("documents a second, local embedder", EMBEDDED / embedded, "1/s"),
        Figure("rows written a second", rows / drawn, "1/s", note=f"{rows / copied:,.0f} by COPY"),
        Figure("a document against COPY of its rows", drawn, "s", copied, COPY_GOAL),
    ]


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    started = perf_counter()
    result = call()
    return result, perf_counter() - started


def work(worker: Worker, brought: list[str]) -> float:
    """The seconds until all of them are done, by one worker."""
    started, done = perf_counter(), 0
    while done < len(brought):
        became = worker.work(16)
        assert became.completed == became.claimed > 0, became
        done += became.completed
    return perf_counter() - started


def copy_again(made: Tenants, brought: list[str]) -> tuple[float, int]:
    """The documents' rows, taken out and copied in again: the seconds of the second half, and how many rows.

    Neither triggers nor foreign keys are minded meanwhile, as by a plain COPY.
    """
    connection, rows = made.connection, 0
    # Which table and columns, and what was in them.
    kept: dict[str, bytes] = {}
    for table, key in KEYS.items():
        columns = written_columns(made, table)
        of_them = f"select {columns} from rag.{table} where {key} = any (%s::uuid[])"  # noqa: S608
        copying = f"copy ({of_them}) to stdout (format binary)"
        with connection.cursor().copy(copying.encode(), [brought]) as out:
            kept[f"rag.{table} ({columns})"] = b"".join(out)
    connection.execute("set session_replication_role = replica")
    for table, key in KEYS.items():
        delete = f"delete from rag.{table} where {key} = any (%s::uuid[])"  # noqa: S608
        rows += connection.execute(delete.encode(), [brought]).rowcount
    connection.execute("vacuum rag.chunks, rag.postings, rag.documents")
    started = perf_counter()
    for place, data in kept.items():
        with connection.cursor().copy(f"copy {place} from stdin (format binary)".encode()) as into:
            into.write(data)
    seconds = perf_counter() - started
    connection.execute("set session_replication_role = origin")
    return seconds, rows


def written_columns(made: Tenants, table: str) -> str:
    found = made.connection.execute(
        "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = ''",
        [f"rag.{table}"],
    ).fetchone()
    return str((found or [""])[0])


# -- how soon -----------------------------------------------------------------------------------------


def soon(desk: Desk, who: tuple[Principal, str], console: Console) -> list[Figure]:
    """With one worker that looks for work twenty times a second."""
    stopping = Event()

    def keep_working() -> None:
        worker = desk.worker(Drawn())
        while not stopping.is_set():
            if worker.work(8).claimed == 0:
                sleep(0.05)

    thread = Thread(target=keep_working)
    thread.start()
    try:
        idle = [until_found(desk, who) for _ in range(SEARCHED)]
        pile_up(desk, desk.member(OTHER))
        behind = [until_found(desk, who) for _ in range(SEARCHED)]
        left = desk.made.number("select count(*) from rag.jobs where state in ('waiting', 'running')")
        console.print(f"{left:,.0f} of another org's {BACKLOG:,} still waited at the end")
        assert left > BACKLOG / 2
    finally:
        stopping.set()
        thread.join()
    return [*told("searchable, idle", idle), *told("searchable, behind 10,000 of another org", behind)]


def told(name: str, seconds: list[float]) -> list[Figure]:
    return [
        Figure(f"{name}, p50", 1000 * median(seconds), "ms"),
        Figure(f"{name}, p95", 1000 * quantiles(seconds, n=20)[-1], "ms"),
    ]


def until_found(desk: Desk, who: tuple[Principal, str]) -> float:
    """From bringing a document to its being there for a search."""
    started = perf_counter()
    (document,) = desk.bring(who, 1)
    chunk = "select 1 from rag.chunks where document_id = %s limit 1"
    while desk.made.connection.execute(chunk, [document]).fetchone() is None:
        sleep(0.002)
    seconds = perf_counter() - started
    # Not always at the same moment of the worker's round.
    sleep(random.uniform(0, 0.1))  # noqa: S311  # not a secret
    return seconds


def pile_up(desk: Desk, who: tuple[Principal, str]) -> None:
    """As many documents of the other org, brought past the API."""
    caller, home = who
    _, data = next(desk.texts(1))
    arguments = [OTHER.id, home, BACKLOG, data, caller.user_id]
    desk.made.connection.execute(PILE, dict(zip("ohnbu", arguments, strict=True)))
    desk.made.connection.execute("analyze rag.jobs, rag.documents")


PILE = """
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
        "from bench.work import pdf_of\n"
        "from shared.ingestion.convert import convert\n"
        "data = pdf_of(int(sys.argv[1]))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "started = time.perf_counter()\n"
        "found = convert(data, 'large.pdf', None)\n"
        "seconds = time.perf_counter() - started\n"
        "own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "reader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(len(data), len(found.pages), len(found.text), seconds, own - before, reader)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(PDF_BYTES)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    size, pages, characters, seconds, own, reader = map(float, done.stdout.split())
    about = f"{size / 2**20:.0f} MiB, {pages:.0f} pages, {characters:,.0f} characters"
    return [
        Figure("reading a PDF of 50 MB", seconds, "s", note=about),
        Figure("memory of its reader", reader / 1024, "MiB"),
        Figure("what the worker grew by meanwhile", own / 1024, "MiB"),
    ]


def pdf_of(size: int) -> bytes:
    """A PDF of at least that size: pages of text, each with a picture that does not get smaller."""
    draw = np.random.default_rng(7)
    made = io.BytesIO()
    page = canvas.Canvas(made)
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
    return made.getvalue()
