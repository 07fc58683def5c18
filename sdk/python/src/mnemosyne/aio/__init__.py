"""The asynchronous client. `make generated` generates the synchronous one from it."""

from mnemosyne.aio.client import AsyncMnemosyne
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.streaming import AsyncStream

__all__ = ["AsyncMnemosyne", "AsyncPage", "AsyncStream"]
