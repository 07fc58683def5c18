"""The key that an attempt goes with. Written by hand, as its asynchronous twin (aio/keys.py)."""

from collections.abc import Callable
from inspect import iscoroutine

from mnemosyne.config import key_of

ApiKey = str | Callable[[], str]


def current(api_key: ApiKey) -> str:
    """Calls it, if it is a function. Raises ConfigurationError for another value than a key, and the
    errors of that function."""
    if isinstance(api_key, str):
        return api_key
    key = api_key()
    if iscoroutine(key):
        # Of a coroutine function, which only the other client can await.
        key.close()
    return key_of(key)
