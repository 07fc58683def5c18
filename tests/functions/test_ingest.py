"""The worker, as a schedule calls it: extraction beside its other work."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr

from functions import ingest
from shared.config import Settings
from shared.graph import rule_extractor
from shared.ingestion import graph_worker, job_queue
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import client_of, json_of, services_with
from tests.sql.passages import put
from tests.sql.reading import mentions, state

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
            body = {"title": "new", "content": "New."}
            home = json_of(people.bob.request("POST", "/api/v1/collections", {"name": "new"}), 201)["id"]
            body |= {"collection_id": home}
            made = json_of(people.bob.request("POST", "/api/v1/documents/text", body), 202)
            status, end = "queued", time.monotonic() + 30
            while status != "completed" and time.monotonic() < end:
                status = json_of(people.bob.request("GET", f"/api/v1/documents/{made['id']}"))["status"]
                time.sleep(0.1)
            assert (status, call.done()) == ("completed", False)
        finally:
            release.set()
        assert call.result().read == 1
