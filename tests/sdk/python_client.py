"""What the tests of the Python SDK share: clients, what a stand-in sends, a worker beside."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from local.stack import Stack
from local.tools import ROOT
from mnemosyne import Mnemosyne
from tests.actors import Actor
from tests.isolation.test_keys import make

Result = TypeVar("Result")
SOURCE = ROOT / "sdk" / "python"
KEY = "mn_live_7f3a-nobody-may-see-this"
COLLECTION = {
    "id": "c1",
    "name": "docs",
    "document_count": 0,
    "created_at": "2026-11-14T10:30:00Z",
    "updated_at": "2026-11-14T10:30:00Z",
}
DOCUMENT = {
    "id": "d1",
    "collection_id": "c1",
    "status": "processing",
    "created_at": "2026-11-14T10:30:00Z",
    "updated_at": "2026-11-14T10:30:00Z",
}


def key_of(actor: Actor, **more: Any) -> str:
    return str(make(actor, **more)["key"])


def address_of(stack: Stack) -> str:
    return f"{stack.url}/api/v1"


def client_of(actor: Actor, **more: Any) -> Mnemosyne:
    """A client of the stack with a key of the actor's."""
    return Mnemosyne(key_of(actor), address_of(actor.stack), **more)


@contextmanager
def working(stack: Stack) -> Iterator[None]:
    """A schedule beside: what is brought meanwhile is worked on."""
    stopping = threading.Event()

    def work() -> None:
        headers = {"Authorization": f"Bearer {stack.state.worker_token}"}
        with httpx.Client(timeout=120) as client:
            while not stopping.wait(0.1):
                client.post(f"{stack.url}/functions/v1/ingest", headers=headers)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def ran(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Its result; in a thread of its own, since this one's event loop is a function's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
