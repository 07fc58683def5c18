"""One call of the worker, as a schedule or a process makes it: slow work of one org delays no other."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import ip_network
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import psutil
import pytest
from pydantic import SecretStr

from functions import ingest, schedule
from local import ROOT
from shared.config import Settings
from shared.documents import collections, documents
from shared.documents.documents import NewUpload
from shared.errors import RagError
from shared.graph import rule_extractor
from shared.ingestion import graph_worker, job_queue
from shared.ingestion.job_queue import LATEST_CLAIM_SECONDS, PAUSE_SECONDS
from shared.ingestion.sources import website
from shared.process_priority import NICENESS
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import client_of, services_with, wait_for
from tests.sql.passages import put
from tests.sql.reading import mentions, state
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")
TEXT = "Ann Lee leads the Ledger Team."


@pytest.fixture
def deployed(settings: Settings) -> Iterator[Services]:
    with services_with(settings, rag_worker_token=SecretStr("a token of the worker's")) as services:
        yield services


def post(services: Services) -> dict[str, Any]:
    with client_of(ingest.app, services) as app:
        token = services.settings.rag_worker_token
        assert token
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"}
        response = app.post("/functions/v1/ingest", headers=headers)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def test_one_call_extracts_pending_documents(people: People, world: World, deployed: Services):
    document = put(world, people.ann, TEXT)
    done = post(deployed)
    assert (done["read"], done["idle"]) == (1, True)
    assert state(world, document) == (1, 0, 0, False, False, None)
    assert mentions(world, document) == [(0, "ann lee"), (0, "ledger team")]
    assert post(deployed)["read"] == 0


def test_documents_do_not_wait_for_a_long_extraction(
    people: People, world: World, deployed: Services, monkeypatch: pytest.MonkeyPatch
):
    """A call ends after its extractions, and the next one begins after it."""
    extraction_began, release = Event(), Event()

    def extract(title: str, chunks: Any) -> Any:
        extraction_began.set()
        assert release.wait(60)
        return rule_extractor.extract(title, chunks)

    monkeypatch.setattr(graph_worker, "extract", extract)
    put(world, people.ann, TEXT)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(ingest.work, deployed)
        try:
            assert extraction_began.wait(60)
            # By now the call has found no document.
            time.sleep(2 * job_queue.PAUSE_SECONDS)
            document = bring(deployed, people.bob, NewUpload(b"New.", content_type="text/plain"))
            wait_for(lambda: status(deployed, people.bob, document) == "completed")
            assert not call.done()
        finally:
            release.set()
        assert call.result().read == 1


@pytest.fixture
def deployment(settings: Settings) -> Iterator[Services]:
    """Whose worker may read from this machine."""
    with services_with(settings, rag_allowed_private_networks=[ip_network("127.0.0.1/32")]) as services:
        yield services


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


def test_the_schedule_calls_the_worker_with_low_priority_and_ends_on_sigterm(people: People, world: World):
    document = put(world, people.ann, "Ann Lee leads the Ledger Team.")
    paths = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    environment = {**paths, **people.ann.stack.function_environment()}
    command = [sys.executable, "-m", "functions.schedule", "--pause", "600"]
    process = subprocess.Popen(command, env=environment)
    try:
        wait_for(lambda: state(world, document) == (1, 0, 0, False, False, None))
        assert psutil.Process(process.pid).nice() >= NICENESS
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()


@pytest.mark.usefixtures("short_pauses")
def test_a_failed_call_is_logged_and_repeated_after_the_pause(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    services = Services(settings.model_copy(update={"supabase_url": "http://127.0.0.1:1"}))
    monkeypatch.setattr(schedule.log, "propagate", True)
    stop = Event()
    calls = Thread(target=schedule.run, args=(services, stop, 0.01))
    calls.start()
    wait_for(lambda: caplog.text.count("the call of the worker failed") >= 2)
    stop.set()
    calls.join(60)
    services.close()
    assert not calls.is_alive()
