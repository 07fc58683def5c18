"""The merged OpenAPI document against the document of each function."""

from importlib import import_module
from typing import Any

from functions.server import SLUGS
from shared.api.openapi_reference import merged

SCHEMA = "#/components/schemas/"


def expanded(value: Any, schemas: dict[str, Any], inside: tuple[str, ...] = ()) -> Any:
    """The value with models in place of their names, and without titles."""
    if isinstance(value, list):
        return [expanded(item, schemas, inside) for item in value]
    if not isinstance(value, dict):
        return value
    name = value.get("$ref", "").removeprefix(SCHEMA)
    if name in inside:
        return len(inside) - inside.index(name)
    if name:
        return expanded(schemas[name], schemas, (*inside, name))
    return {
        key: expanded(item, schemas, inside)
        for key, item in value.items()
        if not (key == "title" and isinstance(item, str))
    }


def test_every_message_has_the_fields_of_its_own_functions_document():
    apps = [import_module(module).app for module in SLUGS.values()]
    document = merged(apps)
    for app in apps:
        own = app.openapi()
        for path, operations in own["paths"].items():
            described = path if path in document["paths"] else f"/api{path}"
            for method, operation in operations.items():
                of_all = document["paths"][described][method]
                for part in ("requestBody", "responses"):
                    assert expanded(of_all.get(part), document["components"]["schemas"]) == expanded(
                        operation.get(part), own.get("components", {}).get("schemas", {})
                    ), (path, method, part)
