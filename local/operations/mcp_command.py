"""Command `mcp`: the MCP server of a deployment over standard input and output, for clients without HTTP."""

import argparse

import httpx

from local.operations.api_client import ApiClient

PING = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", metavar="EMAIL", default="", help="a user of the local stack")
    parser.add_argument("--url", help="a deployment, with the token or API key in RAG_TOKEN")


def run(client: httpx.Client, options: argparse.Namespace) -> None:
    # A wrong address or credential has a message of its own here.
    ApiClient(client).request("POST", "mcp", json=PING, headers={"Accept": "application/json"})
    # The SDK's types take longer to import than all other commands together.
    from local.operations.mcp_proxy import serve

    serve(str(client.build_request("POST", "mcp").url), client.headers["Authorization"])
