"""The API key of an attempt. The synchronous version is ../keys.py."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from mnemosyne.config import key_of

AsyncApiKey = str | Callable[[], str | Awaitable[str]]


async def current(api_key: AsyncApiKey) -> str:
    """The key, or the result of the function that returns it. Raises ConfigurationError for a value that is
    no key, and the errors of the function."""
    if isinstance(api_key, str):
        return api_key
    key = api_key()
    return key_of(await key if isawaitable(key) else key)
