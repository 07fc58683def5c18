# Generated from aio/ by `python -m local.generate_sync_sdk`. Do not edit.
"""Resources of the client, a class for each."""

from mnemosyne.resources.chat import (
    ChatCompletionsResource,
    ChatResource,
    ChatSessionsResource,
)
from mnemosyne.resources.collections import CollectionsResource
from mnemosyne.resources.documents import DocumentsResource
from mnemosyne.resources.retrievals import RetrievalsResource

__all__ = [
    "ChatCompletionsResource",
    "ChatResource",
    "ChatSessionsResource",
    "CollectionsResource",
    "DocumentsResource",
    "RetrievalsResource",
]
