"""The asynchronous client, written by hand. Its synchronous twin beside this package is made from it:
`python -m local.sdk_python`."""

from mnemosyne.aio.client import AsyncMnemosyne
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.streaming import AsyncStream

__all__ = ["AsyncMnemosyne", "AsyncPage", "AsyncStream"]
