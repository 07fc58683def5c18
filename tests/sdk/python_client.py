"""What the tests of the Python SDK share: clients, and what a stand-in sends."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from local import ROOT
from local.stack import Stack
from mnemosyne import Mnemosyne
from tests.actors import Actor
from tests.isolation.test_api_keys import make

Result = TypeVar("Result")
SOURCE = ROOT / "sdk" / "python"
KEY = "mn_live_7f3x-nobody-may-see-this"
HOME = "4be3f7db-0000-4000-8000-000000000001"
COLLECTION = {
    "id": HOME, "name": "docs", "document_count": 0, "created_at": "2026-11-14T10:30:00Z",
    "updated_at": "2026-11-14T10:30:00Z",
}  # fmt: skip
DOCUMENT = {
    "id": "d1", "collection_id": HOME, "status": "processing", "created_at": "2026-11-14T10:30:00Z",
    "updated_at": "2026-11-14T10:30:00Z",
}  # fmt: skip


def key_of(actor: Actor, **more: Any) -> str:
    return str(make(actor, **more)["key"])


def address_of(stack: Stack) -> str:
    return f"{stack.url}/api/v1"


def client_of(actor: Actor, **more: Any) -> Mnemosyne:
    """A client of the stack with a key of the actor's."""
    return Mnemosyne(key_of(actor), address_of(actor.stack), **more)


def ran(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Its result; in a thread of its own, since this one's event loop is a function's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
