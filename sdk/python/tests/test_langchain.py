"""The retriever and the chat history of LangChain, by LangChain's own tests where there are some."""

import asyncio
from typing import Any

import pytest
from conftest import COLLECTION, OTHERS_COLLECTION, QUESTION
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests

from mnemosyne import AsyncMnemosyne, Mnemosyne, NotFoundError
from mnemosyne.langchain import MnemosyneChatMessageHistory, MnemosyneRetriever


class TestStandard(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[MnemosyneRetriever]:
        return MnemosyneRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": Mnemosyne(), "collection_id": COLLECTION}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def test_documents_have_ids_scores_and_metadata(client: Mnemosyne):
    documents = MnemosyneRetriever(client=client, collection_id=COLLECTION).invoke(QUESTION)
    assert documents[0].page_content == "The kettle of hall 3 becomes 63 degrees hot."
    assert documents[0].metadata["title"] == "Kettle 3"
    assert documents[0].metadata["hall"] == 3
    assert documents[0].id == documents[0].metadata["chunk_id"]
    scores = [document.metadata["score"] for document in documents]
    assert scores == sorted(scores, reverse=True)


def test_filters_are_given_to_the_retriever_or_to_a_call(client: Mnemosyne):
    retriever = MnemosyneRetriever(
        client=client, collection_id=COLLECTION, metadata_filter={"hall": {"$lte": 2}}, mode="keyword"
    )
    assert {document.metadata["hall"] for document in retriever.invoke(QUESTION)} == {1, 2}
    called = retriever.invoke(QUESTION, metadata_filter={"hall": 4}, mode="semantic")
    assert [document.metadata["title"] for document in called] == ["Kettle 4"]
    with pytest.raises(TypeError, match="no argument filter"):
        retriever.invoke(QUESTION, filter={"hall": 4})


def test_a_retriever_with_an_asynchronous_client_uses_it(client: Mnemosyne):
    async def invoke() -> list[str | None]:
        async with AsyncMnemosyne() as async_client:
            client.close()
            retriever = MnemosyneRetriever(
                client=client, async_client=async_client, collection_id=COLLECTION, k=2
            )
            return [document.id for document in await retriever.ainvoke(QUESTION)]

    assert len(asyncio.run(invoke())) == 2


def test_another_org_s_collection_is_not_found(client: Mnemosyne):
    with pytest.raises(NotFoundError):
        MnemosyneRetriever(client=client, collection_id=OTHERS_COLLECTION).invoke(QUESTION)


def test_a_session_s_messages_are_a_chat_history(client: Mnemosyne):
    answer = client.chat.completions.create(COLLECTION, [{"role": "user", "content": QUESTION}])
    assert answer.session_id
    history = MnemosyneChatMessageHistory(client, answer.session_id)
    question, reply = history.messages
    assert isinstance(question, HumanMessage)
    assert isinstance(reply, AIMessage)
    assert (question.content, reply.content) == (QUESTION, answer.response)
    history.add_user_message("And the kettle of hall 4?")
    follow_up = client.chat.completions.create(
        COLLECTION, [{"role": "user", "content": "And in hall 5?"}], session_id=history.session_id
    )
    assert follow_up.session_id == history.session_id
    assert [message.content for message in history.messages][2:4] == [
        "And the kettle of hall 4?",
        "And in hall 5?",
    ]


def test_a_chain_stores_its_turns_and_reads_them_again(client: Mnemosyne):
    history = MnemosyneChatMessageHistory(client, collection_id=COLLECTION)
    assert history.messages == []
    model = FakeListChatModel(responses=["Hello, Ann.", "Ann."])
    first, second = HumanMessage("I am Ann."), HumanMessage("Who am I?")
    history.add_messages([first, model.invoke([*history.messages, first])])

    async def turn() -> None:
        reply = await model.ainvoke([*await history.aget_messages(), second])
        await history.aadd_messages([second, reply])

    asyncio.run(turn())
    stored = MnemosyneChatMessageHistory(client, history.session_id).messages
    assert [(message.type, message.content) for message in stored] == [
        ("human", "I am Ann."),
        ("ai", "Hello, Ann."),
        ("human", "Who am I?"),
        ("ai", "Ann."),
    ]
    former = history.session_id
    history.clear()
    assert history.messages == []
    with pytest.raises(NotFoundError):
        MnemosyneChatMessageHistory(client, former).add_user_message("Hello")


def test_more_than_a_hundred_messages_are_stored_in_order(client: Mnemosyne):
    history = MnemosyneChatMessageHistory(client, collection_id=COLLECTION)
    history.add_messages([])
    assert history.session_id is None
    texts = [f"Message {number}" for number in range(101)]
    history.add_messages([HumanMessage(text) for text in texts])
    assert [message.content for message in history.messages] == texts


def test_messages_without_text_and_of_other_types_are_refused(client: Mnemosyne):
    history = MnemosyneChatMessageHistory(client)
    call = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])
    for message in (call, SystemMessage("Be brief."), ToolMessage("63", tool_call_id="1")):
        with pytest.raises(ValueError, match=f"of type {message.type}"):
            history.add_messages([HumanMessage("Hello"), message])
    assert history.session_id is None
