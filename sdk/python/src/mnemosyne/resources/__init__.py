# Generated from aio/ by `make generated`. Do not edit.
"""Resources of the client, a class for each."""

from mnemosyne.resources.chat import ChatCompletionsResource as ChatCompletionsResource
from mnemosyne.resources.chat import ChatResource as ChatResource
from mnemosyne.resources.chat import ChatSessionsResource as ChatSessionsResource
from mnemosyne.resources.collections import CollectionsResource as CollectionsResource
from mnemosyne.resources.documents import DocumentsResource as DocumentsResource
from mnemosyne.resources.rag import RagResource as RagResource
from mnemosyne.resources.records import RecordsResource as RecordsResource
from mnemosyne.resources.retrievals import RetrievalsResource as RetrievalsResource
from mnemosyne.resources.search import SearchResource as SearchResource
