"""The worker, on the real database and the real embedder: an upload is found, once, or has an error."""

import gzip
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
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
from shared.errors import Conflict, NotFound, RagError, TooManyCalls
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import ATTEMPTS, BatchResult, BusyOrgs, Job, Jobs
from shared.models.embedding_roles import NO_FORMS, Roles
from shared.models.transcription import Transcriber
from shared.services import Services
from shared.types import Filters, Mode, Query
from tests.actors import LEASED, Actor, World
from tests.conftest import People
from tests.functions.app_server import proxy_to, services_with
from tests.shared import sample_files
from tests.sql import passages
from tests.stand_in_server import Reply, Request, StandIn
from tests.verify.test_run import sql_of

Row = dict[str, Any]
COMPLETED = BatchResult(claimed=1, completed=1)
FAILED = BatchResult(claimed=1, failed=1)
POSTPONED = BatchResult(claimed=1, postponed=1)
MODULE = "shared.ingestion.document_worker"


@dataclass(frozen=True)
class Member:
    """A user, who adds documents to a collection and sees what becomes of them."""

    services: Services
    world: World
    actor: Actor
    home: str

    def bring(self, text: str | bytes, **more: Any) -> Row:
        return bring(self.services, self.actor, self.home, text, **more)

    def bring_several(self, count: int) -> list[Row]:
        return [self.bring(f"{self.actor.id}: kiln number {number} is hot.") for number in range(count)]

    def bring_url(self, url: str, **more: Any) -> Row:
        address = NewUpload(b"", url=url, **more)
        return documents.add_from_url(self.services.database, self.actor.principal, self.home, address)

    def with_collection(self, name: str, **fields: Any) -> "Member":
        """The same user in a new collection."""
        collection = collections.create(
            self.services.database, self.actor.principal, {"name": name, **fields}
        )
        return replace(self, home=collection["id"])

    def row(self, row: Row) -> Row:
        return documents.get(self.services.database, self.actor.principal, row["id"])

    def status(self, row: Row) -> tuple[Any, ...]:
        """The status of a document and its error."""
        return tuple(self.row(row)[name] for name in ("status", "error_code"))

    def completed(self, rows: list[Row]) -> int:
        return sum(self.row(row)["status"] == "completed" for row in rows)

    def info(self, row: Row) -> Row:
        return dict(self.row(row)["processing_info"])

    def original(self, row: Row) -> bytes | None:
        return documents.original(self.services.database, self.actor.principal, row["id"]).data

    def texts(self) -> list[str]:
        """What a search for the kiln finds."""
        query = Query("kiln", mode=Mode.KEYWORD, filters=Filters())
        return [match.text for match in pipeline.search(self.services, self.actor.principal, query).matches]

    def jobs(self, row: Row, columns: str) -> list[tuple[Any, ...]]:
        """These columns of the document's jobs."""
        return self.world.sql(f"select {columns} from rag.jobs where document_id = %s", row["id"])

    def set_job(self, row: Row, values: str) -> None:
        self.world.sql(f"update rag.jobs set {values} where document_id = %s", row["id"])

    def chunks(self, row: Row) -> list[tuple[Any, ...]]:
        """Each chunk's text and section."""
        columns = "content, metadata ->> 'section'"
        statement = f"select {columns} from rag.chunks where document_id = %s order by ordinal"
        return self.world.sql(statement, row["id"])


def bring(services: Services, actor: Actor, collection: str, text: str | bytes, **more: Any) -> Row:
    data = text if isinstance(text, bytes) else text.encode()
    document = NewUpload(data, **{"title": "Kiln", "content_type": "text/plain", **more})
    return documents.add(services.database, actor.principal, collection, document)


@pytest.fixture
def ann(services: Services, world: World, people: People, home: str) -> Member:
    return Member(services, world, people.ann, home)


@pytest.fixture
def bob(services: Services, world: World, people: People) -> Member:
    """In a collection of the other org."""
    return Member(services, world, people.bob, "").with_collection("docs")


def test_an_unreadable_document_reports_the_reason_and_blocks_no_other(ann: Member, worker: Worker):
    good = ann.bring("The kiln is hot.")
    cobol = {"split_type": "code", "language": "cobol"}
    bad = [
        (ann.bring(b"GIF89a", filename="a.gif", title="a.gif"), "unsupported_file_type", "tesseract"),
        (ann.bring("\u200b\u00ad", title="nothing"), "empty_file", ""),
        (ann.bring("MOVE CLAY.", metadata={"split_type": "code"}), "unsupported_language", "python"),
        (ann.bring("MOVE OVEN.", metadata=cobol), "unsupported_language", "python"),
    ]
    assert worker.work() == BatchResult(claimed=5, completed=1, failed=4)
    assert ann.row(good)["status"] == "completed"
    for document, code, reason in bad:
        assert ann.status(document) == ("failed", code)
        assert reason in ann.row(document)["error_message"]
    assert worker.work() == BatchResult()


def test_no_file_of_a_kind_that_is_never_read_is_kept(ann: Member, worker: Worker):
    archive, picture = b"\x1f\x8b" + b"\0" * 100, b"GIF89a"
    never = ann.bring(archive, filename="a.bin", title="a.bin")
    later = ann.bring(picture, filename="a.gif", title="a.gif")
    assert worker.work() == BatchResult(claimed=2, failed=2)
    assert ann.row(never)["error_code"] == ann.row(later)["error_code"] == "unsupported_file_type"
    with pytest.raises(NotFound) as missing:
        ann.original(never)
    assert missing.value.code == "original_not_found"
    # An operator may install what reads a picture.
    assert ann.original(later) == picture
    # A second upload of the bytes replaces the failed document.
    again = ann.bring(archive, filename="a.bin", title="a.bin")
    ids = "select id::text from rag.documents where collection_id = %s order by created_at"
    assert [row for (row,) in ann.world.sql(ids, ann.home)] == [later["id"], again["id"]]
    assert worker.work() == FAILED
    # Another attempt needs another upload.
    ann.set_job(again, "state = 'waiting', due_at = now()")
    assert worker.work() == FAILED
    assert ann.row(again)["error_code"] == "original_gone"


def test_positions_of_passages_in_a_file_are_kept_and_a_given_title(ann: Member, worker: Worker):
    titled = ann.bring(sample_files.pdf(1), title="Ovens", filename="a.pdf")
    document = ann.bring(sample_files.pdf(3), title=None, filename="a.pdf")
    assert document["title"] == "a.pdf"
    assert worker.work() == BatchResult(claimed=2, completed=2)
    assert ann.row(titled)["title"] == "Ovens"
    row = ann.row(document)
    assert (row["title"], row["processing_info"]["service_used"]) == ("Kiln handbook", "pdf")
    rows = ann.world.sql(
        "select chunks.metadata, "
        "  chunks.content = substr(documents.content, span_start + 1, span_end - span_start) "
        "from rag.chunks join rag.documents on documents.id = chunks.document_id "
        "where document_id = %s order by ordinal",
        document["id"],
    )  # fmt: skip
    places = dict.fromkeys((metadata["page_number"], metadata["section"]) for metadata, _ in rows)
    assert list(places) == [(number, f"Chapter {number}: Firing") for number in (1, 2, 3)]
    assert all(exact for _, exact in rows)


def test_code_is_split_at_function_boundaries(ann: Member, worker: Worker):
    functions = [f"def kiln_{name}():\n" + f"    heat({name!r})\n" * 14 for name in ("one", "two", "three")]
    document = ann.bring("\n\n".join(functions), filename="kilns.py", title=None)
    worker.work()
    assert ann.info(document)["chunk_strategy"] == "code"
    assert [content for content, _ in ann.chunks(document)] == [item.strip() for item in functions]


@pytest.mark.parametrize("bound", ["READING_SECONDS", "PASSAGES_OF_A_ROUND"])
def test_documents_that_slow_or_large_ones_postpone_keep_their_place_and_attempts(
    ann: Member, worker: Worker, monkeypatch: pytest.MonkeyPatch, bound: str
):
    monkeypatch.setattr(f"{MODULE}.{bound}", 1 if "PASSAGES" in bound else -1)
    rows = ann.bring_several(3)
    assert worker.work() == BatchResult(claimed=3, completed=1, postponed=2)
    state = "select attempts, due_at = created_at, error_code from rag.jobs where state = 'waiting'"
    assert ann.world.sql(state) == [(0, True, None)] * 2
    assert worker.work() == BatchResult(claimed=2, completed=1, postponed=1)
    assert worker.work() == COMPLETED
    assert ann.completed(rows) == 3


def test_orgs_take_turns_with_one_document_each_until_one_is_alone(ann: Member, bob: Member, worker: Worker):
    rows, others = ann.bring_several(4), bob.bring_several(2)
    for done in ((1, 0), (1, 1), (2, 1), (2, 2)):
        assert worker.work() == COMPLETED
        assert (ann.completed(rows), bob.completed(others)) == done
    assert worker.work() == BatchResult(claimed=2, completed=2)


def test_an_org_that_deletes_its_documents_waits_for_its_turn(ann: Member, bob: Member, worker: Worker):
    rows = ann.bring_several(3)
    for number in range(2):
        other = bob.bring(f"Oven number {number} is hot.")
        assert worker.work() + worker.work() == BatchResult(claimed=2, completed=2)
        ann.world.sql("delete from rag.documents where id = %s", other["id"])
        assert ann.completed(rows) == number + 1


def test_an_org_with_two_claims_is_busy_until_the_second_ends():
    """The first may have been of a source or a document that was deleted."""
    busy = BusyOrgs()
    with ExitStack() as first:
        first.enter_context(busy.round(lambda _: ["org"], str))
        with busy.round(lambda orgs: orgs, str):
            first.close()
            assert busy.are_busy(0, claimed_by=time.monotonic())
    assert not busy.are_busy(0, claimed_by=time.monotonic())


def test_a_user_s_own_searches_do_not_fail_the_user_s_documents(ann: Member, jobs: Jobs):
    document = ann.bring("The kiln is hot.")

    def refuse(_: object) -> Any:
        raise TooManyCalls

    assert Worker(jobs, ann.services.embedder, embedder_of_org=refuse).work() == POSTPONED
    assert ann.row(document)["status"] == "processing"
    assert ann.jobs(document, "attempts") == [(0,)]


LAW = "Part II\n\nArticle 5\nThe kiln shall be hot.\n\nArticle 6\nIt shall be safe."


def test_a_given_document_type_decides_the_splitting(ann: Member, worker: Worker):
    legal = ann.bring(LAW, metadata={"document_type": "legal"})
    other = ann.bring(f"{LAW} Really.", metadata={"document_type": "technical"})
    sheet = ann.bring("oven,degrees\nkiln,1280\n", filename="a.csv", content_type=None)
    assert worker.work() == BatchResult(claimed=3, completed=3)
    kinds = [ann.info(document)["document_type"] for document in (legal, other, sheet)]
    assert kinds == ["legal", "general", "table"]
    assert ann.info(legal)["chunk_strategy"] == "sentences"
    assert ann.chunks(legal) == [
        ("Part II\n\nArticle 5\nThe kiln shall be hot.", "Part II > Article 5"),
        ("Article 6\nIt shall be safe.", "Part II > Article 6"),
    ]
    assert ann.chunks(other) == [(f"{LAW} Really.", None)]


def test_a_job_that_meets_a_lock_is_postponed_and_the_attempt_does_not_count(ann: Member, worker: Worker):
    """However often it happens: a user who keeps changing a document must not make its job fail."""
    document = ann.bring("The kiln is hot.")
    with psycopg.connect(ann.world.stack.database_url()) as other:
        other.execute("select from rag.documents where id = %s for no key update", [document["id"]])
        assert worker.work() == POSTPONED
        state = "state, attempts, error_code, due_at > now()"
        assert ann.jobs(document, state) == [("waiting", 0, "database_busy", True)]
        other.rollback()
    ann.set_job(document, "due_at = now()")
    assert worker.work() == COMPLETED
    jobs = ann.jobs(document, "kind, state, attempts, error_code")
    assert ("ingestion", "done", 1, None) in jobs


# -- addresses ----------------------------------------------------------------------------------------


HOT = "<p>The kiln is hot.</p>"
HTML = "text/html; charset=utf-8"


@pytest.fixture
def abroad(services: Services, jobs: Jobs) -> Worker:
    """One that may fetch from the stand-in."""
    return Worker(jobs, services.embedder, AddressPolicy(["127.0.0.1/32"]))


def page(text: str | bytes, content_type: str = HTML, **headers: str) -> Reply:
    body = text if isinstance(text, bytes) else text.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(body=body, headers={"Content-Type": content_type, **named})


def test_a_url_is_fetched_and_searchable(ann: Member, abroad: Worker, service: StandIn):
    html = "<title>All of kilns</title><h1>Kilns</h1><p>The kiln is hot.</p>"
    service.replies(page(html))
    url = f"{service.url}/kilns?a=b"
    document = ann.bring_url(url)
    assert (document["title"], document["external_id"], document["uri"]) == (url, url, url)
    assert abroad.work() == COMPLETED
    row = ann.row(document)
    assert (row["title"], row["content_type"]) == ("All of kilns", HTML)
    assert (row["size_bytes"], row["status"]) == (len(html), "completed")
    assert ann.texts() == ["# Kilns\n\nThe kiln is hot."]
    assert ann.original(document) == html.encode()


def test_a_url_of_a_page_without_content_fails(ann: Member, abroad: Worker, service: StandIn):
    pages = ["<title>Page not found</title><p>Go back.</p>", "<noscript>Enable JavaScript.</noscript>"]
    # A user may add a page that asks robots not to index it. Its header names its letters.
    letters = "<title>Печь</title><p>Печь горячая.</p>".encode("koi8-r")
    service.replies(*map(page, pages), page(letters, "text/html; charset=koi8-r", X_Robots_Tag="noindex"))
    for reason in ("does not exist", "scripts"):
        row = ann.bring_url(f"{service.url}/{reason[:4]}")
        assert abroad.work() == FAILED
        assert ann.status(row) == ("failed", "url_refused")
        assert reason in ann.row(row)["error_message"]
    row = ann.bring_url(f"{service.url}/letters")
    assert abroad.work() == COMPLETED
    assert ann.texts() == []
    assert ann.row(row)["title"] == "Печь"


def test_a_url_s_content_is_kept_until_it_changes(ann: Member, abroad: Worker, service: StandIn):
    service.replies(page(HOT), Reply(status=404, body=b""), page("<p>The kiln is cold.</p>"))
    url = f"{service.url}/{'long' * 200}"
    first = ann.bring_url(url, title="Mine")
    abroad.work()
    ann.bring_url(url, title="Mine")
    assert abroad.work() == FAILED
    assert ann.texts() == ["The kiln is hot."]
    assert ann.original(first) == HOT.encode()
    assert ann.bring_url(url, title="Mine")["id"] == first["id"]
    assert ann.texts() == ["The kiln is hot."]
    abroad.work()
    assert ann.texts() == ["The kiln is cold."]
    assert ann.row(first)["title"] == "Mine"


def test_a_url_without_a_content_type_is_parsed_by_its_name_or_content(
    ann: Member, abroad: Worker, service: StandIn
):
    service.replies(page("# Kilns", ""), page("The kiln is hot.", ""))
    named = ann.bring_url(f"{service.url}/a%0Ab.md")
    assert abroad.work() == COMPLETED
    row = ann.row(named)
    assert (row["filename"], row["content_type"], row["title"]) == ("a b.md", None, "Kilns")
    unnamed = ann.bring_url(f"{service.url}/kiln")
    assert abroad.work() == COMPLETED
    assert ann.info(unnamed)["service_used"] == "text"


def test_urls_of_the_same_content_are_one_document(ann: Member, abroad: Worker, service: StandIn):
    service.replies(page(HOT))
    first, second = ann.bring_url(f"{service.url}/a"), ann.bring_url(f"{service.url}/b")
    assert abroad.work() == BatchResult(claimed=2, completed=1, failed=1)
    assert ann.row(first)["status"] == "completed"
    assert ann.row(second)["error_code"] == "duplicate_document"
    with pytest.raises(Conflict) as refused:
        ann.bring(HOT)
    assert refused.value.details["document_id"] == first["id"]
    # Unchanged, it is no duplicate of itself. Nor can it be added until it is fetched anew.
    ann.bring_url(f"{service.url}/a")
    with pytest.raises(Conflict):
        ann.bring(HOT)
    assert abroad.work() == COMPLETED
    assert ann.row(first)["error_code"] is None


def test_jobs_are_processed_in_order_of_their_due_time(ann: Member, jobs: Jobs):
    """Whatever order the table has: the last that ann brought is due first here."""
    rows = [ann.bring_url(f"https://a.example/{number}") for number in range(8)]
    for late, row in enumerate(rows):
        ann.set_job(row, f"due_at = now() - make_interval(mins => {late})")
    document_of = "select document_id::text from rag.jobs where id = %s"
    claimed = [ann.world.sql(document_of, job.id)[0][0] for job in jobs.claim("ingestion", 8)]
    assert claimed == [row["id"] for row in rows[::-1]]


def test_an_unfetchable_or_unreadable_url_reports_the_reason(
    ann: Member, people: People, abroad: Worker, service: StandIn
):
    ann.world.tier(people.acme, file_bytes=200)
    large = HOT.encode() * 20
    # The limit of the tier holds for the uncompressed size.
    compressed = gzip.compress(large)
    assert len(compressed) < 200 < len(large)
    cases = {
        "not there": (Reply(status=404, body=b""), "url_refused"),
        "not what it says": (page("GIF89a"), "unsupported_file_type"),
        "no text": (page("\0\1", "text/plain"), "not_text"),
        "inside": (Reply(status=302, body=b"", headers={"Location": "http://169.254.169.254/"}),
         "url_not_allowed"),
        "large": (page(large), "file_too_large"),
        "large if unpacked": (page(compressed, Content_Encoding="gzip"), "file_too_large"),
    }  # fmt: skip
    service.replies(*(reply for reply, _ in cases.values()))
    for case, (_, code) in cases.items():
        document = ann.bring_url(f"{service.url}/{case.replace(' ', '-')}")
        assert abroad.work() == FAILED
        assert (case, ann.row(document)["error_code"]) == (case, code)


def test_a_busy_url_is_retried_after_its_pause(ann: Member, abroad: Worker, service: StandIn):
    service.replies(Reply(status=429, body=b"", headers={"Retry-After": "3000"}), page(HOT))
    document = ann.bring_url(service.url)
    assert abroad.work() == POSTPONED
    assert ann.jobs(document, "due_at > now() + interval '2900 s'") == [(True,)]
    assert ann.status(document) == ("processing", "url_unreachable")
    assert_due(ann.world, document)
    assert abroad.work() == COMPLETED


def test_a_permanently_unresponsive_url_announces_no_further_attempt(ann: Member, abroad: Worker):
    document = ann.bring_url("http://127.0.0.1:1/")
    ann.set_job(document, f"attempts = {ATTEMPTS - 1}")
    assert abroad.work() == FAILED
    ended = ann.row(document)
    assert ended["status"] == "failed"
    assert ended["error_message"] == "The address could not be reached. Check it, or try again later."


def test_an_internal_url_is_refused_even_if_inserted_in_sql(ann: Member, worker: Worker, service: StandIn):
    """Straight through PostgREST: the worker is the first to check it."""
    document = {"title": "a page", "url": f"{service.url}/page"}
    answer = ann.actor.rpc("rag_add_document", {"collection_id": ann.home, "document": document})
    assert answer.status_code == 200, answer.text
    assert worker.work() == FAILED
    assert ann.row(answer.json()[0])["error_code"] == "url_not_allowed"
    assert service.requests == []


# -- faults -------------------------------------------------------------------------------------------


class LimitedEmbedder:
    """An embeddings endpoint that accepts `limit` passages, then none until `renew`; in one request at most
    `most`."""

    def __init__(self, service: StandIn) -> None:
        self.accepted: list[list[str]] = []
        self.most = 64
        self.limit = self._left = 20
        service.replies(Reply(json=self._reply))

    @property
    def passages(self) -> list[str]:
        return [passage for batch in self.accepted for passage in batch]

    def renew(self) -> None:
        self._left = self.limit

    def _reply(self, request: Request) -> Any:
        if not request.path.endswith("/embeddings"):
            return Reply(status=404, json={})
        texts = request.json["input"]
        if len(texts) > min(self._left, self.most):
            error = {"error": {"message": "Rate limit reached for requests"}}
            return Reply(status=429, headers={"Retry-After": "1800"}, json=error)
        self._left -= len(texts)
        self.accepted.append(texts)
        return {"data": [{"index": index, "embedding": [1.0] * 1536} for index in range(len(texts))]}


Limited = tuple[LimitedEmbedder, Worker]


@pytest.fixture
def remote(settings: Settings, service: StandIn) -> Iterator[Worker]:
    """A worker whose embedder is the stand-in."""
    changes = {"openai_api_key": SecretStr("sk-none"), "rag_embedding_url": f"{service.url}/v1"}
    with closing(Services(settings.model_copy(update=changes))) as deployed:
        yield Worker(Jobs(deployed.database, deployed.require_signer()), deployed.embedder)


@pytest.fixture
def limited(remote: Worker, service: StandIn, monkeypatch: pytest.MonkeyPatch) -> Limited:
    """A worker with that endpoint, which embeds two passages at once."""
    monkeypatch.setattr(f"{MODULE}.EMBEDDED_AT_ONCE", 2)
    return LimitedEmbedder(service), remote


def bring_chunks(member: Member, count: int) -> Row:
    """A document of so many chunks."""
    member = member.with_collection("small chunks", config={"chunk_size": 64, "chunk_overlap": 0})
    return member.bring("\n\n".join(f"The kiln {number} is {'very ' * 50}hot." for number in range(count)))


def test_an_embedder_outage_postpones_documents(
    ann: Member, worker: Worker, remote: Worker, service: StandIn
):
    document = ann.bring("The kiln is hot.")
    service.replies(Reply(status=400, json={"error": {"message": "no"}}))
    assert remote.work() == POSTPONED
    waiting = ann.row(document)
    assert (waiting["status"], waiting["attempts"]) == ("processing", 1)
    assert worker.work() == BatchResult(), "not before its time"
    assert_due(ann.world, document)
    assert worker.work() == COMPLETED
    assert ann.row(document)["error_code"] is None


def test_a_document_continues_after_its_embedder_s_limit(ann: Member, limited: Limited):
    """Eighty passages where twenty are accepted before each pause: each passage is embedded once."""
    endpoint, worker = limited
    document = bring_chunks(ann, 80)
    for _ in range(3):
        assert worker.work() == POSTPONED
        row = ann.row(document)
        assert (row["status"], row["attempts"]) == ("processing", 0)
        # Not before the endpoint accepts requests again.
        assert ann.jobs(document, "due_at > now() + interval '25 minutes'") == [(True,)]
        assert_due(ann.world, document)
        endpoint.renew()
    assert worker.work() == COMPLETED
    assert len(endpoint.accepted) == 40
    assert len({*endpoint.passages}) == len(endpoint.passages) == ann.row(document)["chunk_count"] == 80
    assert ann.jobs(document, "count(embeddings)") == [(0,)]


def test_a_document_ends_although_its_embedder_accepts_no_whole_batch(
    ann: Member, limited: Limited, monkeypatch: pytest.MonkeyPatch
):
    """It accepts five passages, where the first attempt sends all 24."""
    monkeypatch.setattr(f"{MODULE}.EMBEDDED_AT_ONCE", 64)
    endpoint, worker = limited
    endpoint.limit = 5
    document = bring_chunks(ann, 24)
    for _ in range(30):
        endpoint.renew()
        if worker.work().completed:
            break
        assert_due(ann.world, document)
    assert ann.row(document)["status"] == "completed"
    assert len({*endpoint.passages}) == len(endpoint.passages) == 24


def test_batches_grow_until_one_is_refused(ann: Member, limited: Limited, monkeypatch: pytest.MonkeyPatch):
    """As after an outage of an endpoint that accepts at most 16 passages in a request."""
    monkeypatch.setattr(f"{MODULE}.EMBEDDED_AT_ONCE", 64)
    endpoint, worker = limited
    endpoint.limit, endpoint.most = 1000, 16
    endpoint.renew()
    ann.set_job(bring_chunks(ann, 80), "attempts = 4")
    assert worker.work().completed == 1
    assert [len(batch) for batch in endpoint.accepted] == [4, 8, 16, 16, 16, 16, 4]


def test_the_last_attempt_is_followed_by_another_after_progress(ann: Member, limited: Limited):
    endpoint, worker = limited
    document = bring_chunks(ann, 24)
    for _ in range(2):
        # Each claim begins the last attempt.
        ann.set_job(document, f"attempts = {ATTEMPTS - 1}")
        result = worker.work()
        endpoint.renew()
        if result.postponed:
            assert (ann.row(document)["status"], ann.row(document)["attempts"]) == ("processing", 0)
            assert_due(ann.world, document)
    assert result == COMPLETED


def test_other_passages_are_embedded_from_the_first_one(ann: Member, limited: Limited):
    """As of a page that differs at each attempt. Such attempts count."""
    endpoint, worker = limited
    document = bring_chunks(ann, 24)
    for attempts in (0, 1, 2):
        assert worker.work() == POSTPONED
        assert ann.row(document)["attempts"] == attempts
        ann.set_job(document, "passages_hash = repeat('0', 64)")
        assert_due(ann.world, document)
        endpoint.renew()
    # The third attempt begins with a batch of one passage, after one without progress.
    passages = endpoint.passages
    assert len(passages) == 59
    assert passages[:19] == passages[20:39] == passages[40:]


def assert_due(world: World, row: Row) -> None:
    """Let the pause, or the lease, be over."""
    rows = world.sql(
        "update rag.jobs set due_at = now() where document_id = %s and due_at > now() "
        "and due_at < now() + interval '1 hour' returning 1",
        row["id"],
    )
    assert rows == [(1,)]


def test_a_permanently_failing_document_ends(ann: Member, jobs: Jobs):
    document = ann.bring("The kiln is hot.")
    ann.set_job(document, f"attempts = {ATTEMPTS - 2}")
    broken = Worker(jobs, Broken())
    assert broken.work() == POSTPONED
    assert_due(ann.world, document)
    assert broken.work() == FAILED
    assert ann.status(document) == ("failed", "internal_error")


class Broken:
    """An embedder with an unexpected fault."""

    model, forms, remote = "all-MiniLM-L6-v2", NO_FORMS, False
    window, passage_tokens = 256, 128

    def embed(self, texts: object, role: Roles, *, background: bool = False) -> list[list[float]]:
        raise RagError(log_reason="broken")

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def test_concurrent_workers_process_each_document_once(ann: Member, jobs: Jobs):
    def work(_: int) -> BatchResult:
        return Worker(jobs, ann.services.embedder).work(3)

    rows = ann.bring_several(16)
    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(work, range(12)), BatchResult())
    assert done == BatchResult(claimed=16, completed=16)
    assert [len(ann.chunks(row)) for row in rows] == [1] * 16
    ends = "select distinct attempts, state from rag.jobs where kind = 'ingestion' and document_id = any "
    assert ann.world.sql(f"{ends}(%s::uuid[])", [row["id"] for row in rows]) == [(1, "done")]


def test_a_dead_worker_s_job_is_done_by_another_with_the_only_valid_lease(
    ann: Member, jobs: Jobs, worker: Worker
):
    document = ann.bring("The kiln is hot.")
    (dead,) = jobs.claim("ingestion", 1)
    assert worker.work() == BatchResult(), "while the lease lasts"
    assert_due(ann.world, document)
    assert worker.work() == COMPLETED
    for function, arguments in LEASED.items():
        with pytest.raises(Conflict) as late:
            jobs.call(dead, function, arguments)
        assert late.value.code == "lease_lost"
    assert ann.texts() == ["The kiln is hot."]


@pytest.fixture
def indexings(world: World) -> Iterator[Callable[[], int]]:
    """The number of rows that the keyword index has inserted so far."""
    world.sql("""
        create sequence public.indexings;
        create function public.count_indexing() returns trigger
        language plpgsql security definer set search_path = ''
        as 'begin perform nextval(''public.indexings''); return new; end';
        create trigger count_indexing before insert on rag.document_terms
          for each row execute function public.count_indexing();
        select nextval('public.indexings');
    """)
    yield lambda: int(world.sql("select last_value from public.indexings")[0][0])
    world.sql("drop function public.count_indexing() cascade; drop sequence public.indexings")


def test_a_document_with_another_title_is_indexed_once(
    ann: Member, worker: Worker, indexings: Callable[[], int]
):
    """Its former passages are not indexed again for the new title before they are deleted."""
    for number, title in enumerate(("Kiln one", "Kiln two"), start=1):
        text = f"# {title}\n\nThe kiln is hot."
        document = ann.bring(text, title=None, content_type="text/markdown", external_id="kiln")
        assert worker.work() == COMPLETED
        assert ann.row(document)["title"] == title
        assert indexings() == 1 + number


def test_an_upload_of_a_user_who_left_fails_and_an_admin_runs_it_again(
    ann: Member, people: People, worker: Worker
):
    """Jobs run with the rights of the user who added them, and a former member adds nothing."""
    document = ann.bring("The kiln is hot.")
    ann.world.sql("delete from rag.members where user_id = %s", people.ann.id)
    for _ in range(16):
        assert worker.work() == BatchResult(claimed=1)
        assert_due(ann.world, document)
    assert worker.work() == BatchResult()
    assert ann.chunks(document) == []
    ((job, code),) = ann.jobs(document, "id::text, error_code")
    assert code == "processing_failed"
    assert people.ada.rpc("rag_retry_jobs", {"job_ids": [job]}).json() == [job]
    assert worker.work() == COMPLETED


def test_no_lease_ends_while_its_worker_converts_and_embeds_slowly(
    ann: Member, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
):
    """Transcription and embedding take 200 seconds for each of three documents; a lease lasts 300."""
    for number in range(3):
        ann.bring(b"ID3\x03 %d" % number, content_type="audio/mpeg")
    now = 0.0
    claimed: list[list[Job]] = []

    def take_long() -> None:
        nonlocal now
        now += 200
        ann.world.sql("update rag.jobs set due_at = due_at - interval '200 seconds'")
        claimed.append(jobs.claim("ingestion", 8))

    class SlowTranscriber(Transcriber):
        def text(self, data: bytes, filename: str) -> str:
            take_long()
            return "The kiln is hot."

    class SlowEmbedder(Broken):
        def embed(self, texts: object, role: Roles, *, background: bool = False) -> list[list[float]]:
            take_long()
            return [[1.0]]

    monkeypatch.setattr(f"{MODULE}.EMBEDDED_AT_ONCE", 1)
    monkeypatch.setattr("shared.ingestion.job_queue.time", SimpleNamespace(monotonic=lambda: now))
    with closing(OpenAI(api_key="unused")) as client:
        slow = Worker(jobs, SlowEmbedder(), transcriber=SlowTranscriber(client, "whisper-1", 1))
        assert slow.work() == BatchResult(claimed=3, completed=3)
    assert claimed == [[]] * 6, "another worker gets none of them"


def test_opening_a_job_renews_its_lease_and_writes_its_step(
    ann: Member, jobs: Jobs, abroad: Worker, service: StandIn
):
    """A job that waited for others of its round has a whole lease for its download and its conversion."""
    service.replies(page(HOT))
    rows = [ann.bring("The kiln is hot."), ann.bring_url(service.url)]
    text, address = jobs.claim("ingestion", 2)
    steps: list[tuple[Row, Callable[[], object], str]] = [
        (rows[0], lambda: abroad._load(text), "converting"),
        (rows[1], lambda: jobs.call(address, "rag_open_job", {}), "fetching"),
        (rows[1], lambda: jobs.call(address, "rag_store_content", LEASED["rag_store_content"]), "converting"),
    ]
    for row, call, step in steps:
        ann.set_job(row, "due_at = now() + interval '100 seconds'")
        call()
        assert ann.jobs(row, "step, due_at > now() + interval '200 seconds'") == [(step, True)]


def test_a_small_document_costs_three_calls_and_a_large_one_reports_its_steps(
    ann: Member, settings: Settings, no_jobs: None, service: StandIn, monkeypatch: pytest.MonkeyPatch
):
    """Before, each of these had three reports more."""
    # A slow machine renews leases, too.
    monkeypatch.setattr("shared.ingestion.job_queue.time", SimpleNamespace(monotonic=lambda: 0.0))
    service.replies(page(HOT))
    networks = AddressPolicy(["127.0.0.1/32"])
    with (
        proxy_to(settings.supabase_url) as (address, calls),
        services_with(settings, supabase_url=address) as services,
    ):
        worker = Worker(Jobs(services.database, services.require_signer()), services.embedder, networks)

        def calls_of_a_round() -> str:
            before = len(calls)
            assert worker.work() == COMPLETED
            return " ".join(path.rpartition("/rag_")[2] for path in calls[before:])

        ann.bring("The kiln is hot.")
        assert calls_of_a_round() == "claim_jobs open_job complete_job"
        ann.bring_url(service.url)
        assert calls_of_a_round() == "claim_jobs open_job store_content complete_job"
        # More passages than are embedded at once.
        short = ann.with_collection("short", config={"chunk_size": 32, "chunk_overlap": 0})
        short.bring("The kiln is hot today and will be tomorrow. " * 200)
        assert calls_of_a_round() == "claim_jobs open_job extend_job extend_job complete_job"


@pytest.mark.parametrize("after", ["claim", "open"])
def test_a_document_deleted_during_processing_stays_deleted(
    ann: Member, jobs: Jobs, worker: Worker, after: str
):
    document = ann.bring("The kiln is hot.")
    (job,) = jobs.claim("ingestion", 1)
    read = worker._load(job) if after == "open" else None
    documents.delete(ann.services.database, ann.actor.principal, document["id"])
    with pytest.raises(Conflict):
        worker._store(read, [[1.0] * 1536], None) if read else worker._load(job)
    assert ann.chunks(document) == ann.jobs(document, "id") == []


def test_a_document_has_its_newest_readable_version(ann: Member, jobs: Jobs, worker: Worker):
    ann.bring("The kiln is warm.", external_id="kiln")
    (job,) = jobs.claim("ingestion", 1)
    late = worker._load(job)
    ann.bring("The kiln is hot.", external_id="kiln")
    with pytest.raises(Conflict):
        worker._store(late, [[1.0] * 1536], None)
    worker.work()
    assert ann.texts() == ["The kiln is hot."]
    unreadable = ann.bring(b"%PDF-", external_id="kiln")
    worker.work()
    assert ann.row(unreadable)["status"] == "failed"
    assert ann.texts() == ["The kiln is hot."]


def test_the_collection_s_chunking_settings_apply_within_the_embedder_s_window(ann: Member, worker: Worker):
    text = " ".join(f"Kiln number {number} is hot today and will be tomorrow." for number in range(40))
    short = ann.with_collection("short", config={"chunk_size": 32, "chunk_overlap": 0}).bring(text)
    long = ann.with_collection("long", config={"chunk_size": 8000}).bring(f"{text} Really.")
    assert worker.work() == BatchResult(claimed=2, completed=2)
    assert ann.row(short)["chunk_count"] >= 16
    assert (ann.info(short)["chunk_size"], ann.info(short)["chunk_overlap"]) == (32, 0)
    # The title stands before each chunk.
    size = ann.info(long)["chunk_size"]
    assert 240 < size < ann.services.embedder.window
    assert ann.info(long)["chunk_overlap"] == size // 10


def test_the_documented_statement_processes_documents_again(ann: Member, people: People, worker: Worker):
    """Those with larger chunks only. Title, metadata and id stay; the passages are new."""
    (_, statement) = sql_of("operations.md", "Process stored documents again")
    long = ann.with_collection("long", config={"chunk_size": 128, "chunk_overlap": 0})
    document = long.bring("The kiln is hot today. " * 40)
    worker.work()
    change = {"document_id": document["id"], "changes": {"title": "Oven", "metadata": {"a": 1}}}
    ann.actor.rpc("rag_update_document", change)
    smaller = {"collection_id": long.home, "config": {"chunk_size": 32}}
    assert ann.actor.rpc("rag_update_collection", smaller).status_code == 200
    text = statement.replace("<org>", people.acme.id).replace("<collection>", long.home)
    ann.world.sql(text)
    assert worker.work() == BatchResult()
    before = long.row(document)
    ann.world.sql(text.replace("256", "32"))
    assert worker.work() == COMPLETED
    after = long.row(document)
    assert (before["processing_info"]["chunk_size"], after["processing_info"]["chunk_size"]) == (128, 32)
    assert (after["id"], after["title"], after["metadata"]) == (document["id"], "Oven", {"a": 1})
    assert after["chunk_count"] > before["chunk_count"]
    ann.world.sql(text.replace("256", "32"))
    assert worker.work() == BatchResult()


def test_changes_during_processing_are_kept(ann: Member, people: People, worker: Worker):
    document = ann.bring("The kiln is hot.", metadata={"author": "Ann"})
    alf = people.alf.principal
    documents.update(ann.services.database, alf, document["id"], "Ovens", {"state": "open"})
    worker.work()
    row = ann.row(document)
    assert (row["title"], row["metadata"], row["status"]) == ("Ovens", {"state": "open"}, "completed")
    assert ann.texts() == ["The kiln is hot."]


def test_jobs_of_dead_workers_are_processed_one_by_one(ann: Member, jobs: Jobs):
    """One of them may be what they died of."""
    rows = ann.bring_several(3)
    assert len(jobs.claim("ingestion", 3)) == 3
    for row in rows:
        assert_due(ann.world, row)
    ann.bring("A fourth kiln.")
    assert [len(jobs.claim("ingestion", 4)) for _ in range(4)] == [1, 1, 1, 1]


def test_retry_delays_double_up_to_a_limit():
    pauses = [Job("j", "o", "u", "l", attempt).pause for attempt in range(1, ATTEMPTS + 1)]
    assert pauses == [4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, None]


def test_an_unavailable_model_postpones_a_document(ann: Member, worker: Worker):
    """The deployer has to change a setting, not the user who sent the document; then it is stored."""
    document = ann.bring("The kiln is hot.")
    with passages.deployed_with(ann.world, embedding_model="former", other_embedding_models=[]):
        assert worker.work() == POSTPONED
    assert ann.status(document) == ("processing", "unknown_embedding_model")
    assert_due(ann.world, document)
    assert worker.work() == COMPLETED
