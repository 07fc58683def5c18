# Generated from aio/ by `make generated`. Do not edit.
"""Resources of the client, a class for each."""

from mnemosyne.resources.chat import (
    ChatCompletionsResource,
    ChatResource,
    ChatSessionsResource,
)
from mnemosyne.resources.collections import CollectionsResource
from mnemosyne.resources.documents import DocumentsResource
from mnemosyne.resources.rag import RagResource
from mnemosyne.resources.records import RecordsResource
from mnemosyne.resources.retrievals import RetrievalsResource
from mnemosyne.resources.search import SearchResource

__all__ = [
    "ChatCompletionsResource",
    "ChatResource",
    "ChatSessionsResource",
    "CollectionsResource",
    "DocumentsResource",
    "RagResource",
    "RecordsResource",
    "RetrievalsResource",
    "SearchResource",
]
