"""Requests and arguments generated from JSON schemas and from SQL types."""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import httpx

from verify.victim_objects import QUESTION, Values

Schema = Mapping[str, Any]
# Texts that a search matches, and an address that no name server knows.
TEXTS = dict.fromkeys(("q", "query", "question", "query_text", "message", "text", "content"), QUESTION)
ADDRESS = "https://hooks.invalid/in"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    form: Mapping[str, Any] | None = None
    files: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def send(self, client: httpx.Client, base: str, headers: Mapping[str, str]) -> httpx.Response:
        return client.request(
            self.method, f"{base}{self.path}", params=self.query or None, json=self.body, data=self.form,
            files=self.files, headers={**self.headers, **headers},
        )  # fmt: skip

    def shape(self) -> Any:
        """The names of all fields, without their values."""
        return _shape([self.query, self.body, self.form, self.headers])

    def texts(self) -> set[str]:
        """All strings of the request: a response may repeat them, also in a URL."""
        sent = set(_strings([self.query, self.body, self.form, list(self.headers.values())]))
        sent |= {unquote(part) for part in self.path.split("/")}
        return sent | {quote(text) for text in sent}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _shape(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _shape(item) for name, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list | tuple) else None


def _tomorrow() -> str:
    return (datetime.now(UTC) + timedelta(days=1)).isoformat()


def snake(name: str) -> str:
    """organizationId and X-Workspace-Id as organization_id and x_workspace_id."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


@dataclass(frozen=True)
class Generator:
    """Values of a schema, with the victim's where a name says which object is meant.

    With `optional`, fields that may be left out are filled too where they name an object.
    """

    components: Mapping[str, Schema]
    values: Values
    optional: bool

    def value(self, name: str, schema: Schema) -> Any:
        schema = self._resolve(schema)
        of_item = self._resolve(schema.get("items", {}))
        if snake(name) in self.values and "properties" not in schema and "properties" not in of_item:
            known = self.values[snake(name)]
            return [known] if schema.get("type") == "array" and not isinstance(known, list) else known
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object" | None if "properties" in schema or "type" in schema:
                return self.object(schema)
            case "array":
                return [self.value(name, schema.get("items", {}))]
            case "integer" | "number":
                return max(schema.get("default", 1), schema.get("minimum", 1))
            case "boolean":
                return schema.get("default", False)
            case _:
                return self._text(name, schema)

    def object(self, schema: Schema) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            name: self.value(name, of_field)
            for name, of_field in schema.get("properties", {}).items()
            if name in required or (self.optional and self.names_object(name, of_field))
        }

    def names_object(self, name: str, schema: Schema) -> bool:
        """Whether the field, or a field within it, refers to an object of the victim."""
        schema = self._resolve(schema)
        inside = schema.get("properties", {})
        return snake(name) in self.values or any(self.names_object(*item) for item in inside.items())

    def _resolve(self, schema: Schema) -> Schema:
        """The schema itself, or the first alternative that is not null and names an object, if one does."""
        if "$ref" in schema:
            return self._resolve(self.components[schema["$ref"].rpartition("/")[2]])
        choices = [self._resolve(choice) for choice in schema.get("oneOf", schema.get("anyOf", ()))]
        choices = [choice for choice in choices if choice.get("type") != "null"]
        naming = [
            choice
            for choice in choices
            if any(self.names_object(*item) for item in choice.get("properties", {}).items())
        ]
        return (naming or choices or [schema])[0]

    def _text(self, name: str, schema: Schema) -> str:
        if schema.get("format") == "uuid":
            return str(uuid4())
        if schema.get("format") == "date-time":
            return _tomorrow()
        if name == "url":
            return ADDRESS
        return TEXTS.get(snake(name), f"{name} {secrets.token_hex(4)}")


# A value for a parameter of an SQL type.
SQL_VALUES: dict[str, Any] = {
    "text": lambda: f"text {secrets.token_hex(4)}",
    "uuid": lambda: str(uuid4()),
    "integer": lambda: 10,
    "bigint": lambda: 10,
    "double precision": lambda: 0.5,
    "boolean": lambda: False,
    "jsonb": dict,
    "text[]": list,
    "uuid[]": list,
    "timestamp with time zone": _tomorrow,
}


def sql_value(name: str, kind: str, values: Values) -> Any:
    """An argument of that name and SQL type."""
    if name in values:
        known = values[name]
        return [known] if kind.endswith("[]") and not isinstance(known, list) else known
    if name in TEXTS:
        return TEXTS[name]
    return SQL_VALUES.get(kind, str)()
