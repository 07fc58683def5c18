"""The worker, as a schedule calls it, reads documents for names beside what else it does, with the model that
the deployment names; and a collection's switch has it read, and forget."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from functions import ingest
from shared.config import Settings
from shared.errors import ConfigurationError
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import client_of, services
from tests.shared.graph.replying import lists
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, named, state
from tests.stand_in_server import StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")
TEXT = "Ann Lee leads the Ledger Team."


@pytest.fixture
def deployed(settings: Settings, gateway: StandIn) -> Iterator[Services]:
    """One whose model is the stand-in."""
    token = SecretStr("a token of the worker's")
    changes = {
        "rag_llm_url": f"{gateway.url}/v1",
        "rag_graph_model": "small/model",
        "rag_worker_token": token,
    }
    with services(settings, rag_llm_api_key="sk-secret-7f3x", **changes) as core:
        yield core


def work(core: Services) -> dict[str, Any]:
    with client_of(ingest.app, core) as app:
        token = core.settings.rag_worker_token
        assert token
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"}
        answer = app.post("/functions/v1/ingest", headers=headers)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_one_call_extracts_by_rules_and_then_by_the_model(
    people: People, world: World, deployed: Services, gateway: StandIn
):
    gateway.replies(lists(("Ledger Team", "team")))
    document = put(world, people.ann, TEXT)
    done = work(deployed)
    # Each time that it was read.
    assert (done["read"], done["idle"]) == (2, True)
    assert state(world, document) == (2, 0, 0, False, False, None)
    assert mentions(world, document) == [(0, "ledger team")]
    assert work(deployed)["read"] == 0
    assert len(gateway.requests) == 1


def test_a_model_without_a_key_stops_the_worker(settings: Settings):
    with services(settings, rag_graph_model="small/model") as core, pytest.raises(ConfigurationError):
        ingest._work(core)


def test_a_collection_s_graph_setting_extracts_and_removes_its_documents(
    people: People, world: World, core: Services, settings: Settings
):
    document = put(world, people.ann, TEXT, chunks=named({TEXT: ["Ledger Team"]}))
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", document)
    address = f"/api/v1/collections/{home}"

    def turned(on: bool) -> bool:
        changes = {"config": {"enable_knowledge_graph": on}}
        answer = people.alf.request("PATCH", address, changes)
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["config"]["enable_knowledge_graph"])

    assert turned(False) is False
    assert graph_rows(world, document) == 0
    put(world, people.ann, TEXT, chunks=named({TEXT: ["Ledger Team"]}), external_id="later")
    assert world.sql("select count(*) from rag.mentions where org_id = %s", people.acme.id) == [(0,)]
    assert turned(True) is True
    ingest._work(core)
    assert "ledger team" in {entity for _, entity in mentions(world, document)}
    counted = "select count(distinct document_id) from rag.mentions where org_id = %s"
    assert world.sql(counted, people.acme.id) == [(2,)]


def test_a_collection_is_in_the_graph_by_default(people: People):
    answer = people.ann.request("POST", "/api/v1/collections", {"name": "new"})
    assert answer.json()["config"]["enable_knowledge_graph"] is True
