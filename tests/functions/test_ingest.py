"""The worker, as a schedule calls it, extracts documents beside its other work; a collection's setting has it
extract, or delete."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from functions import ingest
from shared.config import Settings
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import client_of, services_with
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
