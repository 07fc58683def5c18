"""One call of the worker: slow documents and websites of one org do not delay those of another."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import ip_network
from threading import Event
from uuid import uuid4

import pytest

from functions import ingest, schedule
from shared.config import Settings
from shared.documents import collections, documents
from shared.documents.documents import NewUpload
from shared.errors import RagError
from shared.ingestion.job_queue import LATEST_CLAIM_SECONDS, PAUSE_SECONDS
from shared.ingestion.sources import website
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import services_with
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")


@pytest.fixture
def deployment(settings: Settings) -> Iterator[Services]:
    """Whose worker may read from this machine."""
    with services_with(settings, rag_allowed_private_networks=[ip_network("127.0.0.1/32")]) as services:
        yield services


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def bring(services: Services, actor: Actor, upload: NewUpload) -> str:
    home = collections.create(services.database, actor.principal, {"name": f"docs of {uuid4()}"})["id"]
    add = documents.add_from_url if upload.url else documents.add
    return str(add(services.database, actor.principal, home, upload)["id"])


def status(services: Services, actor: Actor, document: str) -> str:
    return str(documents.get(services.database, actor.principal, document)["status"])


def make_source(services: Services, actor: Actor, address: str) -> str:
    home = collections.create(services.database, actor.principal, {"name": f"pages of {uuid4()}"})["id"]
    arguments = {"collection_id": home, "kind": "website", "address": address}
    source = actor.rpc("rag_create_source", arguments).json()[0]["id"]
    assert actor.request("POST", f"/v1/sources/{source}/run").status_code == 202
    return str(source)


def test_slow_documents_of_one_org_leave_a_thread_for_the_others(deployment: Services, people: People):
    go_on = Event()
    with StandIn() as slow, ThreadPoolExecutor(1) as pool:
        slow.replies(Reply(body=b"The kiln is hot.", headers={"Content-Type": "text/plain"}, after=go_on))
        slow_ones = [
            bring(deployment, people.ann, NewUpload(b"", url=f"{slow.url}/{number}.txt"))
            for number in range(2)
        ]
        call = pool.submit(ingest.work, deployment)
        try:
            wait_for(lambda: len(slow.requests) == 1)
            quick = [
                bring(
                    deployment, people.bob, NewUpload(f"Oven {n} is hot.".encode(), content_type="text/plain")
                )
                for n in range(3)
            ]
            wait_for(lambda: all(status(deployment, people.bob, row) == "completed" for row in quick))
            # The org's own second document waits for its first.
            assert len(slow.requests) == 1
            assert {status(deployment, people.ann, row) for row in slow_ones} == {"processing"}
        finally:
            go_on.set()
        assert call.result().completed == 5


def test_slow_websites_delay_neither_documents_nor_another_org_s_website(
    deployment: Services, people: People, world: World
):
    """Their robots.txt arrives after both were requested, and after a document was completed."""
    world.sql("update rag.members set role = 'admin' where user_id = %s", people.bob.id)
    go_on = Event()
    with ExitStack() as stack:
        sites = [stack.enter_context(StandIn()) for _ in range(3)]
        pool = stack.enter_context(ThreadPoolExecutor(1))
        for site in sites:
            site.replies(Reply(status=404, json={}, after=go_on))
        for admin, site in zip((people.ada, people.ada, people.bob), sites, strict=True):
            make_source(deployment, admin, site.url)
        call = pool.submit(ingest.work, deployment)
        try:
            wait_for(lambda: sum(len(site.requests) for site in sites) == 2)
            text = NewUpload(b"The oven is hot.", content_type="text/plain")
            document = bring(deployment, people.ann, text)
            wait_for(lambda: status(deployment, people.ann, document) == "completed")
            # Of an org one source at a time.
            assert (len(sites[2].requests), sum(len(site.requests) for site in sites)) == (1, 2)
        finally:
            go_on.set()
        assert call.result().completed == 1


def test_a_call_that_only_waits_for_a_document_begins_no_source(
    deployment: Services, people: People, monkeypatch: pytest.MonkeyPatch
):
    """It would then wait for the website, and take no document meanwhile."""
    monkeypatch.setattr(ingest, "BUDGET_SECONDS", 0.2)
    go_on = Event()
    with StandIn() as slow, StandIn() as site, ThreadPoolExecutor(1) as pool:
        slow.replies(Reply(body=b"The kiln is hot.", headers={"Content-Type": "text/plain"}, after=go_on))
        bring(deployment, people.ann, NewUpload(b"", url=f"{slow.url}/1.txt"))
        call = pool.submit(ingest.work, deployment)
        wait_for(lambda: len(slow.requests) == 1)
        time.sleep(0.2)
        make_source(deployment, people.ada, site.url)
        time.sleep(2 * PAUSE_SECONDS)
        go_on.set()
        assert (call.result().completed, site.requests) == (1, [])


def test_in_a_process_of_its_own_a_call_takes_documents_while_one_is_slow_however_long(
    deployment: Services, people: People, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingest, "BUDGET_SECONDS", -2.0 * LATEST_CLAIM_SECONDS)
    document = bring(deployment, people.bob, NewUpload(b"The oven is hot.", content_type="text/plain"))
    assert ingest.work(deployment).completed == 0
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(schedule.run, deployment, stop, 0.1)
        wait_for(lambda: status(deployment, people.bob, document) == "completed")
        stop.set()


def test_one_deadline_is_for_the_whole_listing(deployment: Services, monkeypatch: pytest.MonkeyPatch):
    """However slowly robots.txt and each sitemap arrive."""
    monkeypatch.setattr(website, "LISTING_SECONDS", 1.0)
    index = b"<sitemapindex>" + b"<sitemap><loc>http://a/</loc></sitemap>" * 50 + b"</sitemapindex>"
    for reply in (Reply(body=index, drip=0.05), Reply(body=index, drip=0.05, drip_head=True)):
        with StandIn() as site:
            site.replies(reply)
            began = time.monotonic()
            with pytest.raises(RagError):
                list(website.Website(site.url, deployment.networks, 10, "org").items(""))
            assert time.monotonic() - began < 20
