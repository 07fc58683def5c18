"""Runs of sources against the real database: documents follow the source, and nothing else deletes them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from shared.clients.ssrf_guard import AddressPolicy
from shared.documents import collections
from shared.errors import FetchFailed
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import Job, Jobs
from shared.ingestion.sources import source_worker
from shared.ingestion.sources.open_source import open_source
from shared.ingestion.sources.source import Content, Item, ItemGone
from shared.ingestion.sources.source_worker import SourceWorker
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.website_server import Website, article

ADDRESS = "https://docs.example/"
Row = dict[str, Any]


@dataclass
class Shelf:
    """A source in memory: texts by name; `gone` items are listed without a text."""

    texts: dict[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    # Names whose listing, and whose content, fails.
    broken_listing: str = ""
    broken: set[str] = field(default_factory=set)
    fetched: list[str] = field(default_factory=list)
    on_fetch: Callable[[str], object] = lambda _: None

    def items(self, after: str) -> Iterator[Sequence[Item]]:
        for name in sorted(self.texts.keys() | self.gone):
            if name == self.broken_listing:
                raise FetchFailed
            if name > after:
                yield [Item(name, self.versions.get(name))]

    def fetch(self, item: Item, known_version: str | None) -> Content | None:
        self.fetched.append(item.id)
        self.on_fetch(item.id)
        if item.id in self.gone:
            raise ItemGone
        if item.id in self.broken:
            raise FetchFailed
        text = self.texts[item.id]
        return None if known_version == text else Content(text.encode(), item.id, version=text)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf({name: f"The kiln {name} is hot." for name in ("a", "b", "c")}, {"a": "1", "b": "1"})


@pytest.fixture
def lister(jobs: Jobs, shelf: Shelf) -> SourceWorker:
    return SourceWorker(jobs, lambda _: shelf)


@pytest.fixture
def collection(services: Services, people: People) -> str:
    """A collection that sources fill."""
    return str(collections.create(services.database, people.ada.principal, {"name": "collection"})["id"])


def make(actor: Actor, collection: str, address: str = ADDRESS) -> str:
    arguments = {"collection_id": collection, "kind": "website", "address": address}
    answer = actor.rpc("rag_create_source", arguments)
    assert answer.status_code == 200, answer.text
    return str(answer.json()[0]["id"])


def run(lister: SourceWorker, actor: Actor, source: str) -> Row:
    """The state of the source after a whole run, however many time slices it takes."""
    for _ in range(10):
        assert actor.request("POST", f"/v1/sources/{source}/run").status_code == 202
        lister.work()
        row: Row = actor.request("GET", f"/v1/sources/{source}").json()
        if row["status"] == "waiting":
            return row
    raise AssertionError("the run does not end")


def counts(row: Row) -> tuple[int, ...]:
    return tuple(row["last_run"][name] for name in ("listed", "stored", "deleted", "failed"))


def titles(world: World, collection: str) -> list[str]:
    rows = world.sql("select title from rag.documents where collection_id = %s order by title", collection)
    return [title for (title,) in rows]


def test_documents_follow_a_website(
    jobs: Jobs, worker: Worker, people: People, world: World, collection: str
):
    lister = SourceWorker(jobs, partial(open_source, networks=AddressPolicy(["127.0.0.1/32"]), endpoints=()))
    with Website() as site:
        site.put("/a", article("Page a", "The kiln a is hot."))
        site.put("/b.txt", "The kiln b is hot.", Content_Type="text/plain")
        site.list_pages("/a", "/b.txt", a="2026-01-01")
        source = make(people.ada, collection, site.url)
        assert counts(run(lister, people.ada, source)) == (2, 2, 0, 0)
        while worker.work().claimed:
            pass
        documents = people.ann.request("GET", f"/v1/documents?collection_id={collection}").json()["data"]
        assert {(row["title"], row["status"], row["metadata"]["url"]) for row in documents} == {
            ("Page a", "completed", f"{site.url}/a"), ("b.txt", "completed", f"{site.url}/b.txt"),
        }  # fmt: skip
        # Unchanged: a page with a time of change is not requested, the other is answered by 304.
        site.requests.clear()
        assert counts(run(lister, people.ada, source)) == (2, 0, 0, 0)
        assert site.requests[2:] == ["/b.txt"]
        site.put("/b.txt", "The kiln b is cold.", Content_Type="text/plain")
        site.list_pages("/b.txt")
        assert counts(run(lister, people.ada, source)) == (1, 1, 1, 0)
        assert titles(world, collection) == ["b.txt"]


def test_documents_follow_the_items(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str
):
    source = make(people.ada, collection)
    assert counts(run(lister, people.ada, source)) == (3, 3, 0, 0)
    assert counts(run(lister, people.ada, source)) == (3, 0, 0, 0)
    # Only the item without a version in the listing is fetched again.
    assert shelf.fetched == ["a", "b", "c", "c"]
    del shelf.texts["a"]
    del shelf.texts["c"]
    shelf.gone = {"c"}
    shelf.texts |= {"b": "The kiln b is cold.", "d": "The kiln d is new."}
    shelf.versions["b"] = "2"
    row = run(lister, people.ada, source)
    assert counts(row) == (3, 2, 2, 1)
    assert row["last_run"]["error"]["code"] == "item_gone"
    assert titles(world, collection) == ["b", "d"]
    # A document that a member deletes comes back.
    world.sql("delete from rag.documents where collection_id = %s", collection)
    assert counts(run(lister, people.ada, source)) == (3, 2, 0, 1)


def test_a_listing_that_fails_or_is_partial_deletes_nothing(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str
):
    source = make(people.ada, collection)
    run(lister, people.ada, source)
    whole = ["a", "b", "c"]
    del shelf.texts["a"]
    shelf.broken_listing = "c"
    row = run(lister, people.ada, source)
    assert row["last_run"]["error"]["code"] == FetchFailed.code
    assert titles(world, collection) == whole
    shelf.broken_listing = ""
    assert people.ada.request("PATCH", f"/v1/sources/{source}", {"max_items": 1}).status_code == 200
    assert run(lister, people.ada, source)["last_run"]["error"]["code"] == "too_many_items"
    assert titles(world, collection) == whole
    # An item that cannot be read is listed, and keeps its document.
    people.ada.request("PATCH", f"/v1/sources/{source}", {"max_items": 100})
    shelf.broken = {"c"}
    row = run(lister, people.ada, source)
    assert counts(row) == (2, 0, 1, 1)
    assert row["last_run"]["error"]["message"].endswith("(c)")
    assert titles(world, collection) == ["b", "c"]


def test_a_source_whose_items_are_mostly_gone_deletes_nothing(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str
):
    shelf.texts |= {f"n{number}": f"The kiln n{number} is hot." for number in range(4)}
    source = make(people.ada, collection)
    run(lister, people.ada, source)
    before = titles(world, collection)
    assert len(before) == 7
    gone = {name for name in shelf.texts if name.startswith("n")}
    for name in gone:
        del shelf.texts[name]
    shelf.gone = gone
    row = run(lister, people.ada, source)
    assert row["last_run"]["error"]["code"] == "items_gone"
    assert titles(world, collection) == before
    # A long listing ends after several missing items in a row.
    shelf.gone = {f"n{number:03}" for number in range(200)}
    row = run(lister, people.ada, source)
    assert row["last_run"]["error"]["code"] == "items_gone"
    assert row["last_run"]["listed"] < 50
    assert titles(world, collection) == before


def test_a_long_run_over_a_vanished_source_deletes_nothing(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    """Each time slice has one item."""
    source = make(people.ada, collection)
    run(lister, people.ada, source)
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 0.0)
    shelf.gone, shelf.texts, shelf.versions = {*shelf.texts}, {}, {}
    row = run(lister, people.ada, source)
    assert counts(row) == (3, 0, 0, 3)
    assert row["last_run"]["error"]["code"] == "items_gone"
    assert titles(world, collection) == ["a", "b", "c"]


def test_a_long_run_deletes_the_items_that_are_gone(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    source = make(people.ada, collection)
    run(lister, people.ada, source)
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 0.0)
    del shelf.texts["a"]
    del shelf.versions["a"]
    shelf.gone = {"a"}
    assert counts(run(lister, people.ada, source)) == (3, 0, 1, 1)
    assert titles(world, collection) == ["b", "c"]


def test_the_time_slices_of_a_run_list_a_website_once(
    jobs: Jobs, people: People, collection: str, monkeypatch: pytest.MonkeyPatch
):
    lister = SourceWorker(jobs, partial(open_source, networks=AddressPolicy(["127.0.0.1/32"]), endpoints=()))
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 0.0)
    with Website() as site:
        for path in ("/a", "/b", "/c"):
            site.put(path, f"The kiln {path} is hot.", Content_Type="text/plain")
        site.list_pages("/a", "/b", "/c")
        source = make(people.ada, collection, site.url)
        assert counts(run(lister, people.ada, source)) == (3, 3, 0, 0)
        assert site.requests.count("/sitemap.xml") == 1
        # The next run lists it again.
        assert counts(run(lister, people.ada, source)) == (3, 0, 0, 0)
        assert site.requests.count("/sitemap.xml") == 2


def test_a_change_by_another_admin_does_not_end_a_run(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str
):
    source = make(people.ada, collection)
    world.sql("update rag.members set role = 'admin' where user_id = %s", people.ann.id)
    world.sql("update rag.members set role = 'admin' where user_id = %s", people.ada.id)
    changed: list[int] = []

    def change(item: str) -> None:
        if not changed:
            body = {"interval_seconds": 600}
            changed.append(people.ann.request("PATCH", f"/v1/sources/{source}", body).status_code)

    shelf.on_fetch = change
    assert counts(run(lister, people.ada, source)) == (3, 3, 0, 0)
    assert changed == [200]
    row = people.ada.request("GET", f"/v1/sources/{source}").json()
    assert (row["interval_seconds"], row["last_run"]["error"]) == (600, None)


def test_content_that_moves_keeps_a_document(
    shelf: Shelf, lister: SourceWorker, people: People, world: World, collection: str
):
    source = make(people.ada, collection)
    run(lister, people.ada, source)
    shelf.texts["z"] = shelf.texts.pop("a")
    run(lister, people.ada, source)
    # The listing that stores the content under its new name follows at once.
    lister.work()
    assert titles(world, collection) == ["b", "c", "z"]


class Killed(BaseException):
    """Nothing of the worker runs after it."""


class Dying(Jobs):
    """Dies at a call of that number, before it is sent or before its answer is read."""

    calls_left = 0

    def call(self, job: Job, function: str, arguments: Row) -> Any:
        vars(self)["calls_left"] = self.calls_left - 1
        if self.calls_left < 0:
            raise Killed
        answer = super().call(job, function, arguments)
        if self.calls_left == 0:
            raise Killed
        return answer


def test_a_worker_that_dies_at_any_call_is_continued(
    lister: SourceWorker, shelf: Shelf, people: People, world: World, collection: str, services: Services
):
    source = make(people.ada, collection)
    died = 0
    for call in range(1, 20):
        dying = Dying(services.database, services.require_signer())
        vars(dying)["calls_left"] = call
        try:
            SourceWorker(dying, lambda _: shelf).work()
        except Killed:
            died += 1
        # No other worker has it before its lease ends.
        assert lister.work().claimed == 0
        world.sql("update rag.sources set due_at = now() where id = %s", source)
    # The first of them lists; the others store an item each, until all are stored.
    assert died == 4
    row = run(lister, people.ada, source)
    assert counts(row)[0] == 3
    assert titles(world, collection) == ["a", "b", "c"]
    assert world.sql("select count(*) from rag.jobs where collection_id = %s", collection) == [(3,)]


def test_a_listing_takes_several_turns(
    lister: SourceWorker, people: People, collection: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 0.0)
    source = make(people.ada, collection)
    lister.work()
    row = people.ada.request("GET", f"/v1/sources/{source}").json()
    assert row["status"] == "running"
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 30.0)
    assert counts(run(lister, people.ada, source)) == (3, 3, 0, 0)


def test_every_org_gets_a_turn(lister: SourceWorker, people: People, world: World, collection: str):
    for _ in range(6):
        make(people.ada, collection)
    bea = world.user(people.bolt, role="admin")
    other = str(bea.rpc("rag_create_collection", {"name": "other"}).json()[0]["id"])
    late = make(bea, other)
    lister.work()
    assert bea.request("GET", f"/v1/sources/{late}").json()["last_run"] is not None


def test_a_source_waits_while_documents_wait(
    lister: SourceWorker, people: People, collection: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(source_worker, "MAX_WAITING_JOBS", 2)
    source = make(people.ada, collection)
    lister.work()
    row = people.ada.request("GET", f"/v1/sources/{source}").json()
    assert (row["status"], counts(row)) == ("running", (2, 2, 0, 0))


def test_limits_of_the_org_hold_for_sources(
    lister: SourceWorker, people: People, world: World, collection: str
):
    world.tier(people.acme, documents=2)
    source = make(people.ada, collection)
    row = run(lister, people.ada, source)
    assert counts(row) == (3, 2, 0, 1)
    assert row["last_run"]["error"]["code"] == "document_limit_reached"


def test_a_source_of_a_former_admin_does_not_run(
    lister: SourceWorker, people: People, world: World, collection: str
):
    eve = world.user(people.acme, role="admin")
    source = make(eve, collection)
    world.sql("update rag.members set role = 'member' where user_id = %s", eve.id)
    lister.work()
    row = people.ada.request("GET", f"/v1/sources/{source}").json()
    assert row["last_run"]["error"]["code"] == "source_user_left"
    assert titles(world, collection) == []
    # It runs as the admin who requests it.
    assert counts(run(lister, people.ada, source)) == (3, 3, 0, 0)


def test_documents_of_a_private_collection_are_private(lister: SourceWorker, people: People, world: World):
    (drawer,) = people.ann.rpc("rag_create_collection", {"name": "drawer", "private": True}).json()
    source = make(people.ada, drawer["id"])
    assert counts(run(lister, people.ada, source)) == (3, 3, 0, 0)
    owners = world.sql(
        "select distinct owner_id::text from rag.documents where collection_id = %s", drawer["id"]
    )
    assert owners == [(people.ann.id,)]
