"""Fixtures of the tests of the playground: scenarios in Chromium, and documents of an org."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local import ROOT
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.search_workspace import OUTAGE, put

HERE = Path(__file__).parent
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
Browse = Callable[..., None]


@pytest.fixture(scope="session")
def scenarios() -> Iterator[subprocess.Popen[str]]:
    """One process for all scenarios: Node loads Playwright longer than most of them take."""
    command = ["node", str(HERE / "browser.mjs")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        yield process


@pytest.fixture
def browse(browser: str, scenarios: subprocess.Popen[str]) -> Browse:
    """Goes through a scenario of scenarios.mjs or admin_scenarios.mjs, as an actor of the stack."""

    def browse(scenario: str, actor: Actor, **value: Any) -> None:
        given = {"scenario": scenario, "browser": browser, "url": actor.stack.url, "token": actor.token()}
        assert scenarios.stdin
        assert scenarios.stdout
        scenarios.stdin.write(json.dumps({**given, **value}) + "\n")
        scenarios.stdin.flush()
        error = json.loads(scenarios.stdout.readline())
        assert not error, error

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
