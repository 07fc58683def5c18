"""Resources of the client, a class for each."""

from mnemosyne.aio.resources.chat import (
    AsyncChatCompletionsResource,
    AsyncChatResource,
    AsyncChatSessionsResource,
)
from mnemosyne.aio.resources.collections import AsyncCollectionsResource
from mnemosyne.aio.resources.documents import AsyncDocumentsResource
from mnemosyne.aio.resources.retrievals import AsyncRetrievalsResource

__all__ = [
    "AsyncChatCompletionsResource",
    "AsyncChatResource",
    "AsyncChatSessionsResource",
    "AsyncCollectionsResource",
    "AsyncDocumentsResource",
    "AsyncRetrievalsResource",
]
