"""Cost of entity extraction during ingestion. Part of bench/graph_search.py.

The demo's documents and synthetic ones (bench/synthetic_names.py) are ingested into an org with 100,000
chunks, alternately with and without extraction; extraction alone is compared with embedding the same
passages.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import perf_counter
from uuid import uuid4

from rich.console import Console

from bench.figures import Figure
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase
from bench.text_corpus import TextCorpus
from local.seed_demo import demo_files, make_services
from shared.graph.rule_extractor import extract
from shared.ingestion.chunking.chunked_document import DEFAULT_CHUNKING
from shared.ingestion.synchronous_ingestion import NewDocument, chunk_and_embed
from shared.models.embedding_roles import Role
from shared.models.embeddings import embed
from shared.services import Services
from shared.types import Principal

# Documents that are there have lower numbers.
FIRST, SYNTHETIC = 1_000_000, 12
WARM = 3
GOAL = "<= 0.3"
NAMED, NAMELESS = "with names", "without"


@dataclass
class IngestionTimings:
    """Seconds, document by document."""

    whole: dict[str, list[float]] = field(default_factory=lambda: {NAMED: [], NAMELESS: []})
    reading: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    chunks: int = 0
    names: int = 0


def measure(tenants: TenantDatabase, corpus: TextCorpus, console: Console) -> list[Figure]:
    user_id = tenants.user("naming", [corpus.org])
    caller = Principal(str(user_id), tenants.token(user_id))
    figures: list[Figure] = []
    with closing(make_services(tenants.stack)) as services:
        for what, documents in (
            ("demo", demo_documents(corpus.org)),
            ("made up", synthetic_documents(corpus)),
        ):
            timings = time_documents(services, caller, documents)
            results = figures_of(what, timings)
            console.print(
                f"{what}, {len(documents)} documents: "
                + ", ".join(f"{figure.name} {figure.value:.3g} {figure.unit}" for figure in results),
                highlight=False,
            )
            figures += results
    return figures


def demo_documents(org: Org) -> list[NewDocument]:
    return [replace(file.document, org_id=str(org.id), private=False) for file, _ in demo_files()]


def synthetic_documents(corpus: TextCorpus) -> list[NewDocument]:
    documents = [corpus.prose.document(FIRST + number) for number in range(SYNTHETIC)]
    return [
        NewDocument(str(corpus.org.id), one.title, "\n\n".join(one.chunks), lang="en") for one in documents
    ]


def time_documents(
    services: Services, caller: Principal, documents: Sequence[NewDocument]
) -> IngestionTimings:
    """Every document both ways, the first one by turns; the first few once more, before, and not counted."""
    timings = IngestionTimings()
    for turn, document in enumerate([*documents[:WARM], *documents]):
        seconds = {method: put_document(services, caller, document, method) for method in _turns(turn)}
        if turn < min(WARM, len(documents)):
            continue
        for method, whole in seconds.items():
            timings.whole[method].append(whole)
        _time_steps(services, document, timings)
    return timings


def _turns(turn: int) -> tuple[str, str]:
    return (NAMED, NAMELESS) if turn % 2 else (NAMELESS, NAMED)


def put_document(services: Services, caller: Principal, document: NewDocument, method: str) -> float:
    """As shared/ingest.ingest does it, under a name of its own."""
    started = perf_counter()
    config = replace(DEFAULT_CHUNKING, is_graph_enabled=method == NAMED)
    (row,) = chunk_and_embed(services.embedder, [replace(document, external_id=uuid4().hex)], config)
    chunks = row.pop("chunks")
    own = {"org_id": document.org_id, "collection": document.collection}
    arguments = {"document": {**row, **own}, "chunks": chunks}
    services.database.call(caller, "rag_put_document", arguments, long_timeout=True)
    return perf_counter() - started


def _time_steps(services: Services, document: NewDocument, timings: IngestionTimings) -> None:
    (row,) = chunk_and_embed(services.embedder, [document])
    texts = [chunk["content"] for chunk in row["chunks"]]
    started = perf_counter()
    named = extract(row["title"], texts)
    timings.reading.append(perf_counter() - started)
    started = perf_counter()
    embed(services.embedder, [f"{row['title']}\n{text}" for text in texts], Role.DOCUMENT)
    timings.embedding.append(perf_counter() - started)
    timings.chunks += len(texts)
    timings.names += sum(len(one.names) for one in named)


def figures_of(what: str, timings: IngestionTimings) -> list[Figure]:
    named, nameless = (1000 * sum(timings.whole[method]) / timings.chunks for method in (NAMED, NAMELESS))
    reading, embedding = (1000 * sum(some) / timings.chunks for some in (timings.reading, timings.embedding))
    note = f"{timings.names / timings.chunks:.1f} names a chunk, {timings.chunks} chunks"
    return [
        Figure(f"ingestion with names, a chunk, {what}", named, "ms", nameless, None, note),
        Figure(f"names' share of ingestion, {what}", 1 - nameless / named, "", None, GOAL),
        Figure(f"reading for names, a chunk, {what}", reading, "ms", embedding, None, "beside embedding it"),
    ]
