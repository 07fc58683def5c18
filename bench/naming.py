"""What reading documents for names costs those who bring them: the demo's documents and made-up ones
(bench/names.py) through the ingestion into an org that has 100,000 chunks, in turns with and without names;
and reading alone, beside embedding the same passages. Part of bench/graph.py."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import perf_counter
from uuid import uuid4

from rich.console import Console

from bench.figures import Figure
from bench.rows import Org
from bench.shelf import Shelf
from bench.tenants import Tenants
from local.seed_demo import demo_files, make_services
from shared.graph.extractor import extract
from shared.ingestion.ingest import DEFAULT_CHUNKING, NewDocument, chunk_and_embed
from shared.models.embeddings import embed
from shared.services import Services
from shared.types import Principal

# Documents that are there have lower numbers.
FIRST, MADE_UP = 1_000_000, 12
WARM = 3
GOAL = "<= 0.3"
NAMED, NAMELESS = "with names", "without"


@dataclass
class Taken:
    """Seconds, document by document."""

    whole: dict[str, list[float]] = field(default_factory=lambda: {NAMED: [], NAMELESS: []})
    reading: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    chunks: int = 0
    names: int = 0


def measure(made: Tenants, shelf: Shelf, console: Console) -> list[Figure]:
    user_id = made.user("naming", [shelf.org])
    caller = Principal(str(user_id), made.token(user_id))
    figures: list[Figure] = []
    with closing(make_services(made.stack)) as core:
        for what, documents in (("demo", demo(shelf.org)), ("made up", made_up(shelf))):
            taken = timed(core, caller, documents)
            found = told(what, taken)
            console.print(
                f"{what}, {len(documents)} documents: "
                + ", ".join(f"{figure.name} {figure.value:.3g} {figure.unit}" for figure in found),
                highlight=False,
            )
            figures += found
    return figures


def demo(org: Org) -> list[NewDocument]:
    return [replace(file.document, org_id=str(org.id), private=False) for file, _ in demo_files()]


def made_up(shelf: Shelf) -> list[NewDocument]:
    written = [shelf.prose.document(FIRST + number) for number in range(MADE_UP)]
    return [NewDocument(str(shelf.org.id), one.title, "\n\n".join(one.chunks), lang="en") for one in written]


def timed(core: Services, caller: Principal, documents: Sequence[NewDocument]) -> Taken:
    """Every document both ways, the first one by turns; the first few once more, before, and not counted."""
    taken = Taken()
    for turn, document in enumerate([*documents[:WARM], *documents]):
        seconds = {way: put(core, caller, document, way) for way in _turns(turn)}
        if turn < min(WARM, len(documents)):
            continue
        for way, whole in seconds.items():
            taken.whole[way].append(whole)
        _alone(core, document, taken)
    return taken


def _turns(turn: int) -> tuple[str, str]:
    return (NAMED, NAMELESS) if turn % 2 else (NAMELESS, NAMED)


def put(core: Services, caller: Principal, document: NewDocument, way: str) -> float:
    """As shared/ingest.ingest does it, under a name of its own."""
    started = perf_counter()
    cut = replace(DEFAULT_CHUNKING, graphed=way == NAMED)
    (row,) = chunk_and_embed(core.embedder, [replace(document, external_id=uuid4().hex)], cut)
    chunks = row.pop("chunks")
    own = {"org_id": document.org_id, "collection": document.collection}
    arguments = {"document": {**row, **own}, "chunks": chunks}
    core.database.call(caller, "rag_put_document", arguments, patient=True)
    return perf_counter() - started


def _alone(core: Services, document: NewDocument, taken: Taken) -> None:
    (row,) = chunk_and_embed(core.embedder, [document])
    texts = [chunk["content"] for chunk in row["chunks"]]
    started = perf_counter()
    named = extract(row["title"], texts)
    taken.reading.append(perf_counter() - started)
    started = perf_counter()
    embed(core.embedder, [f"{row['title']}\n{text}" for text in texts])
    taken.embedding.append(perf_counter() - started)
    taken.chunks += len(texts)
    taken.names += sum(len(one.names) for one in named)


def told(what: str, taken: Taken) -> list[Figure]:
    named, nameless = (1000 * sum(taken.whole[way]) / taken.chunks for way in (NAMED, NAMELESS))
    reading, embedding = (1000 * sum(some) / taken.chunks for some in (taken.reading, taken.embedding))
    note = f"{taken.names / taken.chunks:.1f} names a chunk, {taken.chunks} chunks"
    return [
        Figure(f"ingestion with names, a chunk, {what}", named, "ms", nameless, None, note),
        Figure(f"names' share of ingestion, {what}", 1 - nameless / named, "", None, GOAL),
        Figure(f"reading for names, a chunk, {what}", reading, "ms", embedding, None, "beside embedding it"),
    ]
