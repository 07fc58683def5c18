"""The unmodified TypeScript client of the Model Context Protocol."""

from pathlib import Path

from shared.config import Settings
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.test_mcp import EVERY_TOOL, KETTLE, QUESTION, ingest

SCRIPT = Path(__file__).with_name("mcp.mjs")


def test_the_typescript_client_works_unmodified(people: People, settings: Settings):
    ingest(people.ann)
    result = run_node(
        SCRIPT, {"url": people.ann.stack.url, "token": people.ann.token(), "question": QUESTION}
    )
    assert set(result["tools"]) == EVERY_TOOL
    assert [passage["text"] for passage in result["search"]["structuredContent"]["passages"]] == [KETTLE]
    assert "steel" in result["answer"]["structuredContent"]["answer"]
    assert result["invalid"]["isError"]
    assert "limit: " in result["invalid"]["content"][0]["text"]
    assert result["resource"]["contents"][0]["text"] == KETTLE
    assert "A valid user token or API key is required" in result["refused"]
    assert result["metadata"]["authorization_servers"] == [settings.issuer]
