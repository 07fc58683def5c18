"""The worker extracts documents on the real database: each once, part by part, whatever dies in between."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from shared.config import Settings
from shared.documents import collections
from shared.errors import RagError
from shared.graph.rule_extractor import extract
from shared.graph.types import Extraction
from shared.ingestion import graph_worker
from shared.ingestion.chunking.chunked_document import ChunkingConfig
from shared.ingestion.document_worker import Worker
from shared.ingestion.entities_of_chunks import extract_rows
from shared.ingestion.graph_worker import GraphWorker
from shared.ingestion.job_queue import ATTEMPTS, BatchResult, Jobs, work_until
from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.ingestion import ingest
from tests.shared.ingestion.test_document_worker import assert_due, bring
from tests.shared.ingestion.test_document_worker_killed import Killed
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, relations, state

TEXTS = (
    "Ann Lee wrote the plan.", "Bob Orr read the plan.", "Cyd Fox did not.", "Dot Kay did.",
    "Eli Moe too.",
)  # fmt: skip
NAMES = ("Ann Lee", "Bob Orr", "Cyd Fox", "Dot Kay", "Eli Moe")


@pytest.fixture
def builder(jobs: Jobs) -> GraphWorker:
    return GraphWorker(jobs)


def entities(world: World, document: str) -> list[str]:
    return [entity for _, entity in mentions(world, document)]


# -- where documents come in --------------------------------------------------------------------------


def broken(*_: object) -> None:
    raise RecursionError


def test_entities_are_extracted_during_ingestion_and_by_the_worker(
    services: Services, people: People, world: World, worker: Worker, builder: GraphWorker, home: str
):
    text = "The Billing service is owned by the Ledger Team."
    document = NewDocument("Billing service", text)
    stored = ingest(services.database, services.embedder, people.ann.principal, document)
    upload = bring(services, people.ann, home, text)
    worker.work()
    for document_id in (stored.document_id, upload["id"]):
        assert state(world, document_id) == (1, 0, 0, False, False, None)
        assert "ledger team" in entities(world, document_id)
        assert (0, "billing service", "OWNED_BY", "ledger team") in relations(world, document_id)
    assert builder.build() == BatchResult()


def test_nothing_is_extracted_with_the_graph_off(
    services: Services, people: People, world: World, worker: Worker
):
    caller, request = people.ann.principal, {"name": "off", "config": {"enable_knowledge_graph": False}}
    home = collections.create(services.database, caller, request)
    upload = bring(services, people.ann, home["id"], "The Ledger Team owns it.")
    worker.work()
    document = NewDocument("Billing", "The Ledger Team owns it.", external_id="b")
    config = ChunkingConfig.of_collection(home)
    (stored,) = ingest_many(services.database, services.embedder, caller, "off", [document], config=config)
    assert stored
    assert [graph_rows(world, one) for one in (upload["id"], stored.document_id)] == [0, 0]
    assert not config.is_graph_enabled


def test_a_text_that_breaks_the_rules_is_still_stored(
    services: Services, people: People, world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shared.ingestion.entities_of_chunks.extract", broken)
    document = NewDocument("Billing", "The Ledger Team owns it.")
    stored = ingest(services.database, services.embedder, people.ann.principal, document)
    assert stored.chunks == 1
    assert state(world, stored.document_id) == (0, 0, 0, False, False, None)


def test_a_long_document_is_extracted_in_parts():
    rows = extract_rows("Long", ["The Ledger Team owns Billing."] * 1001) or []
    names = [{name["name"] for name in row["names"]} for row in rows]
    assert names == [{"Ledger Team", "Billing"}] * 1001


# -- by the worker -------------------------------------------------------------------------------------


def test_a_long_document_is_released_for_other_workers_and_others_of_its_round_wait(
    people: People, world: World, builder: GraphWorker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(graph_worker, "CHUNKS_AT_ONCE", 2)
    monkeypatch.setattr(graph_worker, "TURN_SECONDS", -1)
    document = put(world, people.ann, *TEXTS)
    for place in (2, 4):
        assert builder.build() == BatchResult(claimed=1, postponed=1)
        assert state(world, document) == (0, place, 0, False, False, None)
    assert builder.build() == BatchResult(claimed=1, completed=1)
    assert len(mentions(world, document)) == 5
    # Without time in a round.
    monkeypatch.setattr(graph_worker, "ROUND_SECONDS", -1)
    document = put(world, people.ann, *TEXTS)
    assert builder.build() == BatchResult(claimed=1, postponed=1)
    assert state(world, document) == (0, 0, 0, False, False, None)


def test_concurrent_workers_extract_each_document_once(people: People, world: World, jobs: Jobs):
    documents = [put(world, people.ann, *TEXTS) for _ in range(16)]
    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(lambda _: GraphWorker(jobs).build(), range(12)), BatchResult())
    assert done == BatchResult(claimed=16, completed=16)
    assert {len(mentions(world, document)) for document in documents} == {5}


def test_a_database_outage_is_reported_and_ends_the_round(settings: Settings):
    away = Services(settings.model_copy(update={"supabase_url": "http://127.0.0.1:1"}))
    with pytest.raises(RagError):
        work_until(GraphWorker(Jobs(away.database, away.require_signer())).build, time.monotonic() + 1)
    away.close()


def test_a_crash_between_parts_repeats_no_stored_part(
    people: People, world: World, builder: GraphWorker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(graph_worker, "CHUNKS_AT_ONCE", 2)
    extracted: list[str] = []

    def dying(title: str, texts: Sequence[str]) -> list[Extraction]:
        if TEXTS[2] in texts and len(extracted) == 2:
            extracted.append("")
            raise Killed
        extracted.extend(texts)
        return extract(title, texts)

    monkeypatch.setattr(graph_worker, "extract", dying)
    document = put(world, people.ann, *TEXTS)
    with pytest.raises(Killed):
        builder.build()
    assert builder.build() == BatchResult(), "while the lease lasts"
    assert_due(world, {"id": document})
    assert builder.build() == BatchResult(claimed=1, completed=1)
    assert [text for text in extracted if text] == list(TEXTS)
    assert entities(world, document) == [name.lower() for name in NAMES]


@pytest.mark.parametrize("attempts", [1, ATTEMPTS])
def test_a_failing_document_is_tried_again_and_finally_given_up(
    people: People, world: World, builder: GraphWorker, monkeypatch: pytest.MonkeyPatch, attempts: int
):
    monkeypatch.setattr(graph_worker, "extract", broken)
    document = put(world, people.ann, TEXTS[0])
    world.sql("update rag.jobs set attempts = %s where id = %s", attempts - 1, document)
    is_last = attempts == ATTEMPTS
    assert builder.build() == BatchResult(claimed=1, failed=is_last, postponed=not is_last)
    assert state(world, document) == (0, 0, attempts, False, is_last, "internal_error")
    assert builder.build() == BatchResult()


@pytest.mark.parametrize("how", ["replaced", "left the org"])
def test_a_concurrent_change_to_the_document_ends_its_extraction(
    people: People, world: World, builder: GraphWorker, how: str, monkeypatch: pytest.MonkeyPatch
):
    document = put(world, people.ann, TEXTS[0], external_id="x")

    def late(title: str, texts: Sequence[str]) -> list[Extraction]:
        if how == "replaced":
            put(world, people.alf, "Zoe Ray wrote the plan.", external_id="x")
        else:
            world.sql("delete from rag.members where user_id = %s", people.ann.id)
        return extract(title, texts)

    with monkeypatch.context() as patched:
        patched.setattr(graph_worker, "extract", late)
        assert builder.build() == BatchResult(claimed=1)
    assert entities(world, document) == []
    if how == "replaced":
        assert builder.build() == BatchResult(claimed=1, completed=1)
        assert entities(world, document) == ["zoe ray"]


def test_a_locked_document_is_extracted_later_and_the_attempt_does_not_count(
    world: World, people: People, builder: GraphWorker
):
    document = put(world, people.ann, "Rosa Keane owns the kiln.")
    with psycopg.connect(world.stack.database_url()) as other:
        other.execute("select from rag.documents where id = %s for update", [document])
        assert builder.build() == BatchResult(claimed=1, postponed=1)
        other.rollback()
    waiting = "select attempts, lease, due_at > now(), error_code from rag.jobs"
    assert world.sql(waiting) == [(0, None, True, "database_busy")]
    world.sql("update rag.jobs set due_at = now()")
    assert builder.build() == BatchResult(claimed=1, completed=1)
