"""API reference of several functions: an OpenAPI document and a page without scripts."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from shared import PRODUCT

TITLE = PRODUCT.capitalize()
SCHEMA = "#/components/schemas/"
STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
details { border-bottom: 1px solid #8884; padding: .3rem 0 }
summary { cursor: pointer }
code, pre { font: 13px/1.4 ui-monospace, monospace }
pre { overflow: auto; background: #8881; padding: .6rem }
b { display: inline-block; min-width: 4.2rem }
"""
# The page has no script and loads nothing.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
    ),
    "X-Content-Type-Options": "nosniff",
}


def merged(apps: Sequence[FastAPI]) -> dict[str, Any]:
    """The OpenAPI document of all apps, with an operation's function as its tag. Models of one name also have
    their file's name, and their package's if needed: ChatRequest, SearchAnswerResponse. A route of
    PlatformRoutes is described once, under /api/v1."""
    document = get_openapi(title=TITLE, version="1", routes=[route for app in apps for route in app.routes])
    for app in apps:
        for path, operations in app.openapi()["paths"].items():
            for method, own in operations.items():
                operation = document["paths"][path][method]
                operation["tags"] = [app.title]
                # FastAPI adds 422 to all routes; an app removes it where it never occurs.
                responses = operation["responses"].items()
                operation["responses"] = {
                    status: response for status, response in responses if status in own["responses"]
                }
    paths = document["paths"]
    for path in [path for path in paths if f"/api{path}" in paths]:
        # The id of the first operation has no number.
        paths[f"/api{path}"] = paths.pop(path)
        document["info"]["description"] = "The platform API is served under /v1 too, in place of /api/v1."
    text = json.dumps(document)
    names = {name for name in document["components"]["schemas"] if "__" not in name}
    for name in [name for name in document["components"]["schemas"] if "__" in name]:
        short = next(short for short in _short_names(name) if short not in names)
        names.add(short)
        text = re.sub(rf'(?<=["/]){name}(?=")', short, text)
    named: dict[str, Any] = json.loads(text)
    for name, schema in named["components"]["schemas"].items():
        schema["title"] = name
    return named


def _short_names(name: str) -> Iterator[str]:
    """ChatRequest and PackageChatRequest for package__chat_request__Request."""
    *path, model = name.split("__")
    words = ""
    for part in reversed(path):
        words = "".join(map(str.capitalize, part.split("_"))) + words
        yield words if words.endswith(model) else f"{words}{model}"


def page(document: Mapping[str, Any]) -> str:
    body = "\n".join([*_operations(document["paths"]), *_schemas(document["components"]["schemas"])])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{TITLE}</title><style>{STYLE}</style>'
        f'<h1>{TITLE}</h1><p>As OpenAPI: <a href="openapi.json">openapi.json</a></p>\n{body}</html>'
    )


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    by_function: dict[str, list[str]] = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            by_function.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    for function, entries in by_function.items():
        yield f"<h2>{escape(function)}</h2>"
        yield from entries


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parts = [f"<p>{escape(operation['description'])}</p>"] if "description" in operation else []
    if "parameters" in operation:
        parts += ["<p>Parameters</p>", _json(operation["parameters"])]
    if "requestBody" in operation:
        parts += ["<p>Request body</p>", _content(operation["requestBody"])]
    for status, response in operation["responses"].items():
        parts.append(f"<p>{status}: {escape(response['description'])}</p>{_content(response)}")
    summary = f"<b>{method.upper()}</b> <code>{escape(path)}</code>"
    return f"<details><summary>{summary}</summary>{''.join(parts)}</details>"


def _content(message: Mapping[str, Any]) -> str:
    """The model of each content type, by name if it has one."""
    models = ""
    for kind, content in message.get("content", {}).items():
        schema = content.get("schema", {})
        name = schema.get("$ref", "").removeprefix(SCHEMA)
        model = f'<a href="#{escape(name)}">{escape(name)}</a>' if name else _json(schema)
        models += f"<p><code>{escape(kind)}</code> {model}</p>"
    return models


def _schemas(schemas: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Models</h2>"
    for name, schema in schemas.items():
        summary = f"<summary><code>{escape(name)}</code></summary>"
        yield f'<details id="{escape(name)}">{summary}{_json(schema)}</details>'


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"
