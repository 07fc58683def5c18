"""Operations of all apps, with a request generator for each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import unwrap
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from functions.mcp import PATH, server
from functions.server import SLUGS
from verify import request_examples
from verify.mcp_calls import Call, read_resource, tool_call
from verify.request_generator import Generator, Request, Schema
from verify.victim_objects import Values

METHODS = ("get", "post", "put", "patch", "delete")
MULTIPART = "multipart/form-data"
FILE = ("paper.txt", b"The code of the vault door is in the safe.", "text/plain")


@dataclass(frozen=True)
class Route:
    """One operation. An alias is another path to the same endpoint function and dependencies of an app."""

    slug: str
    method: str
    path: str
    operation: Mapping[str, Any]
    components: Mapping[str, Schema]
    is_alias: bool

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def example(self) -> str:
        """The key of the tables of examples."""
        path = self.path.removeprefix("/api") if self.path.startswith("/api/v1") else self.path
        return f"{self.method} {path}"

    def request(self, values: Values, *, optional: bool) -> Request:
        """A valid request for the objects of these values."""
        aliases = {name: values[other] for name, other in request_examples.ALIASES.get(self.slug, {}).items()}
        values = {**values, **aliases}
        generator = Generator(self.components, values, optional)
        path, query, headers = self.path, dict[str, Any](), dict[str, str]()
        of_path = {**values, **request_examples.PATHS.get(self.example, _nothing)(values)}
        for parameter in self.operation.get("parameters", ()):
            name, place, schema = parameter["name"], parameter["in"], parameter.get("schema", {})
            if name == "token":
                query[name] = values["link"]
            elif place == "path":
                value = Generator(self.components, of_path, optional).value(name, schema)
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            elif parameter.get("required") or (optional and generator.names_object(name, schema)):
                where = query if place == "query" else headers
                where[name] = generator.value(name, schema)
        query |= request_examples.QUERIES.get(self.example, _nothing)(values)
        body, form, files = self._body(generator, values)
        return Request(self.method, path, query, body, form, files, headers)

    def _body(
        self, generator: Generator, values: Values
    ) -> tuple[Any, Mapping[str, Any] | None, Mapping[str, Any] | None]:
        more = request_examples.BODIES.get(self.example, _nothing)(values)
        content = self.operation.get("requestBody", {}).get("content", {})
        if MULTIPART in content:
            form = generator.value("body", content[MULTIPART]["schema"])
            return None, {name: value for name, value in form.items() if name != "file"}, {"file": FILE}
        if not content:
            return None, None, None
        return {**generator.value("body", content["application/json"]["schema"]), **more}, None, None


@dataclass(frozen=True)
class McpRoute(Route):
    """The route of MCP with a call of one tool, or with the reading of a resource."""

    call: str
    make: Call

    @property
    def name(self) -> str:
        return f"{self.method} {self.path} {self.call}"

    def request(self, values: Values, *, optional: bool) -> Request:
        return self.make(values, optional)


def _nothing(_: Values) -> dict[str, Any]:
    return {}


def routes(apps: Mapping[str, FastAPI] | None = None) -> list[Route]:
    """The operations of these apps, or of all functions, those of one endpoint function after each other."""
    return list(_all_routes()) if apps is None else [*_routes_of(apps)]


@cache
def _all_routes() -> tuple[Route, ...]:
    """Cached, since the descriptions of all functions take two seconds."""
    return tuple(_routes_of({slug: import_module(module).app for slug, module in SLUGS.items()}))


def _routes_of(apps: Mapping[str, FastAPI]) -> Iterator[Route]:
    for slug, app in apps.items():
        yield from _routes(slug, app)


def hidden_paths(apps: Mapping[str, FastAPI] | None = None) -> Iterator[str]:
    """The paths that an app serves but does not describe: no request can be generated for them."""
    apps = apps or {slug: import_module(module).app for slug, module in SLUGS.items()}
    for app in apps.values():
        for route in app.routes:
            if not isinstance(route, APIRoute) or not route.include_in_schema:
                yield getattr(route, "path", str(route))


def _routes(slug: str, app: FastAPI) -> Iterable[Route]:
    # Not app.openapi(), which keeps the description of its first call.
    description = get_openapi(title=slug, version="0", routes=app.routes)
    components = description.get("components", {}).get("schemas", {})
    endpoints = {
        (method.lower(), route.path_format): (
            unwrap(route.endpoint),
            *(dependency.dependency for dependency in route.dependencies),
        )
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    ids: set[Any] = set()
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if path == PATH:
                calls = {name: tool_call(tool.definition) for name, tool in server.tools.items()}
                for name, make in {**calls, "resources/read": read_resource}.items():
                    yield McpRoute(slug, method.upper(), path, operation, components, False, name, make)
            elif method in METHODS:
                endpoint = endpoints.get((method, path), path)
                yield Route(slug, method.upper(), path, operation, components, (method, endpoint) in ids)
                ids.add((method, endpoint))
