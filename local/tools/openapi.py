"""OpenAPI documents of the contracts, written to openapi/. A test compares them, so that no response schema
changes unnoticed."""

import json
from collections.abc import Iterator
from importlib import import_module

from functions.server import SLUGS
from local import ROOT
from shared.api import openapi_reference

FOLDER = ROOT / "openapi"
# The functions of each contract; the last ones belong to no contract of an API.
CONTRACTS = {
    "rag": ("rag-search", "rag-answer"),
    "search": ("v1-search", "v1-similar", "v1-contents", "v1-answer"),
    "platform": (
        "collections", "documents", "retrievals", "chat", "webhooks", "sources", "records", "administration",
    ),
    "index": ("indexes", "index-query", "index-snapshots", "chat-completions"),
    "knowledge": ("knowledge",),
    "dify": ("dify",),
    "operations": ("health", "metrics", "ingest", "api-keys", "mcp"),
}  # fmt: skip


def document_text(contract: str) -> str:
    """The text of the contract's OpenAPI document. An operation's tag is its function."""
    document = openapi_reference.merged([import_module(SLUGS[slug]).app for slug in CONTRACTS[contract]])
    document["info"]["title"] = contract
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def operations() -> Iterator[tuple[str, str, str]]:
    """Slug, method and path of each operation of the files, of the platform API under both prefixes."""
    for contract in CONTRACTS:
        paths = json.loads((FOLDER / f"{contract}.json").read_text())["paths"]
        for path, methods in paths.items():
            for method, operation in methods.items():
                for address in openapi_reference.addresses(path):
                    yield operation["tags"][0], method, address


def write() -> None:
    """Write one file for each contract and delete all others."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for contract in CONTRACTS:
        (FOLDER / f"{contract}.json").write_text(document_text(contract))
