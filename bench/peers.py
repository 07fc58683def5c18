"""Search and ingestion beside PGVectorStore of LangChain and of LlamaIndex, and match_documents of Supabase's
guides.

The data and the questions are those of bench/request_path.py. Each system has a table of its own with the
same rows in the same database, with its own HNSW index, and runs in one process with uvloop. Ours searches
under row security, the others by their filter of metadata. The others are measured twice: as their packages
create the tables, and with an index on the org.
"""

import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.console import Console

from bench import request_path, served_match_documents
from bench.bench_stack import serve
from bench.figures import Figure
from bench.interleaved import TOP_K, connect
from bench.load_generator import Request
from bench.request_path import CHUNKS, Cell, Contender, Times
from bench.served_project import DOCUMENTS, document_text, question_text
from bench.synthetic_text import Prose
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from local import ROOT, access_tokens
from local.child_processes import free_port

OURS, LANGCHAIN, LLAMA_INDEX, TEXTBOOK = request_path.OURS, "LangChain", "LlamaIndex", "match_documents"
PEERS = (LANGCHAIN, LLAMA_INDEX, TEXTBOOK)
WITH_INDEX = ", index on the org"
# Of the published figures.
SIZES = ("50,000 chunks", "3,000 chunks", "100 chunks")
SYSTEMS = [OURS, *(f"{name}{suffix}" for name in PEERS for suffix in ("", WITH_INDEX))]
ENVIRONMENT, REQUIREMENTS = ROOT / ".venv-peers", Path(__file__).parent / "peers.txt"
QUESTIONS, ROUNDS = 60, 2
# Documents of one chunk that each system adds, so many a request, for an org of their own.
AT_ONCE, WORDS = 100, 120
INGESTED = Org(10, 0, 100)


@dataclass(frozen=True)
class Peer:
    """Its table with the columns of a row of rag.chunks, its index on the org, and the app that serves it."""

    table: str
    columns: str
    row: str
    org_index: str
    app: str
    # Whether the app has packages that this project does not have.
    foreign: bool = True


STORES = {
    LANGCHAIN: Peer(
        "langchain_chunks",
        "langchain_id, content, embedding, org_id, langchain_metadata",
        "id, content, {embedding}, org_id, '{{}}'",
        "btree (org_id)",
        "served_langchain",
    ),
    LLAMA_INDEX: Peer(
        "data_llama_index_chunks",
        "node_id, text, embedding, metadata_",
        "id, content, {embedding}, "
        "replace(replace('{metadata}', '$id', id::text), '$org_id', org_id::text)::json",
        # As indexed_metadata_keys of the package creates it.
        "btree (((metadata_ ->> 'org_id')::varchar))",
        "served_llama_index",
    ),
    TEXTBOOK: Peer(
        "documents",
        "id, content, embedding, metadata",
        "id, content, {embedding}, jsonb_build_object('org_id', org_id)",
        "gin (metadata jsonb_path_ops)",
        "served_match_documents",
        foreign=False,
    ),
}
LOAD = "insert into public.{table} ({columns}) select {row} from rag.chunks"
EMBEDDING = "embedding::extensions.vector(1536)"
# As in a project of Supabase; the packages name the types of pgvector without a schema.
SEARCH_PATH = 'alter role postgres set search_path = "$user", public, extensions'


def measure(
    console: Console, chunks: int = CHUNKS, questions: int = QUESTIONS, systems: Sequence[str] = PEERS
) -> list[Figure]:
    python = install() if any(STORES[name].foreign for name in systems) else Path(sys.executable)
    figures: list[Figure] = []
    with tenant_database() as tenants, ExitStack() as stack:
        tenants.add(request_path.orgs_of(chunks))
        environment = stack.enter_context(stand_ins(tenants))
        for name in systems:
            seconds = create(tenants, STORES[name], python, environment)
            console.print(f"{name}: {seconds:.0f} s for its HNSW index")
        console.print(f"{OURS}: {tenants.with_index():.0f} s for its HNSW index")
        tenants.show_functions()
        logs = tenants.stack.folder / "logs"
        ours = stack.enter_context(request_path.functions(environment, ROOT, logs / "functions.log"))
        addresses = {
            name: stack.enter_context(served(STORES[name], python, environment, logs)) for name in systems
        }
        contenders = {OURS: request_path.search(ours.url)}
        contenders |= {name: search(url) for name, url in addresses.items()}
        cells = request_path.cells_of(tenants)
        for cell in cells:
            figures += figures_of(cell, request_path.run(cell, contenders, questions, ROUNDS))
        figures += ingestion(tenants, {OURS: ours.url, **addresses})
        for name in systems:
            tenants.connection.execute(index_on_org(STORES[name]).encode())
        tenants.connection.execute("vacuum analyze")
        for cell in cells:
            figures += figures_of(cell, request_path.run(cell, contenders, questions, ROUNDS), WITH_INDEX)
    return figures


@contextmanager
def stand_ins(tenants: TenantDatabase) -> Iterator[dict[str, str]]:
    """The stand-ins of bench/request_path.py, and the environment of all systems."""
    state, key = tenants.stack.state, tenants.stack.signing_key
    claims = {"role": "service_role", "iat": 1_700_000_000, "exp": 2_000_000_000}
    with request_path.project(tenants) as environment:
        yield {
            **environment,
            "PYTHONPATH": str(ROOT),
            "BENCH_DATABASE": f"postgres:{state.password}@127.0.0.1:{state.postgres_port}/{state.database}",
            "BENCH_EMBEDDINGS_URL": environment["RAG_EMBEDDING_URL"],
            "BENCH_SERVICE_KEY": access_tokens.sign(key, claims),
        }


def install() -> Path:
    """The Python of the environment with the packages of bench/peers.txt, which are installed once."""
    python, written = ENVIRONMENT / "bin" / "python", ENVIRONMENT / REQUIREMENTS.name
    if not written.exists() or written.read_text() != REQUIREMENTS.read_text():
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        options = ("--quiet", "--disable-pip-version-check", "--requirement", REQUIREMENTS)
        subprocess.run([python, "-m", "pip", "install", *options], check=True)
        written.write_text(REQUIREMENTS.read_text())
    return python


def create(tenants: TenantDatabase, peer: Peer, python: Path, environment: Mapping[str, str]) -> float:
    """Create the table, with all rows of rag.chunks, and then its HNSW index; the seconds of the index. The
    helpers of its package create both."""

    def run(part: str) -> str:
        command = [str(python), "-m", f"bench.{peer.app}", part]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    metadata = ""
    if peer.foreign:
        tenants.connection.execute(SEARCH_PATH)
        metadata = run("table").strip()
    else:
        tenants.connection.execute(served_match_documents.SCHEMA)
    row = peer.row.format(embedding=EMBEDDING, metadata=metadata)
    tenants.connection.execute(LOAD.format(table=peer.table, columns=peer.columns, row=row).encode())
    started = perf_counter()
    if peer.foreign:
        run("index")
    else:
        tenants.connection.execute(served_match_documents.INDEX)
    return perf_counter() - started


def index_on_org(peer: Peer) -> str:
    return f"create index on public.{peer.table} using {peer.org_index}"


@contextmanager
def served(peer: Peer, python: Path, environment: Mapping[str, str], logs: Path) -> Iterator[str]:
    """The address of the app, in one process of uvicorn as the functions are."""
    port, log = free_port(), logs / f"{peer.app}.log"
    interpreter = python if peer.foreign else sys.executable
    command = [interpreter, "-m", "uvicorn", f"bench.{peer.app}:app", "--port", str(port)]
    options = ["--loop", "uvloop", "--http", "httptools", "--log-level", "warning"]
    with serve([*command, *options], port, environment, log, "/openapi.json") as server:
        yield server.url


def search(url: str) -> Contender:
    def request(cell: Cell, question: int, count: int) -> Request:
        text = question_text(cell.org, question, count)
        body = {"org_id": str(cell.org.id), "query_text": text, "top_k": TOP_K}
        return Request.of("/search", cell.token, body)

    return Contender(url, request, lambda answer: [row["id"] for row in answer["results"]])


def figures_of(cell: Cell, times: Mapping[str, Times], suffix: str = "") -> Iterator[Figure]:
    """Each system's figures beside ours in the same turns."""
    ours = times[OURS]
    for name, of_system in times.items():
        label, is_ours = f"{cell.name}, {name}{suffix}", name == OURS
        p50_ms, per_second = of_system.alone.p50_ms, of_system.together.per_second
        yield Figure(f"recall, {label}", of_system.alone.recall, "", goal=">= 0.99" if is_ours else None)
        yield Figure(f"p50, {label}", p50_ms, "ms", None if is_ours else ours.alone.p50_ms)
        yield Figure(f"requests, {label}", per_second, "1/s", None if is_ours else ours.together.per_second)


def ingestion(tenants: TenantDatabase, addresses: Mapping[str, str]) -> list[Figure]:
    """Rows a second of requests with a hundred documents, of all systems in turns. Ours leaves the insert
    into the HNSW index to the worker, whose time is measured too."""
    token = tenants.token(tenants.user("member of the org with new documents", [INGESTED]))
    seconds = dict.fromkeys(addresses, 0.0)
    for batch in batches():
        for name, url in addresses.items():
            request = add_request(name, token, batch)
            with connect(url) as connection:
                started = perf_counter()
                connection.request(request.method, request.path, request.body, request.headers)
                answer = connection.getresponse()
                content = answer.read()
                seconds[name] += perf_counter() - started
            if answer.status != 200:
                raise RuntimeError(f"{name}: {answer.status} {content[:500]!r}")
    for name in addresses:
        if (count := count_documents(tenants, name)) != DOCUMENTS:
            raise RuntimeError(f"{name}: {count} rows of {DOCUMENTS} documents")
    rows = {name: DOCUMENTS / taken for name, taken in seconds.items()}
    complete = DOCUMENTS / (seconds[OURS] + extend_index(tenants))
    return [
        *(
            Figure(f"rows, {name}", rate, "1/s", None if name == OURS else rows[OURS])
            for name, rate in rows.items()
        ),
        Figure("rows, ours, with the worker's inserts into the HNSW index", complete, "1/s"),
    ]


def batches() -> Iterator[list[str]]:
    prose = Prose(set())
    for first in range(0, DOCUMENTS, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        yield [document_text(number, prose.first_words(number, WORDS)) for number in numbers]


def add_request(name: str, token: str, texts: Sequence[str]) -> Request:
    if name == OURS:
        documents = [{"text": text} for text in texts]
        return Request.of("/index", token, {"index_name": "new documents", "documents": documents})
    return Request.of("/documents", token, {"org_id": str(INGESTED.id), "texts": list(texts)})


def count_documents(tenants: TenantDatabase, name: str) -> int:
    """The number of rows of new documents that the system has stored."""
    table = "rag.chunks" if name == OURS else f"public.{STORES[name].table}"
    content = "text" if name == LLAMA_INDEX else "content"
    return int(tenants.number(f"select count(*) from {table} where {content} like 'New document %'"))  # noqa: S608


def extend_index(tenants: TenantDatabase) -> float:
    """Seconds of the worker's statement for all new rows (rag_extend_hnsw), which leaves a short tail."""
    with tenants.connection.transaction():
        tenants.connection.execute("select set_config('rag.words_later', 'true', true)")
        started = perf_counter()
        tenants.connection.execute(
            "update rag.chunks set in_hnsw = true where org_id = %s and not in_hnsw", [INGESTED.id]
        )
        return perf_counter() - started
