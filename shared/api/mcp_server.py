"""MCP over HTTP: tools and documents of one caller, a server for each request, JSON replies.

No session outlives a request, so that any process can serve the next one. The route has authenticated and
counted the request; each tool checks its own scopes.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import getdoc, iscoroutinefunction, signature
from typing import Any

import anyio
import mcp_types as protocol
from fastapi import Request
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_META_KEY
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AsgiScope

from shared import PRODUCT
from shared.api.authentication import require_scope
from shared.api.contracts.mcp import DOCUMENT_URI, PART_CHARACTERS, ToolError, part_of_uri
from shared.api.health import VERSION
from shared.api.middleware import location_of
from shared.errors import InvalidRequest, RagError
from shared.services import Services
from shared.text.validation_message import validation_message
from shared.tracing import current
from shared.types import Principal, Scope

# The request body and the responses in OpenAPI.
MESSAGE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "title": "Message",
                    "description": "A message of JSON-RPC 2.0",
                    "required": ["jsonrpc", "method"],
                    "properties": {
                        "jsonrpc": {"const": "2.0"},
                        "id": {"type": ["string", "integer"]},
                        "method": {"type": "string"},
                        "params": {"type": "object"},
                    },
                }
            }
        },
    },
    "responses": {"202": {"description": "A notification was received"}},
}
_VERSION = re.compile(r"\d{4}-\d\d-\d\d")
Context = Any
Function = Callable[[Services, Principal, Any], Any]


class _Schema(GenerateJsonSchema):
    """Without titles of fields, which repeat the names."""

    def field_title_should_be_set(self, _: Any) -> bool:
        return False


@dataclass(frozen=True)
class Tool:
    """A function (services, caller, arguments) -> result, annotated with pydantic models. An API key needs
    one of the scopes."""

    function: Function
    scopes: tuple[Scope, ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def arguments(self) -> type[BaseModel]:
        model: type[BaseModel] = list(signature(self.function).parameters.values())[2].annotation
        return model

    @cached_property
    def definition(self) -> protocol.Tool:
        writes = Scope.DOCUMENTS_WRITE in self.scopes
        return protocol.Tool(
            name=self.name,
            description=" ".join((getdoc(self.function) or "").split()),
            input_schema=self.arguments.model_json_schema(schema_generator=_Schema),
            output_schema=signature(self.function).return_annotation.model_json_schema(
                mode="serialization", schema_generator=_Schema
            ),
            annotations=protocol.ToolAnnotations(
                read_only_hint=not writes, destructive_hint=writes, open_world_hint=False
            ),
        )

    async def call(self, services: Services, caller: Principal, arguments: Mapping[str, Any]) -> BaseModel:
        """Raises a RagError."""
        require_scope(caller, *self.scopes)
        try:
            request = self.arguments.model_validate(arguments)
        except ValidationError as invalid:
            raise InvalidRequest(validation_message(invalid)) from None
        if iscoroutinefunction(self.function):
            result: BaseModel = await self.function(services, caller, request)
        else:
            result = await run_in_threadpool(self.function, services, caller, request)
        return result


class ToolServer:
    """The tools of a function; the documents that `read_document` reads are resources as well."""

    def __init__(self, instructions: str) -> None:
        self.tools: dict[str, Tool] = {}
        self._instructions = instructions

    def tool(self, *scopes: Scope) -> Callable[[Function], Function]:
        """Decorator of a tool's function."""

        def add(function: Function) -> Function:
            self.tools[function.__name__] = Tool(function, scopes)
            return function

        return add

    async def respond(self, request: Request, services: Services, caller: Principal) -> Response:
        """The response to the JSON-RPC message in the request. Raises BodyTooLarge."""
        server: Server[Any] = Server(
            PRODUCT,
            version=VERSION,
            instructions=self._instructions,
            on_list_tools=partial(self._list, caller),
            on_call_tool=partial(self._call, services, caller),
            on_list_resources=_list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=partial(self._read, services, caller),
            # The tools have no arguments that clients repeat in headers.
            get_tool_input_schema=lambda _: None,
        )
        # The SDK's spans would repeat the request's.
        server.middleware.clear()
        return _Exchange(server, await request.body())

    async def _list(self, caller: Principal, _: Context, __: Any) -> protocol.ListToolsResult:
        """The tools that the caller may use."""
        usable = [tool.definition for tool in self.tools.values() if caller.may(*tool.scopes)]
        return protocol.ListToolsResult(tools=usable)

    async def _call(
        self, services: Services, caller: Principal, _: Context, call: protocol.CallToolRequestParams
    ) -> protocol.CallToolResult:
        tool = self.tools.get(call.name)
        if tool is None:
            raise MCPError(
                protocol.INVALID_PARAMS, "There is no such tool. Choose one of those in tools/list."
            )
        try:
            return _result(await tool.call(services, caller, call.arguments or {}))
        except Exception as fault:
            return _failed(ToolError.of(_error(fault)))

    async def _read(
        self, services: Services, caller: Principal, _: Context, read: protocol.ReadResourceRequestParams
    ) -> protocol.ReadResourceResult:
        try:
            document, offset = part_of_uri(read.uri)
            arguments = {"document_id": document, "offset": offset}
            part: Any = await self.tools["read_document"].call(services, caller, arguments)
        except Exception as fault:
            error = _error(fault)
            code = protocol.INTERNAL_ERROR if error.status >= 500 else protocol.INVALID_PARAMS
            raise MCPError(code, str(error), ToolError.of(error).model_dump()) from None
        text = protocol.TextResourceContents(uri=read.uri, mime_type="text/plain", text=part.text)
        return protocol.ReadResourceResult(contents=[text])


async def _list_resources(_: Context, __: Any) -> protocol.ListResourcesResult:
    """None: there may be millions of documents."""
    return protocol.ListResourcesResult(resources=[])


async def _list_templates(_: Context, __: Any) -> protocol.ListResourceTemplatesResult:
    template = protocol.ResourceTemplate(
        name="document",
        uri_template=f"{DOCUMENT_URI}{{document_id}}{{?offset}}",
        description=f"{PART_CHARACTERS} characters of a document's text, from the offset on.",
        mime_type="text/plain",
    )
    return protocol.ListResourceTemplatesResult(resource_templates=[template])


def _result(content: BaseModel) -> protocol.CallToolResult:
    """The content as JSON: structured, and as text for clients without structured content."""
    structured = content.model_dump(mode="json")
    text = json.dumps(structured, ensure_ascii=False)
    return protocol.CallToolResult(content=[protocol.TextContent(text=text)], structured_content=structured)


def _failed(error: ToolError) -> protocol.CallToolResult:
    """Without structured content: the TypeScript SDK 1.x checks it with the tool's output schema, also in an
    error."""
    return protocol.CallToolResult(
        content=[protocol.TextContent(text=error.message)], _meta=error.model_dump(), is_error=True
    )


def _error(fault: Exception) -> RagError:
    """The error for the client, recorded in the trace. An internal error has no details."""
    error = fault if isinstance(fault, RagError) else RagError(log_reason=location_of(fault))
    if trace := current.get():
        trace.error, trace.log_reason = error.code, error.log_reason if error.status >= 500 else None
    return error


class _Exchange(Response):
    """A server's response to one message. The work ends when the client disconnects."""

    def __init__(self, server: Server[Any], body: bytes) -> None:
        super().__init__()
        self._server = server
        self._message: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        scope = {**scope, "headers": self._negotiated(Headers(scope=scope)).raw}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_disconnected, tasks.cancel_scope, receive)
            async with manager.run():
                await manager.handle_request(scope, self._receive, send)
            tasks.cancel_scope.cancel()

    def _negotiated(self, headers: Headers) -> Headers:
        """With `Accept`, and without a later version of the protocol: `initialize` agreed on another. In a
        message with an envelope, the SDK's error names the versions."""
        changed = MutableHeaders(raw=list(headers.raw))
        changed.setdefault("Accept", "application/json")
        version = changed.get(MCP_PROTOCOL_VERSION_HEADER, "")
        is_later = _VERSION.fullmatch(version) and version > LATEST_PROTOCOL_VERSION
        if is_later and not _has_envelope(self._message[0]["body"]):
            del changed[MCP_PROTOCOL_VERSION_HEADER]
        return changed

    async def _receive(self) -> Message:
        if not self._message:
            await anyio.sleep_forever()
        return self._message.pop()


def _has_envelope(body: bytes) -> bool:
    try:
        return PROTOCOL_VERSION_META_KEY in json.loads(body)["params"]["_meta"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


async def _cancel_when_disconnected(scope: anyio.CancelScope, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
