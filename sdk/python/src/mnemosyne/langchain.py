"""LangChain: a retriever, and the messages of a chat session. Needs `mnemosyne-ai[langchain]`."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever

from mnemosyne.aio import AsyncMnemosyne
from mnemosyne.client import Mnemosyne
from mnemosyne.models.chunk import Chunk, RetrievalMode


class MnemosyneRetriever(BaseRetriever):
    """Passages that the client's key may read, best first.

    `collection_id`: None searches all of the caller's documents. `k`: the number of passages, 1 to 100.
    `metadata_filter`: values or operators ({"year": {"$gte": 2020}}). `k`, `mode`, `rerank` and
    `metadata_filter` may also be arguments of `invoke`. Without `async_client`, `ainvoke` uses `client` in a
    thread. Raises MnemosyneError.
    """

    client: Mnemosyne
    async_client: AsyncMnemosyne | None = None
    collection_id: str | None = None
    k: int = 4
    mode: RetrievalMode = "hybrid"
    rerank: bool | None = None
    metadata_filter: dict[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        result = self.client.retrievals.retrieve(self.collection_id, query, **self._arguments(options))
        return [_document(chunk) for chunk in result]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        if self.async_client is None:
            return await super()._aget_relevant_documents(query, run_manager=run_manager, **options)
        arguments = self._arguments(options)
        result = await self.async_client.retrievals.retrieve(self.collection_id, query, **arguments)
        return [_document(chunk) for chunk in result]

    def _arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("k", "mode", "rerank", "metadata_filter")}
        if unknown := options.keys() - own.keys():
            raise TypeError(f"MnemosyneRetriever has no argument {', '.join(sorted(unknown))}")
        arguments = {**own, **options}
        return {"top_k": arguments.pop("k"), **arguments}


class MnemosyneChatMessageHistory(BaseChatMessageHistory):
    """The messages of a chat session, for reading.

    The API stores each turn of its own chat (`client.chat.completions.create(session_id=...)`), so that there
    is nothing to add. Raises NotFoundError for a session of another user.
    """

    def __init__(self, client: Mnemosyne, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the framework declares a variable
        """All messages, the oldest first."""
        messages = self._client.chat.sessions.messages(self._session_id).auto_paging_iter()
        return [
            (HumanMessage if message.role == "user" else AIMessage)(content=message.content, id=message.id)
            for message in messages
        ]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            "The API stores each turn of its own chat: call client.chat.completions.create with session_id."
        )

    def clear(self) -> None:
        """Delete the session."""
        self._client.chat.sessions.delete(self._session_id)


def _document(chunk: Chunk) -> Document:
    return Document(id=chunk.chunk_id, page_content=chunk.content, metadata=chunk.all_metadata)
