"""The unmodified TypeScript clients of the Model Context Protocol: SDK 1.x and 2.x."""

from pathlib import Path

import pytest

from shared.config import Settings
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.test_mcp import EVERY_TOOL, KETTLE, QUESTION, ingest

SCRIPT = Path(__file__).with_name("mcp.mjs")
# The modules of each version's client.
MODULES = {
    "1.x": [f"@modelcontextprotocol/sdk/client/{name}.js" for name in ("index", "streamableHttp", "auth")],
    "2.x": ["@modelcontextprotocol/client"],
}


@pytest.mark.parametrize("version", MODULES)
def test_the_typescript_client_works_unmodified(people: People, settings: Settings, version: str):
    ingest(people.ann)
    client = {"modules": MODULES[version], "url": people.ann.stack.url, "token": people.ann.token()}
    result = run_node(SCRIPT, {**client, "question": QUESTION})
    assert set(result["tools"]) == EVERY_TOOL
    assert [passage["text"] for passage in result["search"]["structuredContent"]["results"]] == [KETTLE]
    assert "steel" in result["answer"]["structuredContent"]["answer"]
    assert result["invalid"]["isError"]
    assert "limit: " in result["invalid"]["content"][0]["text"]
    assert result["missing"]["isError"]
    assert result["missing"]["_meta"]["code"] == "document_not_found"
    assert result["resource"]["contents"][0]["text"] == KETTLE
    assert "A valid user token or API key is required" in result["refused"]
    assert result["metadata"]["authorization_servers"] == [settings.issuer]
