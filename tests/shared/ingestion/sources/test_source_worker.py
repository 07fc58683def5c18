"""Runs of sources against the real database: documents follow the source, and nothing else deletes them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from shared.clients.ssrf_guard import AddressPolicy
from shared.documents import collections
from shared.errors import FetchFailed
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import Jobs
from shared.ingestion.sources import source_worker
from shared.ingestion.sources.open_source import open_source
from shared.ingestion.sources.source import Content, Item, ItemGone, ItemLeftOut
from shared.ingestion.sources.source_worker import SourceWorker
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.shared.ingestion.test_document_worker_killed import Dying, Killed
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
    # Names that are no documents, by the reason; names that ask to wait, by the seconds.
    left_out: dict[str, str] = field(default_factory=dict)
    busy: dict[str, int] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    on_fetch: Callable[[str], object] = lambda _: None
    lists_all: bool = True

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
        if reason := self.left_out.get(item.id):
            raise ItemLeftOut(reason, keeps=reason == "login")
        if seconds := self.busy.get(item.id):
            raise FetchFailed(headers={"Retry-After": str(seconds)})
        text = self.texts[item.id]
        return None if known_version == text else Content(text.encode(), item.id, version=text)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf({name: f"The kiln {name} is hot." for name in ("a", "b", "c")}, {"a": "1", "b": "1"})


@dataclass(frozen=True)
class Admin:
    """An admin, who makes sources of a collection and requests their runs."""

    actor: Actor
    world: World
    collection: str
    lister: SourceWorker

    def make(self, address: str = ADDRESS) -> str:
        arguments = {"collection_id": self.collection, "kind": "website", "address": address}
        answer = self.actor.rpc("rag_create_source", arguments)
        assert answer.status_code == 200, answer.text
        return str(answer.json()[0]["id"])

    def row(self, source: str) -> Row:
        return dict(self.actor.request("GET", f"/v1/sources/{source}").json())

    def change(self, source: str, **fields: Any) -> None:
        assert self.actor.request("PATCH", f"/v1/sources/{source}", fields).status_code == 200

    def run(self, source: str) -> Row:
        """The state of the source after a whole run, however many time slices it takes."""
        for _ in range(10):
            assert self.actor.request("POST", f"/v1/sources/{source}/run").status_code == 202
            self.lister.work()
            row = self.row(source)
            if row["status"] == "waiting":
                return row
        raise AssertionError("the run does not end")

    def titles(self) -> list[str]:
        statement = "select title from rag.documents where collection_id = %s order by title"
        return [title for (title,) in self.world.sql(statement, self.collection)]


@pytest.fixture
def ada(services: Services, people: People, world: World, jobs: Jobs, shelf: Shelf) -> Admin:
    """With a collection that sources fill."""
    home = collections.create(services.database, people.ada.principal, {"name": "collection"})["id"]
    return Admin(people.ada, world, str(home), SourceWorker(jobs, lambda _: shelf))


@pytest.fixture
def web_ada(ada: Admin, jobs: Jobs) -> Admin:
    """Her sources are websites on this machine."""
    networks = AddressPolicy(["127.0.0.1/32"])
    return replace(ada, lister=SourceWorker(jobs, partial(open_source, networks=networks, endpoints=())))


def counts(row: Row) -> tuple[int, ...]:
    return tuple(row["last_run"][name] for name in ("listed", "stored", "deleted", "failed"))


def test_documents_follow_a_website(web_ada: Admin, worker: Worker, people: People):
    with Website() as site:
        site.put("/a", article("Page a", "The kiln a is hot."))
        site.put("/b.txt", "The kiln b is hot.", Content_Type="text/plain")
        site.list_pages("/a", "/b.txt", a="2026-01-01")
        source = web_ada.make(site.url)
        assert counts(web_ada.run(source)) == (2, 2, 0, 0)
        while worker.work().claimed:
            pass
        path = f"/v1/documents?collection_id={web_ada.collection}"
        documents = people.ann.request("GET", path).json()["data"]
        assert {(row["title"], row["status"], row["metadata"]["url"]) for row in documents} == {
            ("Page a", "completed", f"{site.url}/a"), ("b.txt", "completed", f"{site.url}/b.txt"),
        }  # fmt: skip
        # Unchanged: a page with a time of change is not requested, the other is answered by 304.
        site.requests.clear()
        assert counts(web_ada.run(source)) == (2, 0, 0, 0)
        assert site.requests[2:] == ["/b.txt"]
        site.put("/b.txt", "The kiln b is cold.", Content_Type="text/plain")
        site.list_pages("/b.txt")
        assert counts(web_ada.run(source)) == (1, 1, 1, 0)
        assert web_ada.titles() == ["b.txt"]


def test_pages_that_ask_not_to_be_indexed_go_when_the_source_leaves_them_out(web_ada: Admin):
    with Website() as site:
        site.put("/a", article("Page a", "The kiln a is hot.", "<meta name=robots content=noindex>"))
        site.put("/b", article("Page b", "The kiln b is hot."), X_Robots_Tag="noindex")
        site.put("/c", article("Page c", "The kiln c is hot."))
        site.list_pages("/a", "/b", "/c", a="2026-01-01")
        source = web_ada.make(site.url)
        web_ada.change(source, include_noindex=True)
        assert counts(web_ada.run(source)) == (3, 3, 0, 0)
        web_ada.change(source, include_noindex=False)
        # The pages themselves did not change.
        row = web_ada.run(source)
        assert (counts(row), row["last_run"]["left_out"]) == ((3, 0, 2, 0), {"noindex": 2})
        assert web_ada.titles() == ["Page c"]


def test_a_running_time_slice_stores_nothing_after_a_change_to_leave_pages_out(ada: Admin, shelf: Shelf):
    source = ada.make()
    ada.change(source, include_noindex=True)
    shelf.on_fetch = lambda name: ada.change(source, include_noindex=False) if name == "b" else None
    ada.lister.work()
    assert (ada.row(source)["status"], ada.titles()) == ("waiting", ["a"])
    shelf.on_fetch, shelf.left_out = (lambda _: None), {"a": "noindex"}
    # Due at once, and the page that was stored before is read again.
    ada.lister.work()
    assert (counts(ada.row(source)), ada.titles()) == ((3, 2, 1, 0), ["b", "c"])


@pytest.mark.parametrize("slice_seconds", [source_worker.SLICE_SECONDS, 0.0])
def test_documents_follow_the_items(
    ada: Admin, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, slice_seconds: float
):
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", slice_seconds)
    source = ada.make()
    assert counts(ada.run(source)) == (3, 3, 0, 0)
    assert counts(ada.run(source)) == (3, 0, 0, 0)
    # Only the item without a version in the listing is fetched again.
    assert shelf.fetched == ["a", "b", "c", "c"]
    del shelf.texts["a"]
    del shelf.texts["c"]
    shelf.gone = {"c"}
    shelf.texts |= {"b": "The kiln b is cold.", "d": "The kiln d is new."}
    shelf.versions["b"] = "2"
    row = ada.run(source)
    assert counts(row) == (3, 2, 2, 1)
    assert row["last_run"]["error"]["code"] == "item_gone"
    assert ada.titles() == ["b", "d"]
    # A document that a member deletes comes back.
    ada.world.sql("delete from rag.documents where collection_id = %s", ada.collection)
    assert counts(ada.run(source)) == (3, 2, 0, 1)


def test_a_listing_that_fails_or_is_partial_deletes_nothing(ada: Admin, shelf: Shelf):
    source = ada.make()
    ada.run(source)
    whole = ["a", "b", "c"]
    del shelf.texts["a"]
    shelf.broken_listing = "c"
    row = ada.run(source)
    assert row["last_run"]["error"]["code"] == FetchFailed.code
    assert ada.titles() == whole
    shelf.broken_listing = ""
    ada.change(source, max_items=1)
    assert ada.run(source)["last_run"]["error"]["code"] == "too_many_items"
    assert ada.titles() == whole
    # An item that cannot be read is listed, and keeps its document.
    ada.change(source, max_items=100)
    shelf.broken = {"c"}
    row = ada.run(source)
    assert counts(row) == (2, 0, 1, 1)
    assert row["last_run"]["error"]["message"].endswith("(c)")
    assert ada.titles() == ["b", "c"]
    # A listing without an item, as after a prefix was renamed.
    shelf.texts.clear()
    assert ada.run(source)["last_run"]["error"]["code"] == "no_items"
    assert ada.titles() == ["b", "c"]


def test_a_source_whose_items_are_mostly_gone_deletes_nothing(
    ada: Admin, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    shelf.texts |= {f"n{number}": f"The kiln n{number} is hot." for number in range(4)}
    source = ada.make()
    ada.run(source)
    before = ada.titles()
    assert len(before) == 7
    shelf.gone = {name for name in shelf.texts if name.startswith("n")}
    shelf.texts = {name: text for name, text in shelf.texts.items() if name not in shelf.gone}
    for seconds in (source_worker.SLICE_SECONDS, 0.0):
        # Also if each time slice has one item.
        monkeypatch.setattr(source_worker, "SLICE_SECONDS", seconds)
        row = ada.run(source)
        assert row["last_run"]["error"]["code"] == "items_gone"
        assert counts(row) == (7, 0, 0, 4)
        assert ada.titles() == before
    # A long listing ends after several missing items in a row.
    monkeypatch.undo()
    shelf.gone = {f"n{number:03}" for number in range(200)}
    row = ada.run(source)
    assert row["last_run"]["error"]["code"] == "items_gone"
    assert row["last_run"]["listed"] < 50
    assert ada.titles() == before


def test_what_is_no_document_is_counted_with_its_reason(
    ada: Admin, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    source = ada.make()
    ada.run(source)
    # In several time slices.
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 0.0)
    shelf.texts["d"] = "The kiln d is hot."
    shelf.versions = {}
    shelf.left_out = {"a": "noindex", "b": "login", "d": "noindex"}
    row = ada.run(source)
    assert counts(row) == (4, 0, 1, 0)
    assert (row["last_run"]["left_out"], row["last_run"]["error"]) == ({"noindex": 2, "login": 1}, None)
    # The document of a page that asks for a login now stays.
    assert ada.titles() == ["b", "c"]
    shelf.left_out = {}
    assert ada.run(source)["last_run"]["left_out"] == {}


def waited(ada: Admin, source: str) -> float:
    """The seconds until the run continues, which has not ended."""
    ada.lister.work()
    assert ada.row(source)["status"] == "running"
    statement = "select extract(epoch from due_at - clock_timestamp()) from rag.sources where id = %s"
    ((seconds,),) = ada.world.sql(statement, source)
    ada.world.sql("update rag.sources set due_at = now() where id = %s", source)
    return float(seconds)


def test_a_run_continues_after_the_pause_that_the_site_asks_for(ada: Admin, shelf: Shelf):
    shelf.busy = {"b": 3600}
    source = ada.make()
    assert 3500 < waited(ada, source) <= 3600
    assert ada.titles() == ["a"]
    del shelf.busy["b"]
    ada.lister.work()
    assert counts(ada.row(source)) == (3, 3, 0, 0)
    assert shelf.fetched == ["a", "b", "b", "c"]


def test_pauses_end_with_the_item_or_with_the_run(ada: Admin, shelf: Shelf):
    shelf.busy = {"a": 60}
    source = ada.make()
    for _ in range(source_worker.MAX_WAITS):
        assert waited(ada, source) > 50
    ada.lister.work()
    row = ada.row(source)
    assert (counts(row), row["last_run"]["error"]["code"]) == ((3, 2, 0, 1), FetchFailed.code)
    # A site that refuses all of its pages.
    shelf.busy = {"a": 1000, "b": 1000, "c": 1000}
    shelf.versions = {}
    ada.actor.request("POST", f"/v1/sources/{source}/run")
    for _ in range(source_worker.MAX_WAITS):
        assert waited(ada, source) > 900
    ada.lister.work()
    row = ada.row(source)
    assert (row["status"], row["last_run"]["error"]["code"]) == ("waiting", FetchFailed.code)
    assert ada.world.sql(
        "select due_at > now() + interval '900 s' from rag.sources where id = %s", source
    ) == [(True,)]
    assert ada.titles() == ["b", "c"]
    # A pause of days.
    shelf.busy = {"b": 100_000}
    assert counts(ada.run(source)) == (3, 1, 0, 1)


def test_the_time_slices_of_a_run_list_a_website_once(web_ada: Admin, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source_worker, "SLICE_SECONDS", 0.0)
    with Website() as site:
        for path in ("/a", "/b", "/c"):
            site.put(path, f"The kiln {path} is hot.", Content_Type="text/plain")
        site.list_pages("/a", "/b", "/c")
        source = web_ada.make(site.url)
        web_ada.lister.work()
        assert web_ada.row(source)["status"] == "running"
        assert counts(web_ada.run(source)) == (3, 3, 0, 0)
        assert site.requests.count("/sitemap.xml") == 1
        # The next run lists it again.
        assert counts(web_ada.run(source)) == (3, 0, 0, 0)
        assert site.requests.count("/sitemap.xml") == 2


def test_a_change_by_another_admin_does_not_end_a_run(ada: Admin, shelf: Shelf, people: People):
    source = ada.make()
    ada.world.sql("update rag.members set role = 'admin' where user_id = %s", people.ann.id)
    ada.world.sql("update rag.members set role = 'admin' where user_id = %s", people.ada.id)
    ann = replace(ada, actor=people.ann)
    shelf.on_fetch = lambda name: ann.change(source, interval_seconds=600) if name == "a" else None
    assert counts(ada.run(source)) == (3, 3, 0, 0)
    row = ada.row(source)
    assert (row["interval_seconds"], row["last_run"]["error"]) == (600, None)


def test_content_that_moves_keeps_a_document(ada: Admin, shelf: Shelf):
    source = ada.make()
    ada.run(source)
    shelf.texts["z"] = shelf.texts.pop("a")
    ada.run(source)
    # The listing that stores the content under its new name follows at once.
    ada.lister.work()
    assert ada.titles() == ["b", "c", "z"]


def test_a_worker_that_dies_at_any_call_is_continued(ada: Admin, shelf: Shelf, services: Services):
    source = ada.make()
    died = 0
    for call in range(19):
        try:
            SourceWorker(Dying(services, call, answered=True), lambda _: shelf).work()
        except Killed:
            died += 1
        # No other worker has it before its lease ends.
        assert ada.lister.work().claimed == 0
        ada.world.sql("update rag.sources set due_at = now() where id = %s", source)
    # The first of them lists; the others store an item each, until all are stored.
    assert died == 4
    row = ada.run(source)
    assert counts(row)[0] == 3
    assert ada.titles() == ["a", "b", "c"]
    assert ada.world.sql("select count(*) from rag.jobs where collection_id = %s", ada.collection) == [(3,)]


def test_every_org_gets_a_turn(ada: Admin, people: People):
    early = [ada.make() for _ in range(6)]
    bea = ada.world.user(people.bolt, role="admin")
    other = str(bea.rpc("rag_create_collection", {"name": "other"}).json()[0]["id"])
    late = replace(ada, actor=bea, collection=other).make()
    while bea.request("GET", f"/v1/sources/{late}").json()["last_run"] is None:
        assert ada.lister.work().claimed
    assert [ada.row(source)["last_run"] is None for source in early].count(False) <= 1


def test_a_source_waits_while_documents_wait_and_limits_of_the_org_hold(
    ada: Admin, people: People, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(source_worker, "MAX_WAITING_JOBS", 2)
    source = ada.make()
    ada.lister.work()
    row = ada.row(source)
    assert (row["status"], counts(row)) == ("running", (2, 2, 0, 0))
    monkeypatch.undo()
    ada.world.tier(people.acme, documents=2)
    row = ada.run(source)
    assert counts(row) == (3, 2, 0, 1)
    assert row["last_run"]["error"]["code"] == "document_limit_reached"


def test_a_source_of_a_former_admin_does_not_run(ada: Admin, people: People):
    eve = ada.world.user(people.acme, role="admin")
    source = replace(ada, actor=eve).make()
    ada.world.sql("update rag.members set role = 'member' where user_id = %s", eve.id)
    ada.lister.work()
    row = ada.row(source)
    assert row["last_run"]["error"]["code"] == "source_user_left"
    assert ada.titles() == []
    # It runs as the admin who requests it.
    assert counts(ada.run(source)) == (3, 3, 0, 0)


def test_documents_of_a_private_collection_are_private(ada: Admin, people: People):
    (drawer,) = people.ann.rpc("rag_create_collection", {"name": "drawer", "private": True}).json()
    source = replace(ada, collection=drawer["id"]).make()
    assert counts(ada.run(source)) == (3, 3, 0, 0)
    owners = ada.world.sql(
        "select distinct owner_id::text from rag.documents where collection_id = %s", drawer["id"]
    )
    assert owners == [(people.ann.id,)]
