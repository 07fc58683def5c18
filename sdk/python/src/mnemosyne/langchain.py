"""LangChain: a retriever, and the messages of a chat session. Needs `mnemosyne-ai[langchain]`."""

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever

from mnemosyne.aio import AsyncMnemosyne
from mnemosyne.client import Mnemosyne
from mnemosyne.models.chat import SessionMessageParam
from mnemosyne.models.chunk import Chunk, RetrievalMode

# A request takes no more.
MAX_MESSAGES = 100


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
    """The messages of a chat session, which its user alone can read.

    Without `session_id` the first messages create a session, for `collection_id` or for all collections, and
    `session_id` is its id. Raises NotFoundError for a session of another user.
    """

    def __init__(
        self, client: Mnemosyne, session_id: str | None = None, *, collection_id: str | None = None
    ) -> None:
        self._client = client
        self._collection_id = collection_id
        self.session_id = session_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the framework declares a variable
        """All messages, the oldest first."""
        if self.session_id is None:
            return []
        messages = self._client.chat.sessions.messages(self.session_id).auto_paging_iter()
        return [
            (HumanMessage if message.role == "user" else AIMessage)(content=message.content, id=message.id)
            for message in messages
        ]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages of a user or a model, in requests of 100. Raises ValueError for messages of other
        types, and for messages without text, such as calls of tools."""
        texts = list(map(_message, messages))
        sessions = self._client.chat.sessions
        for start in range(0, len(texts), MAX_MESSAGES):
            batch = texts[start : start + MAX_MESSAGES]
            if self.session_id is None:
                self.session_id = sessions.create(batch, collection_id=self._collection_id).session_id
            else:
                sessions.add_messages(self.session_id, batch)

    def clear(self) -> None:
        """Delete the session. Later messages create another one."""
        if self.session_id is not None:
            self._client.chat.sessions.delete(self.session_id)
        self.session_id = None


def _message(message: BaseMessage) -> SessionMessageParam:
    if not isinstance(message, (HumanMessage, AIMessage)) or not message.text:
        raise ValueError(
            f"A session stores texts of users and models, not this message of type {message.type}."
        )
    role: Literal["user", "assistant"] = "user" if isinstance(message, HumanMessage) else "assistant"
    return {"role": role, "content": str(message.text)}


def _document(chunk: Chunk) -> Document:
    return Document(id=chunk.chunk_id, page_content=chunk.content, metadata=chunk.all_metadata)
