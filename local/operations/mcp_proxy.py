"""An MCP server over standard input and output that passes each request on to a deployment."""

from typing import Any

import anyio
import httpx
import httpx2
import mcp_types as protocol
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from shared import PRODUCT
from shared.clients.proxies import proxy_of_url

# Long enough for an answer of a slow model.
TIMEOUT_SECONDS = 300


def serve(url: str, authorization: str) -> None:
    """Until standard input ends."""
    anyio.run(_serve, url, authorization)


async def _serve(url: str, authorization: str) -> None:
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": authorization},
            timeout=TIMEOUT_SECONDS,
            proxy=proxy_of_url(url),
            # With the certificate authorities of the environment, without its proxies.
            verify=httpx.create_ssl_context(),
            trust_env=False,
        ) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
        stdio_server() as (read, write),
    ):
        server = _server(client)
        await server.run(read, write, server.create_initialization_options())


def _server(client: Client) -> Server[Any]:
    async def list_tools(_: Any, __: Any) -> protocol.ListToolsResult:
        return await client.list_tools()

    async def call_tool(_: Any, call: protocol.CallToolRequestParams) -> protocol.CallToolResult:
        return await client.call_tool(call.name, call.arguments)

    async def list_resources(_: Any, __: Any) -> protocol.ListResourcesResult:
        return await client.list_resources()

    async def list_templates(_: Any, __: Any) -> protocol.ListResourceTemplatesResult:
        return await client.list_resource_templates()

    async def read_resource(_: Any, read: protocol.ReadResourceRequestParams) -> protocol.ReadResourceResult:
        return await client.read_resource(read.uri)

    return Server(
        PRODUCT,
        instructions=client.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
