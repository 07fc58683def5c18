# Made from aio/ by `python -m local.generate_sync_sdk`: change that, and make this anew.
"""What the client leads to, a class for each noun."""

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
