"""What each function says of itself, as OpenAPI documents: written to openapi/, where a test compares them,
so that no answer changes its form unseen."""

import json
from importlib import import_module

from functions.server import SLUGS
from local import ROOT

FOLDER = ROOT / "openapi"


def described(slug: str) -> str:
    """The function's document as its file has it."""
    document = import_module(SLUGS[slug]).app.openapi()
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write() -> list[str]:
    """A file for each function, and for nothing else; their names."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for slug in SLUGS:
        (FOLDER / f"{slug}.json").write_text(described(slug))
    return [f"{slug}.json" for slug in SLUGS]
