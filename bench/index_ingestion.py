"""POST /index with a hundred documents of one chunk a request, by one client and by four, beside COPY.

The functions and the stand-ins are those of bench/request_path.py. The clients take turns. The chunks stay
outside of the HNSW index until the worker adds them.
"""

import itertools
from collections.abc import Iterator

from rich.console import Console

from bench import request_path
from bench.figures import Figure
from bench.load_generator import Outcome, Request, run_clients
from bench.served_project import DOCUMENTS, document_text
from bench.synthetic_text import Prose
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.worker_throughput import time_copy
from local import ROOT

ORG = Org(1, 5000, 100)
AT_ONCE, WORDS, CLIENTS, ROUNDS = 100, 120, 4, 3
IDS = """
select documents.id::text from rag.documents join rag.collections on collections.id = documents.collection_id
where collections.name = %s
"""


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants:
        tenants.add([ORG])
        tenants.with_index()
        log = tenants.stack.folder / "logs" / "functions.log"
        with (
            request_path.project(tenants) as environment,
            request_path.functions(environment, ROOT, log) as server,
        ):
            alone, together, copy_seconds = alternate(tenants, server.url)
    rows, rows_together = AT_ONCE * alone.per_second, AT_ONCE * together.per_second
    console.print(f"one client {alone.elapsed:.2f} s, COPY {copy_seconds:.2f} s")
    return [
        Figure("documents a second, one client", rows, "1/s"),
        Figure("documents a second, four clients", rows_together, "1/s", rows, ">= 1.5"),
        Figure("against COPY of the rows", alone.elapsed, "s", copy_seconds, "<= 2"),
    ]


def alternate(tenants: TenantDatabase, url: str) -> tuple[Outcome, Outcome, float]:
    """As many requests of one client as of four, in turns, and the seconds of a COPY of the former's rows."""
    token = tenants.token(tenants.user("member", [ORG]))
    documents = ({"text": text} for text in texts((2 * ROUNDS + 1) * CLIENTS * AT_ONCE))

    def requests(index: str, count: int) -> list[Request]:
        parts = (list(itertools.islice(documents, AT_ONCE)) for _ in range(count))
        return [Request.of("/index", token, {"index_name": index, "documents": part}) for part in parts]

    alone, together, copy_seconds = Outcome(), Outcome(), 0.0
    send(url, 1, requests("warm", CLIENTS))
    for turn in range(ROUNDS):
        name = f"by one client {turn}"
        alone.add(send(url, 1, requests(name, CLIENTS)))
        together.add(send(url, CLIENTS, requests("by four clients", CLIENTS)))
        document_ids = [row[0] for row in tenants.connection.execute(IDS, [name]).fetchall()]
        copy_seconds += time_copy(tenants, document_ids)[0]
    return alone, together, copy_seconds


def send(url: str, clients: int, requests: list[Request]) -> Outcome:
    share = len(requests) // clients

    def next_request(client: int, number: int) -> Request | None:
        return requests[client * share + number] if number < share else None

    return run_clients(url, clients, next_request)


def texts(count: int) -> Iterator[str]:
    prose = Prose(set())
    for number in range(count):
        yield document_text(number % DOCUMENTS, f"{number} {prose.first_words(number, WORDS)}")
