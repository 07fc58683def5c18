"""The asynchronous client, written by hand. Its synchronous twin beside this package is made from it:
`python -m local.generate_sync_sdk`."""

from mnemosyne.aio.client import AsyncMnemosyne
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.streaming import AsyncStream

__all__ = ["AsyncMnemosyne", "AsyncPage", "AsyncStream"]
