"""Resources of the client, a class for each."""

from mnemosyne.aio.resources.chat import (
    AsyncChatCompletionsResource,
    AsyncChatResource,
    AsyncChatSessionsResource,
)
from mnemosyne.aio.resources.collections import AsyncCollectionsResource
from mnemosyne.aio.resources.documents import AsyncDocumentsResource
from mnemosyne.aio.resources.rag import AsyncRagResource
from mnemosyne.aio.resources.records import AsyncRecordsResource
from mnemosyne.aio.resources.retrievals import AsyncRetrievalsResource
from mnemosyne.aio.resources.search import AsyncSearchResource

__all__ = [
    "AsyncChatCompletionsResource",
    "AsyncChatResource",
    "AsyncChatSessionsResource",
    "AsyncCollectionsResource",
    "AsyncDocumentsResource",
    "AsyncRagResource",
    "AsyncRecordsResource",
    "AsyncRetrievalsResource",
    "AsyncSearchResource",
]
