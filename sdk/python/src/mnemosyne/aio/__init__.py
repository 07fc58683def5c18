"""The asynchronous client. `python -m local.generate_sync_sdk` generates the synchronous one from it."""

from mnemosyne.aio.client import AsyncMnemosyne
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.streaming import AsyncStream

__all__ = ["AsyncMnemosyne", "AsyncPage", "AsyncStream"]
