"""Change of the embedding model under load: 20,000 chunks in eleven orgs, the command killed ten times.

The new model is the local one, rotated into 768 dimensions, so that the right results stay the same: those of
an exact comparison with the former vectors. Two clients search up to four times a second each. A third adds a
document a second to one of the small orgs, in which the others do not search.
"""

import os
import random
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from statistics import fmean, median
from time import perf_counter, sleep
from typing import Any

import httpx
import numpy as np
from rich.console import Console

from bench.bench_stack import UNLIMITED
from bench.figures import Figure
from bench.request_path import functions
from bench.rotated_embedder import RotatedEmbedder
from bench.synthetic_text import Prose
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from local import ROOT
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.operations.change_model import progress_of
from local.seed_demo import make_services
from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.models.embedding_roles import Role
from shared.models.embeddings import local_embedder
from shared.types import Principal

ORGS = [Org(1, 14_000, 0), *(Org(number, 600, 0) for number in range(2, 12))]
DOCUMENTS_AT_ONCE, QUESTIONS_OF_ORG, TOP_K, CLIENTS = 20, 30, 10, 2
# Seconds of the load before and after the change, between a client's searches, and between documents.
QUIET, BETWEEN_SEARCHES, BETWEEN_DOCUMENTS = 20.0, 0.25, 1.0
# A run is killed after about so many chunks.
KILLS, CHUNKS_OF_RUN = 10, (500, 1500)
VECTORS = """
select id::text, extensions.subvector(embedding::extensions.vector, 1, 384)::real[] from rag.chunks
where org_id = %s
"""
# The last chunk of a document may have few words.
LONG = "select id::text from rag.chunks where org_id = %s and token_count > 100 order by id"


@dataclass(frozen=True)
class Question:
    token: str
    text: str
    right: frozenset[str]


@dataclass
class Load:
    """Seconds and recall of the searches by phase, and what failed."""

    url: str
    questions: list[Question]
    writer: str
    phase: str = "before"
    searches: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    documents: int = 0
    failures: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> list[threading.Thread]:
        targets = [lambda client=client: self._search(client) for client in range(CLIENTS)]
        threads = [threading.Thread(target=target) for target in (*targets, self._write)]
        for thread in threads:
            thread.start()
        return threads

    def _search(self, client: int) -> None:
        draw = random.Random(client)  # noqa: S311  # not a secret
        with httpx.Client(base_url=self.url, timeout=60) as session:
            while not self.stopping.wait(BETWEEN_SEARCHES):
                question, phase, started = draw.choice(self.questions), self.phase, perf_counter()
                body = {"query_text": question.text, "top_k": TOP_K}
                response = self._send(session, "/api/rag/search", question.token, body)
                if response is not None:
                    ids = {result["chunk_id"] for result in response.json()["results"]}
                    recall = len(question.right & ids) / len(question.right)
                    self.searches[phase].append((perf_counter() - started, recall))

    def _write(self) -> None:
        prose = Prose(set())
        with httpx.Client(base_url=self.url, timeout=60) as session:
            while not self.stopping.wait(BETWEEN_DOCUMENTS):
                self.documents += 1
                document = prose.document(1_000_000 + self.documents)
                body = {"index_name": "default", "documents": [{"text": document.chunks[0]}]}
                self._send(session, "/index", self.writer, body)

    def _send(self, session: httpx.Client, path: str, token: str, body: Any) -> httpx.Response | None:
        try:
            response = session.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
        except httpx.HTTPError as error:
            self.failures.append(f"{path}: {type(error).__name__}")
            return None
        if response.status_code != 200:
            self.failures.append(f"{path}: {response.status_code} {response.text[:200]}")
            return None
        return response


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants, ExitStack() as stack:
        tenants.connection.execute("update rag.settings set embedding_model = %s", [local_embedder().model])
        for model, dimensions in ((local_embedder().model, 384), (RotatedEmbedder.model, 768)):
            tenants.connection.execute("select rag.set_dimensions(%s, %s)", [model, dimensions])
        questions, writer = _add_documents(tenants, console)
        environment = {**_environment(tenants), **stack.enter_context(_other_model(tenants))}
        log = tenants.stack.folder / "logs" / "functions.log"
        server = stack.enter_context(functions(environment, ROOT, log))
        load = Load(server.url, questions, writer)
        threads = load.run()
        try:
            sleep(QUIET)
            load.phase = "during"
            seconds = _change(tenants, environment, console)
            load.phase = "after"
            sleep(QUIET)
            load.phase = "after the worker"
            _extend_hnsw(tenants)
            load.phase = "with the new HNSW index"
            sleep(QUIET)
        finally:
            load.stopping.set()
            for thread in threads:
                thread.join()
    for failure in load.failures[:10]:
        console.print(failure)
    return [*_figures(load), Figure("the change, with its kills", seconds, "s")]


def _figures(load: Load) -> Iterator[Figure]:
    requests = sum(map(len, load.searches.values())) + load.documents
    before = load.searches["before"]
    for phase, searches in load.searches.items():
        recall, former = (fmean(recall for _, recall in rows) for rows in (searches, before))
        p50, p50_before = (1000 * median(seconds for seconds, _ in rows) for rows in (searches, before))
        yield Figure(f"recall@10 {phase}", recall, "", former, ">= 0.99", f"{len(searches):,} searches")
        yield Figure(f"p50 {phase}", p50, "ms", p50_before)
    yield Figure("failed requests", len(load.failures), "", goal="<= 0", note=f"of {requests:,}")


def _add_documents(tenants: TenantDatabase, console: Console) -> tuple[list[Question], str]:
    """The questions of all orgs but the last, and a token of a member of the last."""
    draw, prose, number = random.Random(7), Prose(set()), 0  # noqa: S311  # not a secret
    questions: list[Question] = []
    embedder, started = local_embedder(), perf_counter()
    with closing(make_services(tenants.stack)) as services:
        services.database._address = tenants.postgrest
        for org in ORGS:
            tenants.connection.execute("insert into rag.orgs (id, name) values (%s, 'Org')", [org.id])
            user = tenants.user(f"member-{org.number}", [org])
            token = tenants.token(user)
            chunks = 0
            while chunks < org.chunks:
                documents = []
                for _ in range(DOCUMENTS_AT_ONCE):
                    number += 1
                    document = prose.document(number)
                    documents.append(
                        NewDocument(str(org.id), document.title, "\n\n".join(document.chunks), str(number))
                    )
                caller = Principal(str(user), token)
                stored = ingest_many(services.database, embedder, caller, "default", documents)
                chunks += sum(document.chunks for document in stored if document)
                token = tenants.token(user)
            questions += _questions(tenants, org, token, draw)
    count = tenants.number("select count(*) from rag.chunks")
    console.print(f"{count:,.0f} chunks in {perf_counter() - started:.0f} s")
    tenants.with_index()
    return [question for question in questions if question.token != token], token


def _questions(tenants: TenantDatabase, org: Org, token: str, draw: random.Random) -> Iterator[Question]:
    """Words from the middle of a chunk, each with the ids of the nearest chunks."""
    rows = tenants.connection.execute(VECTORS, [org.id]).fetchall()
    ids, vectors = [row[0] for row in rows], np.array([row[1] for row in rows])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    long = [str(row[0]) for row in tenants.connection.execute(LONG, [org.id])]
    for chosen in draw.sample(long, QUESTIONS_OF_ORG):
        row = tenants.connection.execute("select content from rag.chunks where id = %s", [chosen]).fetchone()
        text = " ".join(str(row[0] if row else "").split()[20:35])
        (vector,) = local_embedder().embed([text], Role.DOCUMENT)
        nearest = np.argsort(-(vectors @ np.array(vector)))[:TOP_K]
        yield Question(token, text, frozenset(ids[place] for place in nearest))


def _environment(tenants: TenantDatabase) -> Mapping[str, str]:
    return {**UNLIMITED, **tenants.stack.function_environment(), "SUPABASE_URL": tenants.stack.url}


@contextmanager
def _other_model(tenants: TenantDatabase) -> Iterator[Mapping[str, str]]:
    port, log = free_port(), tenants.stack.folder / "logs" / "rotated_embedder.log"
    command = [sys.executable, "-m", "bench.served_rotated_embedder", str(port)]
    child = start(command, {"PYTHONPATH": str(ROOT)}, log)
    try:
        wait_until_ready(lambda: is_responding(f"http://127.0.0.1:{port}/v1/models"), child, log, 60)
        yield {
            "RAG_OTHER_EMBEDDING_MODEL": RotatedEmbedder.model,
            "RAG_OTHER_EMBEDDING_URL": f"http://127.0.0.1:{port}/v1",
            "RAG_OTHER_EMBEDDING_API_KEY": "none",
        }
    finally:
        child.stop()


def _change(tenants: TenantDatabase, environment: Mapping[str, str], console: Console) -> float:
    """Run the command, kill it ten times, and let it end. Returns the seconds."""
    command = [
        sys.executable, "-m", "local", "change-model", "--database", tenants.stack.database_url(),
        "--per-minute", "1000000",
    ]  # fmt: skip
    draw, started = random.Random(7), perf_counter()  # noqa: S311  # not a secret
    for _ in range(KILLS):
        with subprocess.Popen(command, env={**os.environ, **environment}, cwd=ROOT) as process:
            until = _ready(tenants) + draw.randint(*CHUNKS_OF_RUN)
            while _ready(tenants) < until:
                assert process.poll() is None, "the change ended before its last kill"
                sleep(0.2)
            process.kill()
        console.print(f"killed: {_ready(tenants):,} chunks have the new embedding")
    subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT, check=True)
    return perf_counter() - started


def _ready(tenants: TenantDatabase) -> int:
    return progress_of(tenants.connection, RotatedEmbedder.model).embedded


def _extend_hnsw(tenants: TenantDatabase) -> None:
    """As the worker inserts the tail into the HNSW index."""
    inserted: object = True
    while inserted:
        with tenants.connection.transaction():
            tenants.connection.execute("set local role rag_worker")
            (inserted,) = tenants.connection.execute("select public.rag_extend_hnsw(100)").fetchone() or (0,)
