"""Resources of the client, a class for each."""

from mnemosyne.aio.resources.chat import AsyncChatCompletionsResource as AsyncChatCompletionsResource
from mnemosyne.aio.resources.chat import AsyncChatResource as AsyncChatResource
from mnemosyne.aio.resources.chat import AsyncChatSessionsResource as AsyncChatSessionsResource
from mnemosyne.aio.resources.collections import AsyncCollectionsResource as AsyncCollectionsResource
from mnemosyne.aio.resources.documents import AsyncDocumentsResource as AsyncDocumentsResource
from mnemosyne.aio.resources.rag import AsyncRagResource as AsyncRagResource
from mnemosyne.aio.resources.records import AsyncRecordsResource as AsyncRecordsResource
from mnemosyne.aio.resources.retrievals import AsyncRetrievalsResource as AsyncRetrievalsResource
from mnemosyne.aio.resources.search import AsyncSearchResource as AsyncSearchResource
