"""/api/rag/search among many tenants' chunks, with all functions in one process as in the container.

An embedding endpoint that answers at once and a plain reverse proxy to PostgREST replace the services
around it (bench/served_project.py). Every question is new to the cache of embeddings. Compared with rag_match
by PostgREST and, with --baseline, with the functions of another checkout:
python -m bench.request_path --baseline CHECKOUT.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from bench import figures
from bench.bench_stack import UNLIMITED, Server, serve
from bench.figures import Figure
from bench.interleaved import TOP_K, Score, Workload, connect, turns, vector_literal
from bench.load_generator import Outcome, Request, run_clients
from bench.served_project import QUESTIONS, question_text
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, small_orgs, tenant_database
from local import ROOT
from local.child_processes import free_port
from shared.clients.postgrest import SECRET_HEADER

OURS, MATCH, BASELINE = "ours", "rag_match", "baseline"
CHUNKS = 100_000
CLIENTS, ROUNDS, REQUESTS = 8, 4, 160


@dataclass(frozen=True)
class Cell:
    name: str
    org: Org
    token: str


@dataclass(frozen=True)
class Contender:
    """A server, its request for a question that was asked so many times before, and the ids of its result."""

    url: str
    request: Callable[[Cell, int, int], Request]
    chunk_ids: Callable[[Any], Sequence[str]]


@dataclass
class Times:
    """Of one contender in one cell: one client's seconds and recall, and eight clients' requests."""

    alone: Score = field(default_factory=Score)
    together: Outcome = field(default_factory=Outcome)


def orgs_of(chunks: int) -> list[Org]:
    """211 orgs: one with half of the chunks, ten with 3 % each, two hundred with 0.1 % each."""
    hundredth = chunks // 100
    medium = [Org(2 if number == 0 else 300 + number, 3 * hundredth, 1000) for number in range(10)]
    small = [Org(3, hundredth // 10, 100), *small_orgs(hundredth // 10 * 199, 199)]
    return [Org(1, 50 * hundredth, 1500), *medium, *small]


@contextmanager
def project(tenants: TenantDatabase) -> Iterator[dict[str, str]]:
    """The stand-ins, and the environment of functions that use them."""
    proxy, embeddings = free_port(), free_port()
    environment = {
        "PYTHONPATH": str(ROOT),
        "BENCH_ORGS": json.dumps([[org.number, org.chunks, org.topics] for org in measured(tenants.orgs)]),
        "BENCH_POSTGREST_PORT": str(tenants.stack.state.postgrest_port),
        "BENCH_PROXY_PORT": str(proxy),
        "BENCH_EMBEDDINGS_PORT": str(embeddings),
    }
    log = tenants.stack.folder / "logs" / "served_project.log"
    with serve([sys.executable, "-m", "bench.served_project"], embeddings, environment, log) as server:
        yield {
            **UNLIMITED,
            **tenants.stack.function_environment(),
            "SUPABASE_URL": f"http://127.0.0.1:{proxy}",
            "SUPABASE_JWT_ISSUER": f"{tenants.stack.url}/auth/v1",
            "OPENAI_API_KEY": "none",
            "RAG_EMBEDDING_URL": f"{server.url}/v1",
            "RAG_EMBEDDING_MODEL": tenants.model,
        }


def measured(orgs: Sequence[Org]) -> Sequence[Org]:
    """The one large org, a medium and a small one."""
    return [org for org in orgs if org.number in (1, 2, 3)]


@contextmanager
def functions(environment: Mapping[str, str], checkout: Path, log: Path) -> Iterator[Server]:
    """All functions of a checkout in one process, as the container serves them."""
    port = free_port()
    own = {**environment, "PYTHONPATH": str(checkout), "PORT": str(port)}
    # Without -P the current folder would come before the checkout.
    command = [sys.executable, "-P", "-m", "functions.server"]
    with serve(command, port, own, log, "/openapi.json") as server:
        yield server


def search(url: str) -> Contender:
    def request(cell: Cell, question: int, asked: int) -> Request:
        body = {"query_text": question_text(cell.org, question, asked), "top_k": TOP_K}
        return Request.of("/api/rag/search", cell.token, body)

    return Contender(url, request, lambda answer: [row["chunk_id"] for row in answer["results"]])


def match(url: str, functions_secret: str) -> Contender:
    """The database's part: one call with the vector, as the functions make it."""
    secret = {SECRET_HEADER: functions_secret}
    vectors: dict[int, list[str]] = {}

    def request(cell: Cell, question: int, asked: int) -> Request:
        if cell.org.number not in vectors:
            vectors[cell.org.number] = [vector_literal(vector) for vector in cell.org.queries(QUESTIONS)]
        body = {"query_vector": vectors[cell.org.number][question % QUESTIONS], "top_k": TOP_K}
        request = Request.of("/rpc/rag_match", cell.token, body)
        return replace(request, headers=request.headers | secret)

    return Contender(url, request, lambda rows: [row["chunk_id"] for row in rows])


def cells_of(tenants: TenantDatabase) -> list[Cell]:
    return [
        Cell(f"{org.chunks:,} chunks", org, tenants.token(tenants.user(f"member of {org.number}", [org])))
        for org in measured(tenants.orgs)
    ]


def run(cell: Cell, contenders: Mapping[str, Contender], questions: int, rounds: int) -> dict[str, Times]:
    """One client with all contenders in turns, in a random order for each question; then eight clients with
    each contender in turns. Raises RuntimeError for a response that is no 200."""
    times = {name: Times() for name in contenders}
    asked = itertools.count()
    workload = Workload.of(cell.token, [cell.org], QUESTIONS, rare=False)
    with ExitStack() as stack:
        connections = {
            name: stack.enter_context(connect(contender.url)) for name, contender in contenders.items()
        }
        for question, name, counts in turns(contenders, questions):
            contender = contenders[name]
            request = contender.request(cell, question, next(asked))
            started = perf_counter()
            connections[name].request(request.method, request.path, request.body, request.headers)
            answer = connections[name].getresponse()
            content = answer.read()
            taken = perf_counter() - started
            if answer.status != 200:
                raise RuntimeError(f"{name}: {answer.status} {content[:500]!r}")
            if counts:
                times[name].alone.seconds.append(taken)
                rows = [{"chunk_id": chunk_id} for chunk_id in contender.chunk_ids(json.loads(content))]
                times[name].alone.record(workload, question, rows)
    for turn in range(rounds):
        for name in sorted(contenders, reverse=turn % 2 == 0):
            times[name].together.add(together(cell, contenders[name], next(asked)))
    return times


def together(cell: Cell, contender: Contender, asked: int) -> Outcome:
    def next_request(client: int, number: int) -> Request | None:
        if number >= REQUESTS // CLIENTS:
            return None
        return contender.request(cell, client * REQUESTS // CLIENTS + number, 1000 * asked + number)

    return run_clients(contender.url, CLIENTS, next_request)


def figures_of(cell: Cell, times: Mapping[str, Times]) -> Iterator[Figure]:
    ours, bare = times[OURS], times[MATCH]
    yield Figure(f"recall, {cell.name}", ours.alone.recall, "", goal=">= 0.99")
    yield Figure(
        f"p50 less 3 ms, {cell.name}",
        ours.alone.p50_ms - 3,
        "ms",
        bare.alone.p50_ms,
        "<= 1.35",
        "beside: rag_match",
    )
    for name in (OURS, MATCH, BASELINE):
        if name in times:
            yield Figure(f"p50, {cell.name}, {name}", times[name].alone.p50_ms, "ms")
    for name in (OURS, MATCH):
        before = times[BASELINE].together.per_second if name == OURS and BASELINE in times else None
        goal = None if before is None else ">= 2.2"
        yield Figure(f"throughput, {cell.name}, {name}", times[name].together.per_second, "1/s", before, goal)


@contextmanager
def loaded(chunks: int) -> Iterator[TenantDatabase]:
    with tenant_database() as tenants:
        tenants.add(orgs_of(chunks))
        tenants.with_index()
        yield tenants


def compare(
    tenants: TenantDatabase, console: Console, baseline: Path | None, questions: int, rounds: int
) -> list[Figure]:
    measurements: list[Figure] = []
    logs = tenants.stack.folder / "logs"
    with ExitStack() as stack:
        environment = stack.enter_context(project(tenants))
        contenders = {MATCH: match(tenants.postgrest, tenants.stack.state.functions_secret)}
        for name, checkout in ((OURS, ROOT), (BASELINE, baseline)):
            if checkout:
                log = logs / f"functions-{name}.log"
                contenders[name] = search(stack.enter_context(functions(environment, checkout, log)).url)
        for cell in cells_of(tenants):
            measurements += figures_of(cell, run(cell, contenders, questions, rounds))
    return measurements


def measure(console: Console, chunks: int = CHUNKS, baseline: Path | None = None) -> list[Figure]:
    with loaded(chunks) as tenants:
        return compare(tenants, console, baseline, QUESTIONS, ROUNDS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.request_path", description=__doc__)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--baseline", type=Path, help="a checkout to compare with")
    options = parser.parse_args()
    console, machine = Console(), figures.machine()
    measured_figures = measure(console, options.chunks, options.baseline)
    figures.record("request", machine, measured_figures)
    figures.print_table("request", measured_figures, console)


if __name__ == "__main__":
    main()
