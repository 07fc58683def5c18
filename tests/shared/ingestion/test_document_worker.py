"""The worker, on the real database and the real embedder: an upload is found, once, or has an error."""

import base64
import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from openai import OpenAI
from pydantic import SecretStr

from shared import pipeline
from shared.clients.ssrf_guard import AddressPolicy
from shared.config import Settings
from shared.documents import collections, documents
from shared.documents.documents import NewUpload
from shared.errors import Conflict, NotFound, RagError
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import ATTEMPTS, BatchResult, Job, Jobs
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.models.transcription import Transcriber
from shared.services import Services
from shared.types import Filters, Mode, Query
from tests.actors import LEASED, Actor, World
from tests.conftest import People
from tests.functions.app_server import proxy_to, services_with
from tests.shared import sample_files
from tests.sql import passages
from tests.stand_in_server import Reply, StandIn

Row = dict[str, Any]


def bring(services: Services, actor: Actor, collection: str, text: str | bytes, **more: Any) -> Row:
    data = text if isinstance(text, bytes) else text.encode()
    document = NewUpload(data, **{"title": "Kiln", "content_type": "text/plain", **more})
    return documents.add(services.database, actor.principal, collection, document)


def search_texts(services: Services, actor: Actor, text: str) -> list[str]:
    query = Query(text, mode=Mode.KEYWORD, filters=Filters())
    return [match.text for match in pipeline.search(services, actor.principal, query).matches]


def visible_row(services: Services, actor: Actor, row: Row) -> Row:
    return documents.get(services.database, actor.principal, row["id"])


def test_an_added_document_is_found_after_processing(
    services: Services, people: People, worker: Worker, home: str
):
    document = bring(
        services, people.ann, home, "The kiln becomes 1,280 degrees hot.", metadata={"author": "Ann"}
    )
    assert (document["status"], document["chunk_count"]) == ("processing", 0)
    assert search_texts(services, people.alf, "kiln") == []
    assert worker.work() == BatchResult(claimed=1, completed=1)
    row = visible_row(services, people.alf, document)
    assert (row["status"], row["chunk_count"], row["error_code"]) == ("completed", 1, None)
    assert row["content_hash"] == document["content_hash"]
    assert row["processing_info"]["service_used"] == "text"
    assert row["processing_info"]["embedding_model"] == services.embedder.model
    assert search_texts(services, people.alf, "kiln") == ["The kiln becomes 1,280 degrees hot."]
    assert search_texts(services, people.bob, "kiln") == []
    assert worker.work() == BatchResult()


def test_an_unreadable_document_reports_the_reason_and_blocks_no_other(
    services: Services, people: People, worker: Worker, home: str
):
    good = bring(services, people.ann, home, "The kiln is hot.")
    bad = bring(services, people.ann, home, b"GIF89a", filename="a.gif", title="a.gif")
    empty = bring(services, people.ann, home, "\u200b\u00ad", title="nothing")
    assert worker.work() == BatchResult(claimed=3, completed=1, failed=2)
    assert visible_row(services, people.ann, good)["status"] == "completed"
    failed = visible_row(services, people.ann, bad)
    assert (failed["status"], failed["error_code"]) == ("failed", "unsupported_file_type")
    assert "tesseract" in failed["error_message"]
    assert visible_row(services, people.ann, empty)["error_code"] == "empty_file"
    assert worker.work() == BatchResult()


def test_positions_of_passages_in_a_file_are_kept(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    document = bring(services, people.ann, home, sample_files.pdf(3), title=None, filename="a.pdf")
    assert document["title"] == "a.pdf"
    assert worker.work() == BatchResult(claimed=1, completed=1)
    row = visible_row(services, people.ann, document)
    assert (row["title"], row["processing_info"]["service_used"]) == ("Kiln handbook", "pdf")
    rows = world.sql(
        "select chunks.metadata, "
        "  chunks.content = substr(documents.content, span_start + 1, span_end - span_start) "
        "from rag.chunks join rag.documents on documents.id = chunks.document_id "
        "where document_id = %s order by ordinal",
        document["id"],
    )  # fmt: skip
    places = dict.fromkeys((metadata["page_number"], metadata["section"]) for metadata, _ in rows)
    assert list(places) == [(number, f"Chapter {number}: Firing") for number in (1, 2, 3)]
    assert all(exact for _, exact in rows)


def test_a_code_file_is_split_at_function_boundaries(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    functions = [f"def kiln_{name}():\n" + f"    heat({name!r})\n" * 14 for name in ("one", "two", "three")]
    document = bring(services, people.ann, home, "\n\n".join(functions), filename="kilns.py", title=None)
    worker.work()
    assert visible_row(services, people.ann, document)["processing_info"]["chunk_strategy"] == "code"
    cut = world.sql("select content from rag.chunks where document_id = %s order by ordinal", document["id"])
    assert [content for (content,) in cut] == [function.strip() for function in functions]


def test_slow_documents_do_not_delay_others_of_their_round(
    services: Services, people: People, worker: Worker, home: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shared.ingestion.document_worker.READING_SECONDS", -1)
    rows = [bring(services, people.ann, home, f"Kiln number {number} is hot.") for number in range(3)]
    assert worker.work() == BatchResult(claimed=3, completed=1, postponed=2)
    assert worker.work() == BatchResult(claimed=2, completed=1, postponed=1)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert {visible_row(services, people.ann, row)["status"] for row in rows} == {"completed"}


def test_a_given_title_is_kept(services: Services, people: People, worker: Worker, home: str):
    document = bring(services, people.ann, home, sample_files.pdf(1), title="Ovens", filename="a.pdf")
    worker.work()
    assert visible_row(services, people.ann, document)["title"] == "Ovens"


def places(world: World, row: Row) -> list[tuple[str, str | None]]:
    """Each chunk's text and section."""
    return world.sql(
        "select content, metadata ->> 'section' from rag.chunks where document_id = %s order by ordinal",
        row["id"],
    )


def test_code_is_split_at_function_boundaries(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    functions = [f"def kiln_{n}(clay):\n    fire = clay + {n}\n    return fire" for n in range(40)]
    fields = {"split_type": "code", "language": "python"}
    document = bring(services, people.ann, home, "\n\n\n".join(functions), metadata=fields)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert visible_row(services, people.ann, document)["processing_info"]["chunk_strategy"] == "code"
    chunks = [text for text, _ in places(world, document)]
    assert len(chunks) > 2
    assert [function for text in chunks for function in text.split("\n\n\n")] == functions


@pytest.mark.parametrize("language", [{}, {"language": "cobol"}])
def test_code_in_an_unknown_language_is_reported_and_blocks_no_other(
    services: Services, people: People, worker: Worker, home: str, language: Row
):
    good = bring(services, people.ann, home, "The kiln is hot.")
    bad = bring(services, people.ann, home, "MOVE CLAY.", metadata={"split_type": "code", **language})
    assert worker.work() == BatchResult(claimed=2, completed=1, failed=1)
    assert visible_row(services, people.ann, good)["status"] == "completed"
    failed = visible_row(services, people.ann, bad)
    assert (failed["status"], failed["error_code"]) == ("failed", "unsupported_language")
    assert "python" in failed["error_message"]


LAW = "Part II\n\nArticle 5\nThe kiln shall be hot.\n\nArticle 6\nIt shall be safe."


def test_a_given_document_type_decides_the_splitting(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    legal = bring(services, people.ann, home, LAW, metadata={"document_type": "legal"})
    other = bring(services, people.ann, home, f"{LAW} Really.", metadata={"document_type": "technical"})
    assert worker.work() == BatchResult(claimed=2, completed=2)
    info = visible_row(services, people.ann, legal)["processing_info"]
    assert (info["chunk_strategy"], info["document_type"]) == ("sentences", "legal")
    assert visible_row(services, people.ann, other)["processing_info"]["document_type"] == "general"
    assert places(world, legal) == [
        ("Part II\n\nArticle 5\nThe kiln shall be hot.", "Part II > Article 5"),
        ("Article 6\nIt shall be safe.", "Part II > Article 6"),
    ]
    assert places(world, other) == [(f"{LAW} Really.", None)]


def test_a_spreadsheet_is_detected_as_a_table(services: Services, people: People, worker: Worker, home: str):
    document = bring(
        services, people.ann, home, "oven,degrees\nkiln,1280\n", filename="a.csv", content_type=None
    )
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert visible_row(services, people.ann, document)["processing_info"]["document_type"] == "table"


def test_a_job_that_meets_a_lock_is_postponed_and_the_attempt_does_not_count(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    """However often it happens: a user who keeps changing a document must not make its job fail."""
    document = bring(services, people.ann, home, "The kiln is hot.")
    with psycopg.connect(world.stack.database_url()) as other:
        other.execute("select from rag.documents where id = %s for no key update", [document["id"]])
        assert worker.work() == BatchResult(claimed=1, postponed=1)
        state = "select state, attempts, error_code, due_at > now() from rag.jobs"
        assert world.sql(state) == [("waiting", 0, "database_busy", True)]
        other.rollback()
    world.sql("update rag.jobs set due_at = now()")
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert world.sql("select state, attempts, error_code from rag.jobs where kind = 'ingestion'") == [
        ("done", 1, None)
    ]


# -- addresses ----------------------------------------------------------------------------------------


@pytest.fixture
def site() -> Iterator[StandIn]:
    with StandIn() as server:
        yield server


@pytest.fixture
def abroad(services: Services, worker: Worker) -> Worker:
    """One that may fetch from the stand-in."""
    return Worker(
        Jobs(services.database, services.require_signer()), services.embedder, AddressPolicy(["127.0.0.1/32"])
    )


def page(text: str) -> Reply:
    return Reply(body=text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def test_a_url_is_fetched_and_searchable(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    html = "<title>All of kilns</title><h1>Kilns</h1><p>The kiln is hot.</p>"
    site.replies(page(html))
    url = f"{site.url}/kilns?a=b"
    document = documents.add_from_url(services.database, people.ann.principal, home, NewUpload(b"", url=url))
    assert (document["title"], document["external_id"], document["uri"]) == (url, url, url)
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    row = visible_row(services, people.ann, document)
    assert (row["title"], row["content_type"]) == ("All of kilns", "text/html; charset=utf-8")
    assert (row["size_bytes"], row["status"]) == (len(html), "completed")
    assert search_texts(services, people.ann, "kiln") == ["# Kilns\n\nThe kiln is hot."]
    original = people.ann.rpc("rag_get_original", {"document_id": document["id"]}).json()[0]
    assert base64.b64decode(original["bytes"]).decode() == html


def test_a_url_s_content_is_kept_until_it_changes(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    site.replies(page("<p>The kiln is hot.</p>"), Reply(status=404, body=b""))
    first = documents.add_from_url(
        services.database, people.ann.principal, home, NewUpload(b"", url=site.url)
    )
    abroad.work()
    documents.add_from_url(services.database, people.ann.principal, home, NewUpload(b"", url=site.url))
    assert abroad.work() == BatchResult(claimed=1, failed=1)
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]
    assert (
        documents.original(services.database, people.ann.principal, first["id"]).data
        == b"<p>The kiln is hot.</p>"
    )


def test_a_url_without_a_content_type_is_parsed_by_its_name(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    site.replies(Reply(body=b"# Kilns", headers={"Content-Type": ""}))
    document = documents.add_from_url(
        services.database, people.ann.principal, home, NewUpload(b"", url=f"{site.url}/a%0Ab.md")
    )
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    row = visible_row(services, people.ann, document)
    assert (row["filename"], row["content_type"], row["title"]) == ("a b.md", None, "Kilns")


def test_a_url_without_a_file_name_is_parsed_as_its_detected_type(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    site.replies(Reply(body=b"The kiln is hot.", headers={"Content-Type": ""}))
    document = documents.add_from_url(
        services.database, people.ann.principal, home, NewUpload(b"", url=f"{site.url}/kiln")
    )
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    assert visible_row(services, people.ann, document)["processing_info"]["service_used"] == "text"


def test_a_url_added_again_is_fetched_again_and_replaces_its_document(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    site.replies(page("<p>The kiln is hot.</p>"), page("<p>The kiln is cold.</p>"))
    named = NewUpload(b"", url=f"{site.url}/{'long' * 200}", title="Mine")
    first = documents.add_from_url(services.database, people.ann.principal, home, named)
    abroad.work()
    second = documents.add_from_url(services.database, people.ann.principal, home, named)
    assert second["id"] == first["id"]
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]
    abroad.work()
    assert search_texts(services, people.ann, "kiln") == ["The kiln is cold."]
    assert visible_row(services, people.ann, first)["title"] == "Mine"


HOT = "<p>The kiln is hot.</p>"


def test_urls_of_the_same_content_are_one_document(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    hot = page(HOT)
    site.replies(hot, hot)
    caller = people.ann.principal
    first, second = (
        documents.add_from_url(services.database, caller, home, NewUpload(b"", url=f"{site.url}/{name}"))
        for name in "ab"
    )
    assert abroad.work() == BatchResult(claimed=2, completed=1, failed=1)
    assert visible_row(services, people.ann, first)["status"] == "completed"
    assert visible_row(services, people.ann, second)["error_code"] == "duplicate_document"
    with pytest.raises(Conflict) as refused:
        bring(services, people.ann, home, HOT)
    assert refused.value.details["document_id"] == first["id"]


def test_jobs_are_processed_in_order_of_their_due_time(
    services: Services, people: People, world: World, no_jobs: None, home: str
):
    """Whatever order the table has: the last that ann brought is due first here."""
    caller = people.ann.principal
    ids = [
        documents.add_from_url(
            services.database, caller, home, NewUpload(b"", url=f"https://a.example/{number}")
        )["id"]
        for number in range(20)
    ]
    for late, document in enumerate(ids):
        due = "update rag.jobs set due_at = now() - make_interval(mins => %s) where document_id = %s"
        world.sql(due, late, document)
    jobs = Jobs(services.database, services.require_signer()).claim("ingestion", 20)
    claimed = [
        world.sql("select document_id::text from rag.jobs where id = %s", job.id)[0][0] for job in jobs
    ]
    assert claimed == ids[::-1]


def test_an_unchanged_url_is_not_a_duplicate_of_itself(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    hot = page(HOT)
    site.replies(hot, hot)
    for _ in range(2):
        document = documents.add_from_url(
            services.database, people.ann.principal, home, NewUpload(b"", url=site.url)
        )
        # Nor can it be added until it is fetched anew.
        if visible_row(services, people.ann, document)["chunk_count"]:
            with pytest.raises(Conflict):
                bring(services, people.ann, home, HOT)
        assert abroad.work() == BatchResult(claimed=1, completed=1)
    assert visible_row(services, people.ann, document)["error_code"] is None


def test_a_url_of_an_uploaded_content_is_reported_as_a_duplicate(
    services: Services, people: People, abroad: Worker, home: str, site: StandIn
):
    hot = page(HOT)
    site.replies(hot)
    bring(services, people.ann, home, HOT)
    document = documents.add_from_url(
        services.database, people.ann.principal, home, NewUpload(b"", url=site.url)
    )
    assert abroad.work() == BatchResult(claimed=2, completed=1, failed=1)
    assert visible_row(services, people.ann, document)["error_code"] == "duplicate_document"


def test_an_unfetchable_or_unreadable_url_reports_the_reason(
    subtests: pytest.Subtests, services: Services, people: People, abroad: Worker, home: str
):
    cases = {
        "not there": (Reply(status=404, body=b""), "url_refused"),
        "not what it says": (
            Reply(body=b"GIF89a", headers={"Content-Type": "text/html"}),
            "unsupported_file_type",
        ),
        "no text": (Reply(body=b"\0\1", headers={"Content-Type": "text/plain"}), "not_text"),
        "broken": (Reply(body=b"no", headers={"Content-Type": "application/pdf"}), "processing_failed"),
        "unknown": (Reply(body=b"\0", headers={"Content-Type": "video/mp4"}), "unsupported_file_type"),
        "inside": (
            Reply(status=302, body=b"", headers={"Location": "http://169.254.169.254/"}),
            "url_not_allowed",
        ),
    }
    for case, (reply, code) in cases.items():
        with subtests.test(case), StandIn() as site:
            site.replies(reply)
            address = NewUpload(b"", url=f"{site.url}/{case.replace(' ', '-')}")
            document = documents.add_from_url(services.database, people.ann.principal, home, address)
            assert abroad.work() == BatchResult(claimed=1, failed=1)
            assert visible_row(services, people.ann, document)["error_code"] == code


def test_the_content_of_a_url_is_limited_by_the_tier(
    services: Services, people: People, world: World, abroad: Worker, home: str, site: StandIn
):
    """The limit holds for the uncompressed size."""
    world.tier(people.acme, file_bytes=200)
    html = b"<p>The kiln is hot.</p>" * 20
    compressed = gzip.compress(html)
    assert len(compressed) < 200 < len(html)
    html_type = {"Content-Type": "text/html"}
    site.replies(
        Reply(body=html, headers=html_type),
        Reply(body=compressed, headers={**html_type, "Content-Encoding": "gzip"}),
    )
    for path in ("plain", "compressed"):
        address = NewUpload(b"", url=f"{site.url}/{path}")
        document = documents.add_from_url(services.database, people.ann.principal, home, address)
        assert abroad.work() == BatchResult(claimed=1, failed=1)
        assert visible_row(services, people.ann, document)["error_code"] == "file_too_large"


def test_an_unresponsive_url_is_retried(
    services: Services, people: People, world: World, abroad: Worker, home: str, site: StandIn
):
    site.replies(Reply(status=503, body=b""), page("<p>The kiln is hot.</p>"))
    document = documents.add_from_url(
        services.database, people.ann.principal, home, NewUpload(b"", url=site.url)
    )
    assert abroad.work() == BatchResult(claimed=1, postponed=1)
    waiting = visible_row(services, people.ann, document)
    assert (waiting["status"], waiting["error_code"]) == ("processing", "url_unreachable")
    assert_due(world, document)
    assert abroad.work() == BatchResult(claimed=1, completed=1)


def test_a_permanently_unresponsive_url_announces_no_further_attempt(
    services: Services, people: People, world: World, abroad: Worker, home: str
):
    url = "http://127.0.0.1:1/"
    document = documents.add_from_url(services.database, people.ann.principal, home, NewUpload(b"", url=url))
    world.sql("update rag.jobs set attempts = %s where document_id = %s", ATTEMPTS - 1, document["id"])
    assert abroad.work() == BatchResult(claimed=1, failed=1)
    ended = visible_row(services, people.ann, document)
    assert (ended["status"], ended["error_message"]) == (
        "failed",
        "The address could not be reached. Check it, or try again later.",
    )


def test_an_internal_url_is_refused_even_if_inserted_in_sql(
    people: People, services: Services, worker: Worker, home: str, site: StandIn
):
    """Straight through PostgREST: the worker is the first to check it."""
    document = {"title": "a page", "url": f"{site.url}/page"}
    answer = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
    assert answer.status_code == 200, answer.text
    assert worker.work() == BatchResult(claimed=1, failed=1)
    assert visible_row(services, people.ann, answer.json()[0])["error_code"] == "url_not_allowed"
    assert site.requests == []


# -- faults -------------------------------------------------------------------------------------------


def test_an_embedder_outage_postpones_documents(
    services: Services, settings: Settings, people: People, world: World, worker: Worker, home: str
):
    document = bring(services, people.ann, home, "The kiln is hot.")
    with StandIn() as service:
        service.replies(Reply(status=400, json={"error": {"message": "no"}}))
        remote = {"openai_api_key": SecretStr("sk-none"), "rag_embedding_url": f"{service.url}/v1"}
        with closing(Services(settings.model_copy(update=remote))) as deployed:
            failing = Worker(Jobs(deployed.database, deployed.require_signer()), deployed.embedder)
            assert failing.work() == BatchResult(claimed=1, postponed=1)
    waiting = visible_row(services, people.ann, document)
    assert (waiting["status"], waiting["attempts"]) == ("processing", 1)
    assert worker.work() == BatchResult(), "not before its time"
    assert_due(world, document)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert visible_row(services, people.ann, document)["error_code"] is None


def assert_due(world: World, row: Row) -> None:
    """Let the pause, or the lease, be over."""
    rows = world.sql(
        "update rag.jobs set due_at = now() where document_id = %s and due_at > now() "
        "and due_at < now() + interval '1 hour' returning 1",
        row["id"],
    )
    assert rows == [(1,)]


def test_a_permanently_failing_document_ends(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    document = bring(services, people.ann, home, "The kiln is hot.")
    broken = Worker(Jobs(services.database, services.require_signer()), Broken())
    for attempt in range(1, ATTEMPTS):
        assert broken.work() == BatchResult(claimed=1, postponed=1), attempt
        assert_due(world, document)
    assert broken.work() == BatchResult(claimed=1, failed=1)
    ended = visible_row(services, people.ann, document)
    assert (ended["status"], ended["error_code"]) == ("failed", "internal_error")


class Broken:
    """An embedder with an unexpected fault."""

    model, remote, is_fast, window, passage_tokens = "all-MiniLM-L6-v2", False, True, 256, 128

    def embed(self, texts: object, *, background: bool = False) -> list[list[float]]:
        raise RagError(log_reason="broken")

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def test_concurrent_workers_process_each_document_once(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    rows = [bring(services, people.ann, home, f"Kiln number {number} is hot.") for number in range(24)]
    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(lambda _: worker.work(3), range(16)), BatchResult())
    assert done == BatchResult(claimed=24, completed=24)
    ids = [row["id"] for row in rows]
    counted = (
        "select document_id::text, count(*) from rag.chunks where document_id = any (%s::uuid[]) group by 1"
    )
    assert dict(world.sql(counted, ids)) == dict.fromkeys(ids, 1)
    attempts = (
        "select distinct attempts, state from rag.jobs "
        "where kind = 'ingestion' and document_id = any (%s::uuid[])"
    )
    assert world.sql(attempts, ids) == [(1, "done")]


def test_a_dead_worker_s_job_is_done_by_another_with_the_only_valid_lease(
    services: Services, people: People, world: World, jobs: Jobs, worker: Worker, home: str
):
    document = bring(services, people.ann, home, "The kiln is hot.")
    (dead,) = jobs.claim("ingestion", 1)
    assert worker.work() == BatchResult(), "while the lease lasts"
    assert_due(world, document)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    for function, arguments in LEASED.items():
        with pytest.raises(Conflict) as late:
            jobs.call(dead, function, arguments)
        assert late.value.code == "lease_lost"
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]


def test_a_job_that_kills_its_workers_is_given_up(
    services: Services, people: People, world: World, jobs: Jobs, home: str
):
    document = bring(services, people.ann, home, "The kiln is hot.")
    for _ in range(16):
        assert len(jobs.claim("ingestion", 1)) == 1
        assert_due(world, document)
    assert jobs.claim("ingestion", 1) == []
    ended = visible_row(services, people.ann, document)
    assert (ended["status"], ended["error_code"]) == ("failed", "processing_failed")


def test_no_lease_ends_while_its_worker_converts_and_embeds_slowly(
    services: Services, people: People, world: World, jobs: Jobs, home: str, monkeypatch: pytest.MonkeyPatch
):
    """Transcription and embedding take 200 seconds for each of three documents; a lease lasts 300."""
    for number in range(3):
        bring(services, people.ann, home, b"ID3\x03 %d" % number, content_type="audio/mpeg")
    now = 0.0
    claimed: list[list[Job]] = []

    def take_long() -> None:
        nonlocal now
        now += 200
        world.sql("update rag.jobs set due_at = due_at - interval '200 seconds'")
        claimed.append(jobs.claim("ingestion", 8))

    class SlowTranscriber(Transcriber):
        def text(self, data: bytes, filename: str) -> str:
            take_long()
            return "The kiln is hot."

    class SlowEmbedder(Broken):
        def embed(self, texts: object, *, background: bool = False) -> list[list[float]]:
            take_long()
            return [[1.0]]

    monkeypatch.setattr("shared.ingestion.document_worker.EMBEDDED_AT_ONCE", 1)
    monkeypatch.setattr("shared.ingestion.job_queue.time", SimpleNamespace(monotonic=lambda: now))
    with closing(OpenAI(api_key="unused")) as client:
        slow = Worker(jobs, SlowEmbedder(), transcriber=SlowTranscriber(client, "whisper-1", 1))
        assert slow.work() == BatchResult(claimed=3, completed=3)
    assert claimed == [[]] * 6, "another worker gets none of them"


def test_opening_a_job_renews_its_lease_and_writes_its_step(
    services: Services, people: People, world: World, jobs: Jobs, abroad: Worker, home: str, site: StandIn
):
    """A job that waited for others of its round has a whole lease for its download and its conversion."""
    site.replies(page(HOT))
    bring(services, people.ann, home, "The kiln is hot.")
    documents.add_from_url(services.database, people.ann.principal, home, NewUpload(b"", url=site.url))
    text, address = jobs.claim("ingestion", 2)
    state = "select step, due_at > now() + interval '200 seconds' from rag.jobs where id = %s"

    def age(job: Job) -> None:
        world.sql("update rag.jobs set due_at = now() + interval '100 seconds' where id = %s", job.id)

    age(text)
    abroad._load(text)
    assert world.sql(state, text.id) == [("converting", True)]
    age(address)
    jobs.call(address, "rag_open_job", {})
    assert world.sql(state, address.id) == [("fetching", True)]
    age(address)
    jobs.call(address, "rag_store_content", {"content_hash": "0" * 64})
    assert world.sql(state, address.id) == [("converting", True)]


def test_a_small_document_costs_three_calls_and_a_large_one_reports_its_steps(
    people: People, settings: Settings, home: str, no_jobs: None, site: StandIn,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    """Before, each of these had three reports more."""
    # A slow machine renews leases, too.
    monkeypatch.setattr("shared.ingestion.job_queue.time", SimpleNamespace(monotonic=lambda: 0.0))
    site.replies(page(HOT))
    networks = AddressPolicy(["127.0.0.1/32"])
    with (
        proxy_to(settings.supabase_url) as (address, calls),
        services_with(settings, supabase_url=address) as services,
    ):
        worker = Worker(Jobs(services.database, services.require_signer()), services.embedder, networks)

        def calls_of_a_round() -> list[str]:
            before = len(calls)
            assert worker.work() == BatchResult(claimed=1, completed=1)
            return [path.rpartition("/rag_")[2] for path in calls[before:]]

        bring(services, people.ann, home, "The kiln is hot.")
        assert calls_of_a_round() == ["claim_jobs", "open_job", "complete_job"]
        documents.add_from_url(services.database, people.ann.principal, home, NewUpload(b"", url=site.url))
        assert calls_of_a_round() == ["claim_jobs", "open_job", "store_content", "complete_job"]
        bring(services, people.ann, home, "The kiln is hot today and will be tomorrow. " * 1000)
        assert calls_of_a_round() == [
            "claim_jobs", "open_job", "extend_job", "extend_job", "complete_job",
        ]  # fmt: skip


@pytest.mark.parametrize("after", ["claim", "open"])
def test_a_document_deleted_during_processing_stays_deleted(
    services: Services, people: People, world: World, jobs: Jobs, worker: Worker, home: str, after: str
):
    document = bring(services, people.ann, home, "The kiln is hot.")
    (job,) = jobs.claim("ingestion", 1)
    read = worker._load(job) if after == "open" else None
    documents.delete(services.database, people.ann.principal, document["id"])
    with pytest.raises(Conflict):
        worker._store(read, [[1.0] * 1536]) if read else worker._load(job)
    assert world.sql("select count(*) from rag.chunks where document_id = %s", document["id"]) == [(0,)]
    assert world.sql("select count(*) from rag.jobs where document_id = %s", document["id"]) == [(0,)]


def test_the_old_version_is_found_until_the_new_one_is_ready(
    services: Services, people: People, worker: Worker, home: str
):
    first = bring(services, people.ann, home, "The kiln is hot.", external_id="kiln")
    worker.work()
    second = bring(services, people.ann, home, "The kiln is cold.", external_id="kiln", title="Kiln 2")
    assert second["id"] == first["id"]
    assert second["status"] == "processing"
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]
    worker.work()
    assert search_texts(services, people.ann, "kiln") == ["The kiln is cold."]
    assert visible_row(services, people.ann, first)["title"] == "Kiln 2"


def test_an_unreadable_version_keeps_the_old_one(
    services: Services, people: People, worker: Worker, home: str
):
    bring(services, people.ann, home, "The kiln is hot.", external_id="kiln")
    worker.work()
    second = bring(services, people.ann, home, b"%PDF-", external_id="kiln")
    worker.work()
    assert visible_row(services, people.ann, second)["status"] == "failed"
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]


def test_a_document_replaced_during_processing_has_the_newest_content(
    services: Services, people: People, jobs: Jobs, worker: Worker, home: str
):
    bring(services, people.ann, home, "The kiln is hot.", external_id="kiln")
    (job,) = jobs.claim("ingestion", 1)
    late = worker._load(job)
    bring(services, people.ann, home, "The kiln is cold.", external_id="kiln")
    with pytest.raises(Conflict):
        worker._store(late, [[1.0] * 1536])
    worker.work()
    assert search_texts(services, people.ann, "kiln") == ["The kiln is cold."]


def test_a_busy_org_does_not_delay_another(services: Services, people: People, jobs: Jobs, home: str):
    for number in range(12):
        bring(services, people.ann, home, f"Kiln number {number} is hot.")
    other = collections.create(services.database, people.bob.principal, {"name": "docs"})["id"]
    last = bring(services, people.bob, other, "The kiln of Bolt.")
    claimed = jobs.claim("ingestion", 4)
    assert len(claimed) == 4
    assert [job.org_id for job in claimed].count(people.bolt.id) == 1
    assert last["org_id"] == people.bolt.id


def test_the_collection_s_chunking_settings_apply(services: Services, people: People, worker: Worker):
    request = {"name": "short", "config": {"chunk_size": 32, "chunk_overlap": 0}}
    collection = collections.create(services.database, people.ann.principal, request)["id"]
    text = " ".join(f"Kiln number {number} is hot today and will be tomorrow." for number in range(20))
    document = bring(services, people.ann, collection, text)
    worker.work()
    row = visible_row(services, people.ann, document)
    assert row["chunk_count"] >= 8
    assert (row["processing_info"]["chunk_size"], row["processing_info"]["chunk_overlap"]) == (32, 0)


def test_a_chunk_beyond_the_embedder_s_window_is_reported(services: Services, people: People, worker: Worker):
    request = {"name": "long", "config": {"chunk_size": 8000}}
    collection = collections.create(services.database, people.ann.principal, request)["id"]
    document = bring(services, people.ann, collection, "The kiln is hot today. " * 100)
    worker.work()
    info = visible_row(services, people.ann, document)["processing_info"]
    # The title stands before each.
    assert 240 < info["chunk_size"] < services.embedder.window
    assert info["chunk_overlap"] == info["chunk_size"] // 10


def test_changes_during_processing_are_kept(services: Services, people: People, worker: Worker, home: str):
    document = bring(services, people.ann, home, "The kiln is hot.", metadata={"author": "Ann"})
    caller = people.alf.principal
    documents.update(services.database, caller, document["id"], "Ovens", {"state": "open"})
    worker.work()
    row = visible_row(services, people.ann, document)
    assert (row["title"], row["metadata"], row["status"]) == (
        "Ovens",
        {"state": "open"},
        "completed",
    )
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]


def test_an_admin_adds_documents_to_a_member_s_private_collection(
    services: Services, people: People, worker: Worker
):
    request = {"name": "own", "private": True}
    own = collections.create(services.database, people.ann.principal, request)["id"]
    bring(services, people.ada, own, "The kiln is hot.")
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert search_texts(services, people.ann, "kiln") == ["The kiln is hot."]
    assert search_texts(services, people.alf, "kiln") == []


def test_a_failed_document_can_be_added_again(services: Services, people: People, worker: Worker, home: str):
    failed = bring(services, people.ann, home, b"caf\xe9")
    worker.work()
    second = bring(services, people.ann, home, b"caf\xe9")
    assert second["status"] == "processing"
    with pytest.raises(NotFound):
        visible_row(services, people.ann, failed)


def test_jobs_of_dead_workers_are_processed_one_by_one(
    services: Services, people: People, world: World, jobs: Jobs, home: str
):
    """One of them may be what they died of."""
    rows = [bring(services, people.ann, home, f"Kiln {number} is hot.") for number in range(3)]
    assert len(jobs.claim("ingestion", 3)) == 3
    for row in rows:
        assert_due(world, row)
    bring(services, people.ann, home, "A fourth kiln.")
    assert [len(jobs.claim("ingestion", 4)) for _ in range(4)] == [1, 1, 1, 1]


def test_a_synchronous_version_is_newer_than_a_pending_one(
    services: Services, people: People, worker: Worker, home: str
):
    bring(services, people.ann, home, "The kiln is hot.", external_id="kiln")
    new = NewDocument(people.acme.id, "Kiln", "The kiln is cold.", external_id="kiln", collection="docs")
    stored = ingest(services.database, services.embedder, people.ann.principal, new)
    assert worker.work() == BatchResult()
    assert search_texts(services, people.ann, "kiln") == ["The kiln is cold."]
    assert documents.get(services.database, people.ann.principal, stored.document_id)["status"] == "completed"


def test_jobs_run_with_the_rights_of_the_user_who_added_them(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    """A former member adds nothing; the job ends as one that failed too often."""
    document = bring(services, people.ann, home, "The kiln is hot.")
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert worker.work() == BatchResult(claimed=1)
    assert world.sql("select count(*) from rag.chunks where document_id = %s", document["id"]) == [(0,)]


def test_retry_delays_double_up_to_a_limit():
    pauses = [Job("j", "o", "u", "l", attempt).pause for attempt in range(1, ATTEMPTS + 1)]
    assert pauses == [4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, None]


def test_an_unavailable_model_postpones_a_document(
    services: Services, people: People, world: World, worker: Worker, home: str
):
    """The deployer has to change a setting, not the user who sent the document; then it is stored."""
    document = bring(services, people.ann, home, "The kiln is hot.")
    with passages.deployed_with(world, embedding_model="former", other_embedding_models=[]):
        assert worker.work() == BatchResult(claimed=1, postponed=1)
    waiting = visible_row(services, people.ann, document)
    assert (waiting["status"], waiting["error_code"]) == ("processing", "unknown_embedding_model")
    world.sql("update rag.jobs set due_at = now()")
    assert worker.work() == BatchResult(claimed=1, completed=1)
