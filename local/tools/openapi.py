"""OpenAPI documents of the functions, written to openapi/. A test compares them, so that no response schema
changes unnoticed."""

import json
from importlib import import_module

from functions.server import SLUGS
from local import ROOT

FOLDER = ROOT / "openapi"


def document_text(slug: str) -> str:
    """The text of the function's OpenAPI document."""
    document = import_module(SLUGS[slug]).app.openapi()
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write() -> None:
    """Write one file for each function and delete all others."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for slug in SLUGS:
        (FOLDER / f"{slug}.json").write_text(document_text(slug))
