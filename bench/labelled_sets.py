"""The stack that a labelled set is measured on.

published_rankings.json, where a set has one, holds what others found in the small corpus, the first 780
documents: {"whose": {"query-id": ["corpus-id", ...]}}. The figures in docs/benchmarks.md are from Cranfield,
101 questions of 2WikiMultihopQA and 3,000 of SQuAD 2.0: not ours to give away, so not kept here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from zlib import crc32

import psycopg
from rich.console import Console

from bench.bench_stack import temporary_stack
from bench.ranking import by_best_chunk
from local.demo_corpus import ORGS
from local.seed_demo import COLLECTION, make_services, principals_of
from local.stack import Stack
from shared.calibration.labelled_sets import Item, LabelledSet
from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.models import reranking
from shared.services import Services
from shared.types import Match, Principal

ORG, READER = ORGS["halden"], "ines@halden.example"
SMALL_ORG, SMALL_READER = ORGS["brightwater"], "rosa@brightwater.example"
# How much of a corpus the published rankings are of.
SMALL = 780


@dataclass(frozen=True)
class IngestedSet:
    """A set's corpus as a user of a running stack has it; `names`: the corpus' ids by the documents';
    `small`: the small corpus in an org of its own, where there are published rankings of it;
    `database_url`: of the stack."""

    services: Services
    reader: Principal
    names: Mapping[str, str]
    chunks: int
    org_id: str = ORG
    small: "IngestedSet | None" = None
    database_url: str = ""

    def ranking(self, matches: Iterable[Match]) -> list[str]:
        """The corpus' ids of the documents, in the order of each one's best chunk."""
        return by_best_chunk(self.names[match.document_id] for match in matches)


def judged(labelled_set: LabelledSet, limit: int) -> list[Item]:
    """The questions that some document answers; of many, those whose ids hash lowest."""
    results = [item for item in labelled_set.questions if labelled_set.relevant.get(item.id)]
    chosen = {item.id for item in sorted(results, key=lambda item: crc32(item.id.encode()))[:limit]}
    return [item for item in results if item.id in chosen]


def with_neutral_titles(labelled_set: LabelledSet) -> LabelledSet:
    """The set with documents whose titles do not name their subjects, under a name of its own."""
    documents = [
        replace(item, title=f"Note {number}") for number, item in enumerate(labelled_set.documents, start=1)
    ]
    return replace(labelled_set, name=f"{labelled_set.name}_neutral", documents=documents)


@contextmanager
def ingest_set(labelled_set: LabelledSet, console: Console) -> Iterator[IngestedSet]:
    """The corpus through the real ingestion path into a temporary stack."""
    # Quality is measured, not time: a slow reranker or a rate limit is waited for.
    reranking.RERANK_SECONDS = 60
    with temporary_stack() as stack, closing(make_services(stack)) as services:
        some = labelled_set.documents[: SMALL if labelled_set.published else 0]
        small = _put(stack, services, some, SMALL_ORG, SMALL_READER, console) if some else None
        whole = _put(stack, services, labelled_set.documents, ORG, READER, console)
        yield replace(whole, small=small, database_url=stack.database_url())


def _put(
    stack: Stack, services: Services, items: Sequence[Item], org_id: str, reader: str, console: Console
) -> IngestedSet:
    """By hundreds, two of them at a time: while the database stores one, the next is embedded."""
    principal = principals_of(stack)(reader)
    documents = [
        NewDocument(item.title or item.id, item.text or item.title, external_id=item.id, lang="en")
        for item in items
    ]
    hundreds = [documents[first : first + 100] for first in range(0, len(documents), 100)]

    def put(some: Sequence[NewDocument]) -> int:
        stored = ingest_many(services.database, services.embedder, principal, COLLECTION, some)
        return sum(one.chunks for one in stored if one is not None)

    started = perf_counter()
    with ThreadPoolExecutor(2) as pool:
        chunks = sum(pool.map(put, hundreds))
    console.print(f"{len(items):,} documents, {chunks:,} chunks in {perf_counter() - started:.0f} s")
    return IngestedSet(services, principal, _names(stack, org_id), chunks, org_id)


def _names(stack: Stack, org_id: str) -> dict[str, str]:
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        connection.execute("vacuum analyze")
        rows = connection.execute("select id, external_id from rag.documents where org_id = %s", [org_id])
        return {str(document_id): name for document_id, name in rows if name is not None}
