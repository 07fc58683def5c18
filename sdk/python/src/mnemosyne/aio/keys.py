"""The key that an attempt goes with. Written by hand, as its synchronous twin (../keys.py)."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from mnemosyne.config import key_of

AsyncApiKey = str | Callable[[], str | Awaitable[str]]


async def current(api_key: AsyncApiKey) -> str:
    """Asks for it, where it is a function. Raises ConfigurationError for what is no key, and what that
    function raises."""
    if isinstance(api_key, str):
        return api_key
    key = api_key()
    return key_of(await key if isawaitable(key) else key)
