"""MCP over HTTP with the SDK's own client, on the real stack: tools, resources, errors, refusals."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from http.client import HTTPConnection
from threading import Event
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INVALID_PARAMS, PARSE_ERROR

from functions import mcp
from local import ROOT
from shared.api.contracts import mcp as wire
from shared.api.mcp_server import Tool
from shared.config import Settings
from shared.services import Services
from shared.types import Principal
from tests.actors import NOBODYS, Actor
from tests.conftest import People
from tests.functions.app_server import app_with, live, services_with
from tests.shared.examples import match
from tests.stand_in_server import Reply, StandIn

KETTLE = "The lid of kettle 7 is made of steel. It holds two litres of water."
QUESTION = "What is the lid of kettle 7 made of?"
BOTH_ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
METADATA = "/.well-known/oauth-protected-resource"
ENVELOPE_VERSION = "io.modelcontextprotocol/protocolVersion"
OFFSET = "offset: Send a whole number from 0 to 20000000."
EVERY_TOOL = {"search", "fetch", "answer", "read_document", "list_collections", "add_text"}
# Those that a key with that scope may use.
TOOLS = {
    "chat:read": {"search", "fetch", "answer", "read_document"},
    "documents:read": {"fetch", "read_document", "list_collections"},
}


@asynccontextmanager
async def connected(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


class Agent:
    """The SDK's client with the credential of an actor: each call has a connection of its own."""

    def __init__(
        self, actor: Actor, token: str | None = None, *, mode: str = "auto", url: str | None = None
    ) -> None:
        self._arguments = url or actor.stack.url, token or actor.token(), mode

    def run(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with connected(*self._arguments) as client:
                return await work(client)

        return anyio.run(main)

    def result(self, tool: str, **arguments: Any) -> Any:
        return self.run(lambda client: client.call_tool(tool, arguments))

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured content of the tool's result, which the client has checked with the schema."""
        result = self.result(tool, **arguments)
        assert not result.is_error, result
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    def error(self, tool: str, **arguments: Any) -> Any:
        result = self.result(tool, **arguments)
        assert result.is_error, result
        assert result.structured_content is None
        metadata = {name: result.meta[name] for name in ("status", "code", "message")}
        assert result.content[0].text == metadata["message"]
        return metadata


def key_of(actor: Actor, *scopes: str) -> str:
    key: str = actor.post("/api/keys", {"name": "agent", "scopes": scopes}).json()["key"]
    return key


def ingest(actor: Actor, text: str = KETTLE, namespace: str = "kettles") -> str:
    """Add a document; the id of its collection."""
    body = {"documents": [{"document_id": "kettle", "text": text, "title": "Kettle 7"}]}
    response = actor.post(f"/api/v1/knowledge/{namespace}/documents", body)
    assert response.status_code == 201, response.text
    collections = actor.request("GET", "/v1/collections").json()["data"]
    (collection_id,) = [row["id"] for row in collections if row["name"] == namespace]
    return str(collection_id)


def send(actor: Actor, message: Any, token: str | None = None, **headers: str) -> httpx.Response:
    return actor.request("POST", "/mcp", message, token=token, Accept="application/json", **headers)


def test_an_agent_searches_answers_and_reads(people: People):
    """tests/clients has clients of both eras of the protocol."""
    collection = ingest(people.ann)
    agent = Agent(people.ann)
    (passage,) = agent.call("search", query=QUESTION)["results"]
    assert (passage["title"], passage["text"], passage["offset"]) == ("Kettle 7", KETTLE, 0)
    assert not passage["truncated"]
    assert agent.call("search", query=QUESTION, collection_id=collection)["results"] == [passage]
    answer = agent.call("answer", question=QUESTION)
    assert "made of steel. [1]" in answer["answer"]
    assert (answer["withheld"], answer["confidence"]) == (False, "high")
    assert [source["document_id"] for source in answer["sources"]] == [passage["document_id"]]
    assert agent.call("answer", question="Who won the chess tournament in Reykjavik?")["withheld"]
    row = {"collection_id": collection, "name": "kettles", "description": None, "documents": 1}
    assert agent.call("list_collections") == {"collections": [row], "total": 1}


def test_the_documented_python_client_finds_a_passage(
    people: People, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ingest(people.ann, "Error E-42 means that the lid is open.")
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api/mcp.md").read_text(), re.DOTALL)
    monkeypatch.setenv("URL", people.ann.stack.url)
    monkeypatch.setenv("KEY", key_of(people.ann, "retrievals:read"))
    # A process of its own would import the SDK for seconds.
    exec(code, {})  # noqa: S102  # from this repository
    assert capsys.readouterr().out == "Kettle 7 Error E-42 means that the lid is open.\n"


def test_a_document_is_read_in_parts_and_as_a_resource(people: People):
    text = "".join(f"Sentence {number} says ä. " for number in range(550)).strip()
    ingest(people.ann, text)
    agent = Agent(people.ann)
    document = agent.call("search", query="Sentence 7", limit=1)["results"][0]["document_id"]
    parts, offset = [], 0
    while offset is not None:
        part = agent.call("read_document", document_id=document, offset=offset)
        assert (part["offset"], part["total_characters"]) == (offset, len(text))
        parts.append(part["text"])
        offset = part["next_offset"]
    assert "".join(parts) == text
    assert [len(part) for part in parts[:-1]] == [10_000] * (len(parts) - 1)
    assert agent.call("read_document", document_id=document, offset=10**6)["next_offset"] is None

    async def read(client: Client) -> list[str]:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert (await client.list_resources()).resources == []
        uri = template.uri_template.replace("{document_id}", document).removesuffix("{?offset}")
        return [(await client.read_resource(f"{uri}{end}")).contents[0].text for end in ("", "?offset=10000")]

    assert agent.run(read) == [parts[0], parts[1]]


def test_chatgpt_fetches_the_text_around_a_passage_by_its_id(people: People):
    """The shape that OpenAI documents for search and fetch, with the one argument that ChatGPT sends."""
    text = "".join(f"Sentence {number} says ä. " for number in range(2500)).strip()
    ingest(people.ann, text)
    agent = Agent(people.ann)
    for number in (7, 2400):
        results = agent.call("search", query=f"Sentence {number}")["results"]
        result = next(row for row in results if f"Sentence {number} " in row["text"])
        fetched = agent.call("fetch", id=result["id"])
        assert result["text"] in fetched["text"]
        assert (fetched["id"], fetched["title"]) == (result["id"], result["title"])
        assert fetched["url"] == result["url"] == f"citerow://documents/{result['id']}"
    assert (number, fetched["metadata"]["next_id"]) == (2400, None)
    first = agent.call("fetch", id=result["document_id"])
    assert len(first["text"]) == 40_000
    rest = agent.call("fetch", id=first["metadata"]["next_id"])
    assert first["text"] + rest["text"] == text
    for wrong in ("x", NOBODYS):
        assert agent.error("fetch", id=wrong)["code"] == "document_not_found"
    for offset in ("x", "", "-1", "99999999", "0000000009"):
        error = agent.error("fetch", id=f"{result['document_id']}?offset={offset}")
        assert error == {"status": 400, "code": "invalid_request", "message": OFFSET}


@pytest.mark.parametrize(
    ("tool", "sent", "same"),
    [
        ("search", {"limit": 1.0, "collection_id": None}, {"limit": 1}),
        ("list_collections", {"limit": "10", "offset": None}, {"limit": 10}),
        ("read_document", {"offset": " 3 ", "characters": "40"}, {"offset": 3, "characters": 40}),
    ],
)
def test_numbers_as_texts_and_nulls_are_arguments(
    people: People, tool: str, sent: dict[str, Any], same: dict[str, Any]
):
    ingest(people.ann)
    agent = Agent(people.ann)
    document = agent.call("search", query=QUESTION)["results"][0]["document_id"]
    more = {"search": {"query": QUESTION}, "read_document": {"document_id": document}}.get(tool, {})
    assert agent.call(tool, **more, **sent) == agent.call(tool, **more, **same)


def test_unclear_numbers_and_flags_are_refused(people: People):
    agent = Agent(people.ann)
    for limit in ("abc", "", 1.5, True, [1]):
        assert agent.error("search", query=QUESTION, limit=limit)["code"] == "invalid_request"
    assert agent.error("search", query=None)["code"] == "invalid_request"


def test_a_flag_may_be_a_text(people: People):
    ingest(people.ann)
    agent = Agent(people.ann)
    collection = agent.call("list_collections")["collections"][0]["collection_id"]
    for private, owner in (("false", None), ("true", people.ann.id)):
        added = agent.call("add_text", collection_id=collection, text=f"Gate {private}.", private=private)
        row = people.ann.request("GET", f"/v1/documents/{added['document_id']}").json()
        assert row["owner_id"] == owner
    error = agent.error("add_text", collection_id=collection, text="Gate.", private="perhaps")
    assert error["code"] == "invalid_request"


def test_later_versions_and_requests_without_accept_are_served(people: People):
    client = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    initialize = {**LIST, "method": "initialize", "params": {"protocolVersion": "2027-03-01", **client}}
    with httpx.Client(headers=people.ann.headers()) as http:
        del http.headers["Accept"]
        for version, path in (("2027-03-01", "/mcp"), ("2025-06-18", "/mcp/"), (None, "/mcp")):
            headers = {"MCP-Protocol-Version": version} if version else {}
            agreed = http.post(f"{people.ann.stack.url}{path}", json=initialize, headers=headers)
            assert agreed.json()["result"]["protocolVersion"] == "2025-11-25"
            # A text of the message may name the key of an envelope.
            listed = {**LIST, "params": {"_meta": {"progressToken": ENVELOPE_VERSION}}}
            tools = http.post(f"{people.ann.stack.url}{path}", json=listed, headers=headers)
            assert {tool["name"] for tool in tools.json()["result"]["tools"]} == EVERY_TOOL
        envelope = {"_meta": {ENVELOPE_VERSION: "2027-03-01"}}
        later = {"MCP-Protocol-Version": "2027-03-01"}
        refused = http.post(f"{people.ann.stack.url}/mcp", json={**LIST, "params": envelope}, headers=later)
        assert refused.status_code == 400


def test_passages_are_bounded():
    long = match("a" * 5000, start=100)
    passage = wire.Passage.of(long)
    assert (passage.text, passage.offset, passage.truncated) == ("a" * 2000, 100, True)
    assert not wire.Passage.of(match("a" * 2000)).truncated


def test_an_agent_adds_a_text(people: People):
    ingest(people.ann)
    collection = Agent(people.ann).call("list_collections")["collections"][0]["collection_id"]
    writer = Agent(people.ann, key_of(people.ann, "documents:write"))
    text = "# Kettle 8\nIts lid is made of glass."
    added = writer.call("add_text", collection_id=collection, text=text, private=True)
    assert added["status"] == "processing"
    path = f"/v1/documents/{added['document_id']}"
    row = people.ann.request("GET", path).json()
    assert (row["title"], row["owner_id"]) == ("Kettle 8", people.ann.id)
    assert people.alf.request("GET", path).status_code == 404
    reader = Agent(people.alf)
    assert reader.error("read_document", document_id=added["document_id"])["status"] == 404


@pytest.mark.parametrize("scope", ["documents:read", "chat:read"])
def test_a_key_sees_and_uses_only_the_tools_of_its_scopes(people: People, scope: str):
    agent = Agent(people.ada, key_of(people.ada, scope))
    listed = agent.run(lambda client: client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS[scope]
    assert {tool.name for tool in listed if not tool.annotations.read_only_hint} <= {"add_text"}
    for tool in EVERY_TOOL - TOOLS[scope]:
        error = agent.error(tool)
        assert (error["status"], error["code"]) == (403, "missing_scope")
        assert "Use a key that has it" in error["message"]


def test_errors_of_tools_say_what_to_do(people: People):
    agent = Agent(people.ann)
    unknown = agent.error("read_document", document_id=NOBODYS)
    assert unknown == {
        "status": 404, "code": "document_not_found", "message": "There is no such document. Check its id.",
    }  # fmt: skip
    assert agent.error("read_document", document_id="x")["code"] == "document_not_found"
    assert agent.error("search", query="x", collection_id="x")["code"] == "collection_not_found"
    invalid = agent.error("search", query=" ", limit=21, secret="s3cret")
    assert (invalid["status"], invalid["code"]) == (400, "invalid_request")
    for name in ("query", "limit", "secret"):
        assert f"{name}: " in invalid["message"]
    assert "s3cret" not in invalid["message"]

    async def call_unknown(client: Client) -> None:
        with pytest.raises(MCPError, match="no such tool") as raised:
            await client.call_tool("drop_tables", {})
        assert raised.value.code == INVALID_PARAMS
        document = f"citerow://documents/{NOBODYS}"
        refusals = {
            "There is no such document. Check its id.": (document, "citerow://documents/x"),
            "There is no such document. Its URI begins with citerow://documents/.": (
                NOBODYS, "file:///etc/passwd", "citerow://[s3cret]/x",
            ),
            OFFSET: (f"{document}?offset=-1", f"{document}?offset={'1' * 5000}"),
        }  # fmt: skip
        for message, uris in refusals.items():
            for uri in uris:
                with pytest.raises(MCPError) as raised:
                    await client.read_resource(uri)
                assert (raised.value.code, str(raised.value)) == (INVALID_PARAMS, message)

    agent.run(call_unknown)


def test_an_unexpected_exception_shows_no_details(
    people: People, services: Services, monkeypatch: pytest.MonkeyPatch
):
    def fail(services: Services, caller: Principal, arguments: wire.ListArguments) -> wire.CollectionList:
        raise LookupError("the text of a document")

    monkeypatch.setitem(mcp.server.tools, "fail", Tool(fail, ()))
    with live(mcp.app, services) as url:
        error = Agent(people.ann, url=url).error("fail")
    assert (error["status"], error["code"]) == (500, "internal_error")
    assert "text of a document" not in json.dumps(error)


def test_a_request_without_a_credential_leads_to_the_authorization_server(people: People, settings: Settings):
    for authorization in ("", "Bearer x", f"Bearer {people.ann.token(exp=1)}"):
        refused = send(people.ann, LIST, Authorization=authorization)
        assert refused.status_code == 401
        assert refused.json()["error"]["message"]
        challenge = refused.headers["WWW-Authenticate"]
        address = challenge.removeprefix('Bearer resource_metadata="').removesuffix('"')
        assert address == f"{people.ann.stack.url}{METADATA}/mcp"
    assert httpx.get(address).json() == {
        "resource": f"{people.ann.stack.url}/mcp", "authorization_servers": [settings.issuer],
        "bearer_methods_supported": ["header"], "resource_name": "citerow",
    }  # fmt: skip
    assert httpx.get(f"{people.ann.stack.url}{METADATA}").json() == httpx.get(address).json()
    # Not to an address of the client's choice.
    refused = send(people.ann, LIST, token="x", Host="evil.example")
    assert refused.headers["WWW-Authenticate"] == "Bearer"


def test_a_web_page_needs_an_allowed_origin(people: People, settings: Settings):
    with app_with(mcp.app, settings, rag_cors_origins=["https://app.example"]) as app:
        for origin, status in (("https://app.example", 200), ("https://evil.example", 403), (None, 200)):
            headers = {**people.ann.headers(), "Accept": "application/json"}
            headers |= {"Origin": origin} if origin else {}
            assert app.post("/mcp", json=LIST, headers=headers).status_code == status


def test_requests_count_against_the_limit(people: People, world: Any):
    world.tier(people.acme, api=3)
    remaining = [send(people.ann, LIST).headers["X-RateLimit-Remaining"] for _ in range(3)]
    assert remaining == ["2", "1", "0"]
    refused = send(people.ann, LIST)
    assert refused.status_code == 429
    wait = int(refused.headers["Retry-After"])
    assert refused.json()["error"]["data"] == {"code": "rate_limited", "retry_after_seconds": wait}
    # The SDK's client shows the message.
    shown = pytest.RaisesExc(MCPError, match="Too many requests")
    with pytest.RaisesGroup(shown, flatten_subgroups=True, allow_unwrapped=True):
        Agent(people.ann, mode="legacy").run(lambda client: client.list_tools())


def test_transport_errors_have_their_statuses(people: People):
    assert send(people.ann, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
    malformed = people.ann.raw("POST", "/mcp", "{")
    assert (malformed.status_code, malformed.json()["error"]["code"]) == (400, PARSE_ERROR)
    # Batches would count as one request.
    assert send(people.ann, [LIST, LIST]).status_code == 400
    for version in ("1999-01-01", "garbage", "9"):
        assert send(people.ann, LIST, **{"MCP-Protocol-Version": version}).status_code == 400
    assert people.ann.request("POST", "/mcp", LIST, Accept="text/html").status_code == 406
    listen = {**LIST, "method": "subscriptions/listen"}
    for headers in ({}, {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}):
        accepted = {"Accept": "application/json, text/event-stream", **headers}
        assert "error" in people.ann.request("POST", "/mcp", listen, **accepted).json()
    for method in ("GET", "DELETE"):
        assert people.ann.request(method, "/mcp").status_code == 405


@BOTH_ERAS
def test_a_disconnected_client_ends_the_model_call(
    settings: Settings, people: People, gateway: StandIn, mode: str
):
    ingest(people.ann)
    gateway.replies(Reply(chunks=[b": begun\n\n", Event()]))
    call = {**LIST, "method": "tools/call", "params": {"name": "answer", "arguments": {"question": QUESTION}}}
    headers = {**people.ann.headers(), "Accept": "application/json"}
    if mode == "auto":
        version = "2026-07-28"
        headers |= {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "answer"}
        call["params"]["_meta"] = {  # type: ignore[index]
            ENVELOPE_VERSION: version,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    model = {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url}
    with services_with(settings, **model) as services, live(mcp.app, services) as url:
        with closing(HTTPConnection(url.removeprefix("http://"))) as client:
            client.request("POST", "/mcp", json.dumps(call), {**headers, "Content-Type": "application/json"})
            gateway.wait_for_requests(1)
        assert gateway.left.wait(60)
