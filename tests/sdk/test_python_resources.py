"""The Python SDK's resources against the real stack: ann with a key of hers, ada as an admin, bob as the
stranger."""

from collections.abc import Iterator
from typing import Any

import pytest

from mnemosyne import ConflictError, Mnemosyne, NotFoundError, PermissionDeniedError, ValidationError
from mnemosyne.models import GraphQueryResult
from shared.documents.documents import MAX_BYTES
from shared.services import Services
from tests.actors import vector
from tests.conftest import People
from tests.external_programs import run_worker
from tests.functions.app_server import proxy_to
from tests.functions.search_workspace import workspace
from tests.sdk.python_client import address_of, client_of, key_of

pytestmark = pytest.mark.usefixtures("no_jobs")


@pytest.fixture
def ann(people: People) -> Iterator[Mnemosyne]:
    with client_of(people.ann) as client:
        yield client


def test_collections_are_created_changed_and_deleted(ann: Mnemosyne, people: People):
    made = ann.collections.create("docs", description="ours", metadata={"a": 1}, config={"chunk_size": 128})
    assert (made.name, made.metadata) == ("docs", {"a": 1})
    assert (made.config.chunk_size, made.document_count) == (128, 0)
    assert made.created_at.tzinfo
    assert ann.collections.get(made.id) == made
    with pytest.raises(ConflictError) as taken:
        ann.collections.create("docs")
    assert taken.value.code == "duplicate_collection"
    changed = ann.collections.update(made.id, name="kilns")
    assert (changed.name, changed.description) == ("kilns", "ours")
    ann.collections.create("ovens", private=True)
    page = ann.collections.list(sort_by="name", order="asc", limit=1)
    assert ([each.name for each in page], len(page), page[0].id) == (["kilns"], 1, made.id)
    assert page.pagination
    assert (page.pagination.total, page.has_more) == (2, True)
    assert [each.name for each in page.auto_paging_iter()] == ["kilns", "ovens"]
    ann.documents.create_from_text(made.id, "The kiln is hot.")
    with pytest.raises(ConflictError) as entries:
        ann.collections.delete(made.id)
    assert entries.value.code == "collection_not_empty"
    with client_of(people.bob) as bob, pytest.raises(NotFoundError):
        bob.collections.delete(made.id, cascade=True)
    ann.collections.delete(made.id, cascade=True)
    with pytest.raises(NotFoundError) as gone:
        ann.collections.get(made.id)
    assert gone.value.details == {"collection_id": made.id}


def test_a_creation_before_a_lost_connection_happens_once(ann: Mnemosyne, people: People):
    with (
        proxy_to(people.ann.stack.url, lost=(0, 2, 4, 6)) as (address, requests),
        Mnemosyne(key_of(people.ann), f"{address}/api/v1") as far,
    ):
        home = far.collections.create("docs").id
        made = {
            far.documents.create(home, b"The kiln is hot.", filename="kiln.txt").id,
            far.documents.create_from_text(home, "The oven is cold.").id,
            far.documents.create_from_url(home, "https://docs.example/kilns").id,
        }
    assert len(requests) == 8
    assert [each.id for each in ann.collections.list()] == [home]
    assert {each.id for each in ann.documents.list(home)} == made
    assert len(made) == 3


def test_documents_are_added_read_and_deleted(ann: Mnemosyne, people: People, tmp_path: Any):
    home = ann.collections.create("docs").id
    file = tmp_path / "kiln.txt"
    file.write_text("The kiln is hot.")
    fields: dict[str, Any] = {"metadata": {"author": "Ann"}, "external_id": "e-1"}
    made = ann.documents.create(home, file, **fields)
    assert (made.filename, made.content_type, made.status) == ("kiln.txt", "text/plain", "processing")
    # As it is repeated after a fault: one document all the same.
    second = ann.documents.create(home, b"The kiln is hot.", filename="kiln.txt", **fields)
    assert second.id == made.id
    with run_worker(people.ann.stack):
        ready = ann.documents.wait_until_ready(made.id, timeout=120)
    assert (ready.chunk_count, ready.metadata) == (1, {"author": "Ann"})
    assert ann.documents.status(made.id).status == "completed"
    link = ann.documents.url(made.id, expires_in=60)
    assert made.id in link.url
    assert (link.expires_in, link.filename) == (60, "kiln.txt")
    assert ann.documents.update(made.id, title="Kilns").title == "Kilns"
    page = ann.documents.create_from_url(home, "https://docs.example/kilns", title="Web")
    assert ann.documents.create_from_url(home, "https://docs.example/kilns").id == page.id
    assert {each.title for each in ann.documents.list(home)} == {"Kilns", "Web"}
    assert [each.id for each in ann.documents.list(home, status="completed")] == [made.id]
    # This deployment has no storage.
    with pytest.raises(NotFoundError) as large:
        ann.documents.create(home, b"x" * (MAX_BYTES + 1))
    assert large.value.code == "storage_off"
    with client_of(people.bob) as bob, pytest.raises(NotFoundError):
        bob.documents.list(home)
    ann.documents.delete(made.id)
    with pytest.raises(NotFoundError):
        ann.documents.get(made.id)


def test_results_are_a_list_with_details_of_the_search(ann: Mnemosyne, people: People, services: Services):
    home = workspace(services, people.ann).id.removeprefix("ws_")
    chunks = ann.retrievals.retrieve(home, "Why was there a billing outage?", mode="hybrid", top_k=2)
    assert (len(chunks), chunks.mode, chunks.total_results) == (2, "hybrid", 2)
    assert [result.rank for result in chunks] == [1, 2]
    assert (chunks[0].document_metadata["title"], chunks[0].graph_sourced) == ("Billing outage", False)
    assert chunks[0].score >= chunks[1].score
    assert (chunks.graph_enhanced, chunks.graph_context) == (False, None)
    assert chunks.retrieval_metadata
    assert chunks.retrieval_metadata.considered
    graph = ann.retrievals.graph_query(home, "What has Stripe to do with billing?")
    assert isinstance(graph, GraphQueryResult)
    assert graph.mode == "graph"
    assert graph.graph_enhanced is bool(graph.entities)
    with client_of(people.bob) as bob:
        assert list(bob.retrievals.retrieve(None, "billing outage")) == []
        with pytest.raises(NotFoundError):
            bob.retrievals.retrieve(home, "billing outage")
    with pytest.raises(ValidationError) as wrong:
        ann.retrievals.retrieve(home, "billing", top_k=101)
    assert wrong.value.details["field"] == "top_k"


def test_sessions_are_listed_read_and_deleted(ann: Mnemosyne, people: People, services: Services):
    home = workspace(services, people.ann).id.removeprefix("ws_")
    for question in ("Why was there a billing outage?", "What do we eat?", "Who is on call?"):
        ann.chat.completions.create(home, [{"role": "user", "content": question}])
    page = ann.chat.sessions.list(limit=2)
    assert (len(page), page.pagination, page.has_more) == (2, None, True)
    titles = [session.title for session in page.auto_paging_iter()]
    assert titles == ["Who is on call?", "What do we eat?", "Why was there a billing outage?"]
    assert [text.role for text in ann.chat.sessions.messages(page[0].id)] == ["user", "assistant"]
    ann.chat.sessions.delete(page[0].id)
    with pytest.raises(NotFoundError):
        ann.chat.sessions.messages(page[0].id)


def test_health_is_public_stats_and_events_are_for_admins_and_orgs_are_the_caller_s(
    ann: Mnemosyne, people: People
):
    assert ann.health().services["database"] == "healthy"
    for number in range(3):
        noted = {"event": "knowledge.retrieve", "namespace": "faq", "chunks": number}
        assert people.ann.rpc("rag_record_event", noted).status_code == 204
    for refused in (ann.stats, ann.events):
        with pytest.raises(PermissionDeniedError):
            refused()
    with Mnemosyne(people.ada.token(), address_of(people.ada.stack)) as ada:
        assert ada.stats().total_collections == 0
        page = ada.events(limit=2, namespace="faq")
        assert [event.chunk_count for event in page] == [2, 1]
        assert [event.chunk_count for event in page.auto_paging_iter()] == [2, 1, 0]
        assert ada.events(event="knowledge.ingest") == []
    with Mnemosyne(people.kim.token(), address_of(people.kim.stack)) as kim:
        expected = [(org.id, org.name, "member") for org in (people.acme, people.bolt)]
        assert [(org.id, org.name, org.role) for org in kim.orgs()] == expected


def test_a_collection_s_documents_are_queued_for_extraction(ann: Mnemosyne, people: People):
    home = ann.collections.create("docs").id
    people.ann.put([vector(1)], collection="docs")
    assert ann.collections.build_graph(home).queued == 0
    assert ann.collections.build_graph(home, again=True).queued == 1
