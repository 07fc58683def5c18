"""The worker, on the real database and the real embedder: an upload is found, once, or has an error."""

import gzip
import time
from collections.abc import Iterator
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


@dataclass(frozen=True)
class Member:
    """A user, who adds documents to a collection and sees what becomes of them."""

    services: Services
    actor: Actor
    home: str

    def bring(self, text: str | bytes, **more: Any) -> Row:
        return bring(self.services, self.actor, self.home, text, **more)

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

    def info(self, row: Row) -> Row:
        return dict(self.row(row)["processing_info"])

    def original(self, row: Row) -> bytes | None:
        return documents.original(self.services.database, self.actor.principal, row["id"]).data

    def texts(self) -> list[str]:
        """What a search for the kiln finds."""
        query = Query("kiln", mode=Mode.KEYWORD, filters=Filters())
        return [match.text for match in pipeline.search(self.services, self.actor.principal, query).matches]


def bring(services: Services, actor: Actor, collection: str, text: str | bytes, **more: Any) -> Row:
    data = text if isinstance(text, bytes) else text.encode()
    document = NewUpload(data, **{"title": "Kiln", "content_type": "text/plain", **more})
    return documents.add(services.database, actor.principal, collection, document)


@pytest.fixture
def ann(services: Services, people: People, home: str) -> Member:
    return Member(services, people.ann, home)


@pytest.fixture
def alf(services: Services, people: People, home: str) -> Member:
    return Member(services, people.alf, home)


@pytest.fixture
def bob(services: Services, people: People) -> Member:
    """In a collection of the other org."""
    return Member(services, people.bob, "").with_collection("docs")


def test_an_unreadable_document_reports_the_reason_and_blocks_no_other(ann: Member, worker: Worker):
    good = ann.bring("The kiln is hot.")
    bad = [
        (ann.bring(b"GIF89a", filename="a.gif", title="a.gif"), "unsupported_file_type", "tesseract"),
        (ann.bring("\u200b\u00ad", title="nothing"), "empty_file", ""),
        (ann.bring("MOVE CLAY.", metadata={"split_type": "code"}), "unsupported_language", "python"),
        (
            ann.bring("MOVE OVEN.", metadata={"split_type": "code", "language": "cobol"}),
            "unsupported_language",
            "python",
        ),
    ]
    assert worker.work() == BatchResult(claimed=5, completed=1, failed=4)
    assert ann.row(good)["status"] == "completed"
    for document, code, reason in bad:
        failed = ann.row(document)
        assert (failed["status"], failed["error_code"]) == ("failed", code)
        assert reason in failed["error_message"]
    assert worker.work() == BatchResult()


def test_no_file_of_a_kind_that_is_never_read_is_kept(ann: Member, world: World, worker: Worker):
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
    assert [row for (row,) in world.sql(ids, ann.home)] == [later["id"], again["id"]]
    assert worker.work() == BatchResult(claimed=1, failed=1)
    # Another attempt needs another upload.
    retry = "update rag.jobs set state = 'waiting', due_at = now() where document_id = %s"
    world.sql(retry, again["id"])
    assert worker.work() == BatchResult(claimed=1, failed=1)
    assert ann.row(again)["error_code"] == "original_gone"


def test_positions_of_passages_in_a_file_are_kept(ann: Member, world: World, worker: Worker):
    document = ann.bring(sample_files.pdf(3), title=None, filename="a.pdf")
    assert document["title"] == "a.pdf"
    assert worker.work() == BatchResult(claimed=1, completed=1)
    row = ann.row(document)
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


def test_a_given_title_is_kept(ann: Member, worker: Worker):
    document = ann.bring(sample_files.pdf(1), title="Ovens", filename="a.pdf")
    worker.work()
    assert ann.row(document)["title"] == "Ovens"


def test_code_is_split_at_function_boundaries(ann: Member, world: World, worker: Worker):
    functions = [f"def kiln_{name}():\n" + f"    heat({name!r})\n" * 14 for name in ("one", "two", "three")]
    document = ann.bring("\n\n".join(functions), filename="kilns.py", title=None)
    worker.work()
    assert ann.info(document)["chunk_strategy"] == "code"
    assert [content for content, _ in places(world, document)] == [item.strip() for item in functions]


@pytest.mark.parametrize("bound", [{"READING_SECONDS": -1}, {"PASSAGES_OF_A_ROUND": 1}])
def test_documents_that_slow_or_large_ones_postpone_keep_their_place_and_attempts(
    ann: Member, world: World, worker: Worker, monkeypatch: pytest.MonkeyPatch, bound: dict[str, int]
):
    for name, value in bound.items():
        monkeypatch.setattr(f"shared.ingestion.document_worker.{name}", value)
    rows = [ann.bring(f"Kiln number {number} is hot.") for number in range(3)]
    assert worker.work() == BatchResult(claimed=3, completed=1, postponed=2)
    state = "select attempts, due_at = created_at, error_code from rag.jobs where state = 'waiting'"
    assert world.sql(state) == [(0, True, None)] * 2
    assert worker.work() == BatchResult(claimed=2, completed=1, postponed=1)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert {ann.row(row)["status"] for row in rows} == {"completed"}


def test_orgs_take_turns_with_one_document_each_until_one_is_alone(ann: Member, bob: Member, worker: Worker):
    rows = [ann.bring(f"Kiln number {number} is hot.") for number in range(4)]
    others = [bob.bring(f"Oven number {number} is hot.") for number in range(2)]
    for done in ((1, 0), (1, 1), (2, 1), (2, 2)):
        assert worker.work() == BatchResult(claimed=1, completed=1)
        completed = [
            sum(member.row(row)["status"] == "completed" for row in own)
            for member, own in ((ann, rows), (bob, others))
        ]
        assert tuple(completed) == done
    assert worker.work() == BatchResult(claimed=2, completed=2)


def test_an_org_that_deletes_its_documents_waits_for_its_turn(
    ann: Member, bob: Member, world: World, worker: Worker
):
    rows = [ann.bring(f"Kiln number {number} is hot.") for number in range(3)]
    for number in range(2):
        other = bob.bring(f"Oven number {number} is hot.")
        assert worker.work() + worker.work() == BatchResult(claimed=2, completed=2)
        world.sql("delete from rag.documents where id = %s", other["id"])
        assert [ann.row(row)["status"] for row in rows].count("completed") == number + 1


def test_an_org_with_two_claims_is_busy_until_the_second_ends():
    """The first may have been of a source or a document that was deleted."""
    busy = BusyOrgs()
    with ExitStack() as first:
        first.enter_context(busy.round(lambda _: ["org"], str))
        with busy.round(lambda orgs: orgs, str):
            first.close()
            assert busy.are_busy(0, claimed_by=time.monotonic())
    assert not busy.are_busy(0, claimed_by=time.monotonic())


def test_a_user_s_own_searches_do_not_fail_the_user_s_documents(ann: Member, worker: Worker, jobs: Jobs):
    document = ann.bring("The kiln is hot.")

    def refuse(_: object) -> Any:
        raise TooManyCalls

    hindered = Worker(jobs, ann.services.embedder, embedder_of_org=refuse)
    assert hindered.work() == BatchResult(claimed=1, postponed=1)
    assert ann.row(document)["status"] == "processing"


def places(world: World, row: Row) -> list[tuple[str, str | None]]:
    """Each chunk's text and section."""
    return world.sql(
        "select content, metadata ->> 'section' from rag.chunks where document_id = %s order by ordinal",
        row["id"],
    )


LAW = "Part II\n\nArticle 5\nThe kiln shall be hot.\n\nArticle 6\nIt shall be safe."


def test_a_given_document_type_decides_the_splitting(ann: Member, world: World, worker: Worker):
    legal = ann.bring(LAW, metadata={"document_type": "legal"})
    other = ann.bring(f"{LAW} Really.", metadata={"document_type": "technical"})
    sheet = ann.bring("oven,degrees\nkiln,1280\n", filename="a.csv", content_type=None)
    assert worker.work() == BatchResult(claimed=3, completed=3)
    kinds = [ann.info(document)["document_type"] for document in (legal, other, sheet)]
    assert kinds == ["legal", "general", "table"]
    assert ann.info(legal)["chunk_strategy"] == "sentences"
    assert places(world, legal) == [
        ("Part II\n\nArticle 5\nThe kiln shall be hot.", "Part II > Article 5"),
        ("Article 6\nIt shall be safe.", "Part II > Article 6"),
    ]
    assert places(world, other) == [(f"{LAW} Really.", None)]


def test_a_job_that_meets_a_lock_is_postponed_and_the_attempt_does_not_count(
    ann: Member, world: World, worker: Worker
):
    """However often it happens: a user who keeps changing a document must not make its job fail."""
    document = ann.bring("The kiln is hot.")
    with psycopg.connect(world.stack.database_url()) as other:
        other.execute("select from rag.documents where id = %s for no key update", [document["id"]])
        assert worker.work() == BatchResult(claimed=1, postponed=1)
        state = "select state, attempts, error_code, due_at > now() from rag.jobs"
        assert world.sql(state) == [("waiting", 0, "database_busy", True)]
        other.rollback()
    world.sql("update rag.jobs set due_at = now()")
    assert worker.work() == BatchResult(claimed=1, completed=1)
    state = "select state, attempts, error_code from rag.jobs where kind = 'ingestion'"
    assert world.sql(state) == [("done", 1, None)]


# -- addresses ----------------------------------------------------------------------------------------


HOT = "<p>The kiln is hot.</p>"


@pytest.fixture
def site(service: StandIn) -> StandIn:
    return service


@pytest.fixture
def abroad(services: Services, jobs: Jobs) -> Worker:
    """One that may fetch from the stand-in."""
    return Worker(jobs, services.embedder, AddressPolicy(["127.0.0.1/32"]))


def page(text: str) -> Reply:
    return Reply(body=text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def test_a_url_is_fetched_and_searchable(ann: Member, abroad: Worker, site: StandIn):
    html = "<title>All of kilns</title><h1>Kilns</h1><p>The kiln is hot.</p>"
    site.replies(page(html))
    url = f"{site.url}/kilns?a=b"
    document = ann.bring_url(url)
    assert (document["title"], document["external_id"], document["uri"]) == (url, url, url)
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    row = ann.row(document)
    assert (row["title"], row["content_type"]) == ("All of kilns", "text/html; charset=utf-8")
    assert (row["size_bytes"], row["status"]) == (len(html), "completed")
    assert ann.texts() == ["# Kilns\n\nThe kiln is hot."]
    assert ann.original(document) == html.encode()


def test_a_url_of_a_page_without_content_fails(ann: Member, abroad: Worker, site: StandIn):
    pages = ["<title>Page not found</title><p>Go back.</p>", "<noscript>Enable JavaScript.</noscript>"]
    # A user may add a page that asks robots not to index it. Its header names its letters.
    sent = {"Content-Type": "text/html; charset=koi8-r", "X-Robots-Tag": "noindex"}
    letters = Reply(body="<title>Печь</title><p>Печь горячая.</p>".encode("koi8-r"), headers=sent)
    site.replies(*map(page, pages), letters)
    for reason in ("does not exist", "scripts"):
        row = ann.bring_url(f"{site.url}/{reason[:4]}")
        assert abroad.work() == BatchResult(claimed=1, failed=1)
        row = ann.row(row)
        assert row["error_code"] == "url_refused"
        assert reason in row["error_message"]
    row = ann.bring_url(f"{site.url}/letters")
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    assert ann.texts() == []
    assert ann.row(row)["title"] == "Печь"


def test_a_url_s_content_is_kept_until_it_changes(ann: Member, abroad: Worker, site: StandIn):
    site.replies(page(HOT), Reply(status=404, body=b""))
    first = ann.bring_url(site.url)
    abroad.work()
    ann.bring_url(site.url)
    assert abroad.work() == BatchResult(claimed=1, failed=1)
    assert ann.texts() == ["The kiln is hot."]
    assert ann.original(first) == HOT.encode()


def test_a_url_without_a_content_type_is_parsed_by_its_name_or_content(
    ann: Member, abroad: Worker, site: StandIn
):
    untyped = {"Content-Type": ""}
    site.replies(Reply(body=b"# Kilns", headers=untyped), Reply(body=b"The kiln is hot.", headers=untyped))
    named = ann.bring_url(f"{site.url}/a%0Ab.md")
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    row = ann.row(named)
    assert (row["filename"], row["content_type"], row["title"]) == ("a b.md", None, "Kilns")
    unnamed = ann.bring_url(f"{site.url}/kiln")
    assert abroad.work() == BatchResult(claimed=1, completed=1)
    assert ann.info(unnamed)["service_used"] == "text"


def test_a_url_added_again_is_fetched_again_and_replaces_its_document(
    ann: Member, abroad: Worker, site: StandIn
):
    site.replies(page(HOT), page("<p>The kiln is cold.</p>"))
    url = f"{site.url}/{'long' * 200}"
    first = ann.bring_url(url, title="Mine")
    abroad.work()
    assert ann.bring_url(url, title="Mine")["id"] == first["id"]
    assert ann.texts() == ["The kiln is hot."]
    abroad.work()
    assert ann.texts() == ["The kiln is cold."]
    assert ann.row(first)["title"] == "Mine"


def test_urls_of_the_same_content_are_one_document(ann: Member, abroad: Worker, site: StandIn):
    site.replies(page(HOT), page(HOT))
    first, second = ann.bring_url(f"{site.url}/a"), ann.bring_url(f"{site.url}/b")
    assert abroad.work() == BatchResult(claimed=2, completed=1, failed=1)
    assert ann.row(first)["status"] == "completed"
    assert ann.row(second)["error_code"] == "duplicate_document"
    with pytest.raises(Conflict) as refused:
        ann.bring(HOT)
    assert refused.value.details["document_id"] == first["id"]


def test_jobs_are_processed_in_order_of_their_due_time(ann: Member, world: World, jobs: Jobs):
    """Whatever order the table has: the last that ann brought is due first here."""
    ids = [ann.bring_url(f"https://a.example/{number}")["id"] for number in range(20)]
    for late, document in enumerate(ids):
        due = "update rag.jobs set due_at = now() - make_interval(mins => %s) where document_id = %s"
        world.sql(due, late, document)
    document_of = "select document_id::text from rag.jobs where id = %s"
    claimed = [world.sql(document_of, job.id)[0][0] for job in jobs.claim("ingestion", 20)]
    assert claimed == ids[::-1]


def test_an_unchanged_url_is_not_a_duplicate_of_itself(ann: Member, abroad: Worker, site: StandIn):
    site.replies(page(HOT), page(HOT))
    for _ in range(2):
        document = ann.bring_url(site.url)
        # Nor can it be added until it is fetched anew.
        if ann.row(document)["chunk_count"]:
            with pytest.raises(Conflict):
                ann.bring(HOT)
        assert abroad.work() == BatchResult(claimed=1, completed=1)
    assert ann.row(document)["error_code"] is None


def test_an_unfetchable_or_unreadable_url_reports_the_reason(
    subtests: pytest.Subtests, ann: Member, abroad: Worker
):
    def typed(content_type: str, body: bytes) -> Reply:
        return Reply(body=body, headers={"Content-Type": content_type})

    inside = Reply(status=302, body=b"", headers={"Location": "http://169.254.169.254/"})
    cases = {
        "not there": (Reply(status=404, body=b""), "url_refused"),
        "not what it says": (typed("text/html", b"GIF89a"), "unsupported_file_type"),
        "no text": (typed("text/plain", b"\0\1"), "not_text"),
        "inside": (inside, "url_not_allowed"),
    }
    for case, (reply, code) in cases.items():
        with subtests.test(case), StandIn() as site:
            site.replies(reply)
            document = ann.bring_url(f"{site.url}/{case.replace(' ', '-')}")
            assert abroad.work() == BatchResult(claimed=1, failed=1)
            assert ann.row(document)["error_code"] == code


def test_the_content_of_a_url_is_limited_by_the_tier(
    ann: Member, people: People, world: World, abroad: Worker, site: StandIn
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
        document = ann.bring_url(f"{site.url}/{path}")
        assert abroad.work() == BatchResult(claimed=1, failed=1)
        assert ann.row(document)["error_code"] == "file_too_large"


def test_a_busy_url_is_retried_after_its_pause(ann: Member, world: World, abroad: Worker, site: StandIn):
    site.replies(Reply(status=429, body=b"", headers={"Retry-After": "3000"}), page(HOT))
    document = ann.bring_url(site.url)
    assert abroad.work() == BatchResult(claimed=1, postponed=1)
    pause = "select due_at > now() + interval '2900 s' from rag.jobs where document_id = %s"
    assert world.sql(pause, document["id"]) == [(True,)]
    waiting = ann.row(document)
    assert (waiting["status"], waiting["error_code"]) == ("processing", "url_unreachable")
    assert_due(world, document)
    assert abroad.work() == BatchResult(claimed=1, completed=1)


def test_a_permanently_unresponsive_url_announces_no_further_attempt(
    ann: Member, world: World, abroad: Worker
):
    document = ann.bring_url("http://127.0.0.1:1/")
    world.sql("update rag.jobs set attempts = %s where document_id = %s", ATTEMPTS - 1, document["id"])
    assert abroad.work() == BatchResult(claimed=1, failed=1)
    ended = ann.row(document)
    assert ended["status"] == "failed"
    assert ended["error_message"] == "The address could not be reached. Check it, or try again later."


def test_an_internal_url_is_refused_even_if_inserted_in_sql(
    ann: Member, people: People, worker: Worker, home: str, site: StandIn
):
    """Straight through PostgREST: the worker is the first to check it."""
    document = {"title": "a page", "url": f"{site.url}/page"}
    answer = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
    assert answer.status_code == 200, answer.text
    assert worker.work() == BatchResult(claimed=1, failed=1)
    assert ann.row(answer.json()[0])["error_code"] == "url_not_allowed"
    assert site.requests == []


# -- faults -------------------------------------------------------------------------------------------


def test_an_embedder_outage_postpones_documents(
    ann: Member, settings: Settings, world: World, worker: Worker
):
    document = ann.bring("The kiln is hot.")
    with StandIn() as service:
        service.replies(Reply(status=400, json={"error": {"message": "no"}}))
        remote = {"openai_api_key": SecretStr("sk-none"), "rag_embedding_url": f"{service.url}/v1"}
        with closing(Services(settings.model_copy(update=remote))) as deployed:
            failing = Worker(Jobs(deployed.database, deployed.require_signer()), deployed.embedder)
            assert failing.work() == BatchResult(claimed=1, postponed=1)
    waiting = ann.row(document)
    assert (waiting["status"], waiting["attempts"]) == ("processing", 1)
    assert worker.work() == BatchResult(), "not before its time"
    assert_due(world, document)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    assert ann.row(document)["error_code"] is None


class LimitedEmbedder:
    """An embeddings endpoint that accepts `limit` passages, then none until `renew`; in one request at most
    `most`."""

    def __init__(self, service: StandIn) -> None:
        self.accepted: list[list[str]] = []
        self.most = 64
        self.limit = self._left = 20
        service.replies(Reply(json=self._reply))

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


@pytest.fixture
def limited(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LimitedEmbedder, Worker]]:
    """A worker with that endpoint, which embeds two passages at once."""
    monkeypatch.setattr("shared.ingestion.document_worker.EMBEDDED_AT_ONCE", 2)
    with StandIn() as service:
        remote = {"openai_api_key": SecretStr("sk-none"), "rag_embedding_url": f"{service.url}/v1"}
        with closing(Services(settings.model_copy(update=remote))) as deployed:
            jobs = Jobs(deployed.database, deployed.require_signer())
            yield LimitedEmbedder(service), Worker(jobs, deployed.embedder)


def bring_chunks(member: Member, count: int) -> Row:
    """A document of so many chunks."""
    member = member.with_collection("small chunks", config={"chunk_size": 64, "chunk_overlap": 0})
    return member.bring("\n\n".join(f"The kiln {number} is {'very ' * 50}hot." for number in range(count)))


def test_a_document_continues_after_its_embedder_s_limit(
    ann: Member, world: World, limited: tuple[LimitedEmbedder, Worker]
):
    """Eighty passages where twenty are accepted before each pause: each passage is embedded once."""
    endpoint, worker = limited
    document = bring_chunks(ann, 80)
    for _ in range(3):
        assert worker.work() == BatchResult(claimed=1, postponed=1)
        row = ann.row(document)
        assert (row["status"], row["attempts"]) == ("processing", 0)
        # Not before the endpoint accepts requests again.
        pause = "select due_at > now() + interval '25 minutes' from rag.jobs where document_id = %s"
        assert world.sql(pause, document["id"]) == [(True,)]
        assert_due(world, document)
        endpoint.renew()
    assert worker.work() == BatchResult(claimed=1, completed=1)
    passages = [passage for batch in endpoint.accepted for passage in batch]
    assert len(endpoint.accepted) == 40
    assert len(set(passages)) == len(passages) == ann.row(document)["chunk_count"] == 80
    vectors_of_the_job = "select count(embeddings) from rag.jobs where document_id = %s"
    assert world.sql(vectors_of_the_job, document["id"]) == [(0,)]


def test_a_document_ends_although_its_embedder_accepts_no_whole_batch(
    ann: Member, world: World, limited: tuple[LimitedEmbedder, Worker], monkeypatch: pytest.MonkeyPatch
):
    """It accepts five passages, where the first attempt sends all 24."""
    monkeypatch.setattr("shared.ingestion.document_worker.EMBEDDED_AT_ONCE", 64)
    endpoint, worker = limited
    endpoint.limit = 5
    document = bring_chunks(ann, 24)
    for _ in range(30):
        endpoint.renew()
        if worker.work().completed:
            break
        assert_due(world, document)
    assert ann.row(document)["status"] == "completed"
    passages = [passage for batch in endpoint.accepted for passage in batch]
    assert len(set(passages)) == len(passages) == 24


def test_batches_grow_until_one_is_refused(
    ann: Member, world: World, limited: tuple[LimitedEmbedder, Worker], monkeypatch: pytest.MonkeyPatch
):
    """As after an outage of an endpoint that accepts at most 16 passages in a request."""
    monkeypatch.setattr("shared.ingestion.document_worker.EMBEDDED_AT_ONCE", 64)
    endpoint, worker = limited
    endpoint.limit, endpoint.most = 1000, 16
    endpoint.renew()
    document = bring_chunks(ann, 80)
    world.sql("update rag.jobs set attempts = 4 where document_id = %s", document["id"])
    assert worker.work().completed == 1
    assert [len(batch) for batch in endpoint.accepted] == [4, 8, 16, 16, 16, 16, 4]


def test_the_last_attempt_is_followed_by_another_after_progress(
    ann: Member, world: World, limited: tuple[LimitedEmbedder, Worker]
):
    endpoint, worker = limited
    document = bring_chunks(ann, 24)
    for _ in range(2):
        # Each claim begins the last attempt.
        attempts = "update rag.jobs set attempts = %s where document_id = %s"
        world.sql(attempts, ATTEMPTS - 1, document["id"])
        result = worker.work()
        endpoint.renew()
        if result.postponed:
            assert (ann.row(document)["status"], ann.row(document)["attempts"]) == ("processing", 0)
            assert_due(world, document)
    assert result == BatchResult(claimed=1, completed=1)


def test_other_passages_are_embedded_from_the_first_one(
    ann: Member, world: World, limited: tuple[LimitedEmbedder, Worker]
):
    """As of a page that differs at each attempt. Such attempts count."""
    endpoint, worker = limited
    document = bring_chunks(ann, 24)
    for attempts in (0, 1, 2):
        assert worker.work() == BatchResult(claimed=1, postponed=1)
        assert ann.row(document)["attempts"] == attempts
        world.sql(
            "update rag.jobs set passages_hash = repeat('0', 64) where document_id = %s", document["id"]
        )
        assert_due(world, document)
        endpoint.renew()
    passages = [passage for batch in endpoint.accepted for passage in batch]
    # The third attempt begins with a batch of one passage, after one without progress.
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


def test_a_permanently_failing_document_ends(ann: Member, world: World, jobs: Jobs):
    document = ann.bring("The kiln is hot.")
    broken = Worker(jobs, Broken())
    for attempt in range(1, ATTEMPTS):
        assert broken.work() == BatchResult(claimed=1, postponed=1), attempt
        assert_due(world, document)
    assert broken.work() == BatchResult(claimed=1, failed=1)
    ended = ann.row(document)
    assert (ended["status"], ended["error_code"]) == ("failed", "internal_error")


class Broken:
    """An embedder with an unexpected fault."""

    model, forms, remote, window, passage_tokens = (
        "all-MiniLM-L6-v2",
        NO_FORMS,
        False,
        256,
        128,
    )

    def embed(self, texts: object, role: Roles, *, background: bool = False) -> list[list[float]]:
        raise RagError(log_reason="broken")

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def test_concurrent_workers_process_each_document_once(ann: Member, world: World, jobs: Jobs):
    def work(_: int) -> BatchResult:
        return Worker(jobs, ann.services.embedder).work(3)

    rows = [ann.bring(f"Kiln number {number} is hot.") for number in range(24)]
    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(work, range(16)), BatchResult())
    assert done == BatchResult(claimed=24, completed=24)
    ids = [row["id"] for row in rows]
    chunks = world.sql("select document_id::text from rag.chunks where document_id = any (%s::uuid[])", ids)
    assert sorted(chunks) == sorted((document,) for document in ids)
    ends = "select attempts, state from rag.jobs where kind = 'ingestion' and document_id = any (%s::uuid[])"
    assert {*world.sql(ends, ids)} == {(1, "done")}


def test_a_dead_worker_s_job_is_done_by_another_with_the_only_valid_lease(
    ann: Member, world: World, jobs: Jobs, worker: Worker
):
    document = ann.bring("The kiln is hot.")
    (dead,) = jobs.claim("ingestion", 1)
    assert worker.work() == BatchResult(), "while the lease lasts"
    assert_due(world, document)
    assert worker.work() == BatchResult(claimed=1, completed=1)
    for function, arguments in LEASED.items():
        with pytest.raises(Conflict) as late:
            jobs.call(dead, function, arguments)
        assert late.value.code == "lease_lost"
    assert ann.texts() == ["The kiln is hot."]


def test_a_job_that_kills_its_workers_is_given_up(ann: Member, world: World, jobs: Jobs):
    document = ann.bring("The kiln is hot.")
    for _ in range(16):
        assert len(jobs.claim("ingestion", 1)) == 1
        assert_due(world, document)
    assert jobs.claim("ingestion", 1) == []
    ended = ann.row(document)
    assert (ended["status"], ended["error_code"]) == ("failed", "processing_failed")


def test_an_upload_of_a_user_who_left_fails_and_an_admin_runs_it_again(
    ann: Member, people: People, world: World, worker: Worker
):
    document = ann.bring("The kiln is hot.")
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    for _ in range(16):
        assert worker.work().completed == 0
        assert_due(world, document)
    assert worker.work() == BatchResult()
    ((job, code),) = world.sql(
        "select id::text, error_code from rag.jobs where document_id = %s", document["id"]
    )
    assert code == "processing_failed"
    assert people.ada.rpc("rag_retry_jobs", {"job_ids": [job]}).json() == [job]
    assert worker.work() == BatchResult(claimed=1, completed=1)


def test_no_lease_ends_while_its_worker_converts_and_embeds_slowly(
    ann: Member, world: World, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
):
    """Transcription and embedding take 200 seconds for each of three documents; a lease lasts 300."""
    for number in range(3):
        ann.bring(b"ID3\x03 %d" % number, content_type="audio/mpeg")
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
        def embed(self, texts: object, role: Roles, *, background: bool = False) -> list[list[float]]:
            take_long()
            return [[1.0]]

    monkeypatch.setattr("shared.ingestion.document_worker.EMBEDDED_AT_ONCE", 1)
    monkeypatch.setattr("shared.ingestion.job_queue.time", SimpleNamespace(monotonic=lambda: now))
    with closing(OpenAI(api_key="unused")) as client:
        slow = Worker(jobs, SlowEmbedder(), transcriber=SlowTranscriber(client, "whisper-1", 1))
        assert slow.work() == BatchResult(claimed=3, completed=3)
    assert claimed == [[]] * 6, "another worker gets none of them"


def test_opening_a_job_renews_its_lease_and_writes_its_step(
    ann: Member, world: World, jobs: Jobs, abroad: Worker, site: StandIn
):
    """A job that waited for others of its round has a whole lease for its download and its conversion."""
    site.replies(page(HOT))
    ann.bring("The kiln is hot.")
    ann.bring_url(site.url)
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
    jobs.call(address, "rag_store_content", {"content_hash": "0" * 64, "size_bytes": 1})
    assert world.sql(state, address.id) == [("converting", True)]


def test_a_small_document_costs_three_calls_and_a_large_one_reports_its_steps(
    ann: Member, settings: Settings, no_jobs: None, site: StandIn, monkeypatch: pytest.MonkeyPatch
):
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

        ann.bring("The kiln is hot.")
        assert calls_of_a_round() == ["claim_jobs", "open_job", "complete_job"]
        ann.bring_url(site.url)
        assert calls_of_a_round() == ["claim_jobs", "open_job", "store_content", "complete_job"]
        # More passages than are embedded at once.
        short = ann.with_collection("short", config={"chunk_size": 32, "chunk_overlap": 0})
        short.bring("The kiln is hot today and will be tomorrow. " * 200)
        assert calls_of_a_round() == [
            "claim_jobs", "open_job", "extend_job", "extend_job", "complete_job",
        ]  # fmt: skip


@pytest.mark.parametrize("after", ["claim", "open"])
def test_a_document_deleted_during_processing_stays_deleted(
    ann: Member, world: World, jobs: Jobs, worker: Worker, after: str
):
    document = ann.bring("The kiln is hot.")
    (job,) = jobs.claim("ingestion", 1)
    read = worker._load(job) if after == "open" else None
    documents.delete(ann.services.database, ann.actor.principal, document["id"])
    with pytest.raises(Conflict):
        worker._store(read, [[1.0] * 1536], None) if read else worker._load(job)
    assert world.sql("select count(*) from rag.chunks where document_id = %s", document["id"]) == [(0,)]
    assert world.sql("select count(*) from rag.jobs where document_id = %s", document["id"]) == [(0,)]


def test_an_unreadable_version_keeps_the_old_one(ann: Member, worker: Worker):
    ann.bring("The kiln is hot.", external_id="kiln")
    worker.work()
    second = ann.bring(b"%PDF-", external_id="kiln")
    worker.work()
    assert ann.row(second)["status"] == "failed"
    assert ann.texts() == ["The kiln is hot."]


def test_a_document_replaced_during_processing_has_the_newest_content(
    ann: Member, jobs: Jobs, worker: Worker
):
    ann.bring("The kiln is hot.", external_id="kiln")
    (job,) = jobs.claim("ingestion", 1)
    late = worker._load(job)
    ann.bring("The kiln is cold.", external_id="kiln")
    with pytest.raises(Conflict):
        worker._store(late, [[1.0] * 1536], None)
    worker.work()
    assert ann.texts() == ["The kiln is cold."]


def test_the_collection_s_chunking_settings_apply(ann: Member, worker: Worker):
    short = ann.with_collection("short", config={"chunk_size": 32, "chunk_overlap": 0})
    text = " ".join(f"Kiln number {number} is hot today and will be tomorrow." for number in range(20))
    document = short.bring(text)
    worker.work()
    assert ann.row(document)["chunk_count"] >= 8
    info = ann.info(document)
    assert (info["chunk_size"], info["chunk_overlap"]) == (32, 0)


def test_the_documented_statement_processes_documents_again(
    ann: Member, people: People, world: World, worker: Worker
):
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
    world.sql(text)
    assert worker.work() == BatchResult()
    before = long.row(document)
    world.sql(text.replace("256", "32"))
    assert worker.work() == BatchResult(claimed=1, completed=1)
    after = long.row(document)
    assert (before["processing_info"]["chunk_size"], after["processing_info"]["chunk_size"]) == (128, 32)
    assert (after["id"], after["title"], after["metadata"]) == (document["id"], "Oven", {"a": 1})
    assert after["chunk_count"] > before["chunk_count"]
    world.sql(text.replace("256", "32"))
    assert worker.work() == BatchResult()


def test_a_chunk_beyond_the_embedder_s_window_is_reported(ann: Member, worker: Worker):
    document = ann.with_collection("long", config={"chunk_size": 8000}).bring("The kiln is hot today. " * 100)
    worker.work()
    info = ann.info(document)
    # The title stands before each.
    assert 240 < info["chunk_size"] < ann.services.embedder.window
    assert info["chunk_overlap"] == info["chunk_size"] // 10


def test_changes_during_processing_are_kept(ann: Member, alf: Member, worker: Worker):
    document = ann.bring("The kiln is hot.", metadata={"author": "Ann"})
    documents.update(alf.services.database, alf.actor.principal, document["id"], "Ovens", {"state": "open"})
    worker.work()
    row = ann.row(document)
    assert (row["title"], row["metadata"], row["status"]) == ("Ovens", {"state": "open"}, "completed")
    assert ann.texts() == ["The kiln is hot."]


def test_jobs_of_dead_workers_are_processed_one_by_one(ann: Member, world: World, jobs: Jobs):
    """One of them may be what they died of."""
    rows = [ann.bring(f"Kiln {number} is hot.") for number in range(3)]
    assert len(jobs.claim("ingestion", 3)) == 3
    for row in rows:
        assert_due(world, row)
    ann.bring("A fourth kiln.")
    assert [len(jobs.claim("ingestion", 4)) for _ in range(4)] == [1, 1, 1, 1]


def test_jobs_run_with_the_rights_of_the_user_who_added_them(
    ann: Member, people: People, world: World, worker: Worker
):
    """A former member adds nothing; the job ends as one that failed too often."""
    document = ann.bring("The kiln is hot.")
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert worker.work() == BatchResult(claimed=1)
    assert world.sql("select count(*) from rag.chunks where document_id = %s", document["id"]) == [(0,)]


def test_retry_delays_double_up_to_a_limit():
    pauses = [Job("j", "o", "u", "l", attempt).pause for attempt in range(1, ATTEMPTS + 1)]
    assert pauses == [4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, None]


def test_an_unavailable_model_postpones_a_document(ann: Member, world: World, worker: Worker):
    """The deployer has to change a setting, not the user who sent the document; then it is stored."""
    document = ann.bring("The kiln is hot.")
    with passages.deployed_with(world, embedding_model="former", other_embedding_models=[]):
        assert worker.work() == BatchResult(claimed=1, postponed=1)
    waiting = ann.row(document)
    assert (waiting["status"], waiting["error_code"]) == ("processing", "unknown_embedding_model")
    world.sql("update rag.jobs set due_at = now()")
    assert worker.work() == BatchResult(claimed=1, completed=1)
