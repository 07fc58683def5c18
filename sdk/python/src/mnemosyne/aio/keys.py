"""The key that an attempt goes with. Written by hand, as its synchronous twin (../keys.py)."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from mnemosyne.config import key_of

AsyncApiKey = str | Callable[[], str | Awaitable[str]]


async def current(api_key: AsyncApiKey) -> str:
    """Calls it, if it is a function. Raises ConfigurationError for another value than a key, and the
    errors of that function."""
    if isinstance(api_key, str):
        return api_key
    key = api_key()
    return key_of(await key if isawaitable(key) else key)
