"""Fixtures of the tests of the playground: scenarios in Chromium, and documents of an org."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local import ROOT
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.search_workspace import OUTAGE, put

HERE = Path(__file__).parent
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
Browse = Callable[..., None]


@pytest.fixture
def browse(browser: str) -> Browse:
    """Goes through a scenario of scenarios.mjs or admin_scenarios.mjs, as an actor of the stack."""

    def browse(scenario: str, actor: Actor, **value: Any) -> None:
        signed_in = {"browser": browser, "url": actor.stack.url, "token": actor.token()}
        run_node(HERE / "browser.mjs", {**signed_in, **value}, scenario)

    return browse


@pytest.fixture
def readers(services: Services, people: People) -> People:
    """Ann's org knows of an outage."""
    put(services, people.ann, "incidents", "Billing outage", OUTAGE)
    return people


def crowd(world: World, actor: Actor, count: int) -> None:
    """So many more documents in the collection that there is."""
    assert actor.org is not None
    world.sql(
        "insert into rag.documents (org_id, collection_id, title, content, content_hash) "
        "select org_id, collection_id, 'Minutes ' || number, 'x', content_hash "
        "from rag.documents, generate_series(1, %s) as number where org_id = %s",
        count,
        actor.org.id,
    )
