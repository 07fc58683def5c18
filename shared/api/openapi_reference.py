"""OpenAPI document of several functions."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from shared import PRODUCT

TITLE = PRODUCT.capitalize()
SECOND_PREFIX = "Each path below /api/v1, except /api/v1/knowledge, is also served below /v1."


def addresses(path: str) -> list[str]:
    """A path of the document, and the one below /v1 that PlatformRoutes serves too."""
    is_platform = path.startswith("/api/v1/") and not path.startswith("/api/v1/knowledge/")
    return [path, path.removeprefix("/api")] if is_platform else [path]


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
    for path, second in [addresses(path) for path in paths if len(addresses(path)) > 1]:
        # The id of the first operation has no number.
        paths[path] = paths.pop(second)
        document["info"]["description"] = SECOND_PREFIX
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
