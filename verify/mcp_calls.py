"""Requests that call an MCP tool or read a resource; an error in the result counts as that HTTP status."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from mcp_types import Tool

from functions.mcp import PATH
from shared.api.contracts.mcp import DOCUMENT_URI
from verify.request_generator import Generator, Request
from verify.victim_objects import Values

HEADERS = {"Accept": "application/json", "MCP-Protocol-Version": "2025-11-25"}
# From the victim's values, and whether optional arguments are filled too.
Call = Callable[[Values, bool], Request]


@dataclass(frozen=True)
class McpRequest(Request):
    def send(self, client: httpx.Client, base: str, headers: Mapping[str, str]) -> httpx.Response:
        response = super().send(client, base, headers)
        if response.is_error:
            return response
        message = response.json()
        error = message["error"]["data"] if "error" in message else message["result"]
        error = error["_meta"] if error.get("isError") else error
        return httpx.Response(error.get("status", 200), content=response.content, request=response.request)


def tool_call(tool: Tool) -> Call:
    schema = tool.input_schema

    def make(values: Values, optional: bool) -> Request:
        arguments = Generator(schema.get("$defs", {}), values, optional).object(schema)
        return _request("tools/call", {"name": tool.name, "arguments": arguments})

    return make


def read_resource(values: Values, _: bool) -> Request:
    return _request("resources/read", {"uri": f"{DOCUMENT_URI}{values['document_id']}"})


def _request(method: str, params: dict[str, Any]) -> Request:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return McpRequest("POST", PATH, body=body, headers=HEADERS)
