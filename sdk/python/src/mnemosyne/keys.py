"""The API key of an attempt. The asynchronous version is aio/keys.py."""

from collections.abc import Callable
from inspect import iscoroutine

from mnemosyne.config import key_of

ApiKey = str | Callable[[], str]


def current(api_key: ApiKey) -> str:
    """The key, or the result of the function that returns it. Raises ConfigurationError for a value that is
    no key, and the errors of the function."""
    if isinstance(api_key, str):
        return api_key
    key = api_key()
    if iscoroutine(key):
        # The result of a coroutine function, which only the asynchronous client can await.
        key.close()
    return key_of(key)
