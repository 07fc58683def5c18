"""The Vercel AI SDK of npm, unmodified, in the route of docs/frameworks.md."""

from collections.abc import Iterator

import pytest

from functions import chat_completions
from local import ROOT
from shared.services import Services
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.app_server import live
from tests.functions.chat_completions_client import KETTLE, QUESTION, index

CLIENTS = ROOT / "tests" / "clients"
SCRIPT = CLIENTS / "ai_sdk.mjs"


@pytest.fixture
def url(services: Services) -> Iterator[str]:
    with live(chat_completions.app, services) as address:
        yield address


def test_the_documentation_has_the_route_that_is_tested():
    page = (ROOT / "docs" / "frameworks.md").read_text()
    assert f"```js\n{(CLIENTS / 'ai_sdk_route.mjs').read_text()}```" in page


def test_a_route_streams_an_answer_with_its_passages(url: str, people: People, services: Services):
    index(services, people.ann, "kettles", KETTLE)
    token = people.ann.headers()["Authorization"].removeprefix("Bearer ")
    answer = run_node(SCRIPT, {"url": url, "token": token, "question": QUESTION})
    assert answer["errors"] == []
    assert answer["withoutToken"] == 401
    assert "100 degrees" in answer["text"]
    assert [node["text"] for node in answer["metadata"]["source_nodes"]] == [KETTLE]
    assert answer["metadata"]["confidence_detail"]["level"] == "high"
