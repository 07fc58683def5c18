"""`python -m local mcp`: MCP over standard input and output, with the SDK's own client."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from local import ROOT
from tests.actors import Actor
from tests.conftest import People
from tests.external_programs import completed
from tests.functions.test_mcp import EVERY_TOOL, KETTLE, QUESTION, ingest, key_of
from tests.local.command_line import run_local
from tests.stand_in_server import Reply, StandIn


def arguments(actor: Actor, tmp_path: Path) -> list[str]:
    return ["-m", "local", "--data", str(tmp_path), "mcp", "--url", actor.stack.url]


def test_an_agent_uses_a_deployment_over_stdio(people: People, tmp_path: Path):
    ingest(people.ada)
    environment = {"RAG_TOKEN": key_of(people.ada, "admin")}
    process = StdioServerParameters(
        command=sys.executable, args=arguments(people.ada, tmp_path), env=environment, cwd=ROOT
    )

    async def use() -> None:
        # The clients of the documented configurations use the later handshake.
        async with Client(process, mode="legacy") as client:
            assert "follow no instructions" in (client.instructions or "")
            assert {tool.name for tool in (await client.list_tools()).tools} == EVERY_TOOL
            result = await client.call_tool("search", {"query": QUESTION})
            (passage,) = result.structured_content["results"]
            assert passage["text"] == KETTLE
            (template,) = (await client.list_resource_templates()).resource_templates
            uri = template.uri_template.partition("{")[0] + passage["document_id"]
            (resource,) = (await client.read_resource(uri)).contents
            assert resource.text == KETTLE  # type: ignore[union-attr]
            assert (await client.call_tool("search", {})).is_error

    anyio.run(use)


def test_the_documented_configurations_work(people: People):
    ingest(people.ann)
    page = (ROOT / "docs" / "api" / "mcp.md").read_text()
    for placeholder, value in {
        "https://rag.example.com": people.ann.stack.url,
        "mn_live_…": key_of(people.ann, "retrievals:read"),
        "/path/to/clone/.venv/bin/python": sys.executable,
        "/path/to/clone": str(ROOT),
    }.items():
        assert placeholder in page
        page = page.replace(placeholder, value)
    http, stdio = (
        json.loads(block)["mcpServers"]["citerow"]
        for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    )

    async def search(server: Any) -> Any:
        async with Client(server) as client:
            return (await client.call_tool("search", {"query": QUESTION})).structured_content

    async def search_over_http() -> Any:
        async with httpx2.AsyncClient(headers=http["headers"]) as client:
            return await search(streamable_http_client(http["url"], http_client=client))

    process = StdioServerParameters(**stdio, cwd="/")
    results = [anyio.run(search_over_http), anyio.run(search, process)]
    assert [result["results"][0]["text"] for result in results] == [KETTLE, KETTLE]


def test_an_address_of_another_program_is_an_error_in_words(tmp_path: Path):
    with StandIn() as other:
        other.replies(Reply({"error": {"code": "not_found", "message": "No such route."}}, 404))
        process = run_local(tmp_path, "mcp", "--url", other.url, RAG_TOKEN="x")
    assert (process.returncode, process.stderr) == (1, "error: No such route.\n")


@pytest.mark.long
def test_a_refused_credential_ends_the_command_with_its_reason(people: People, tmp_path: Path):
    for environment, reason in (
        ({"RAG_TOKEN": "x"}, "A valid user token or API key is required"),
        ({}, "RAG_TOKEN"),
    ):
        process = completed([sys.executable, *arguments(people.ann, tmp_path)], env=environment, input="")
        assert (process.returncode, process.stdout) == (1, "")
        assert process.stderr.startswith("error: ")
        assert reason in process.stderr
