"""The retriever and the query engine of LlamaIndex."""

import asyncio
import threading

import httpx
import pytest
from conftest import COLLECTION, OTHERS_COLLECTION, QUESTION
from llama_index.core import Settings
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

from mnemosyne import AsyncMnemosyne, Mnemosyne, NotFoundError
from mnemosyne.llama_index import (
    MnemosyneQueryEngine,
    MnemosyneRetriever,
    MnemosyneSimilarityPostprocessor,
)
from mnemosyne.models.chunk import RetrievalMode


def test_nodes_have_ids_scores_and_sources(client: Mnemosyne):
    nodes = MnemosyneRetriever(client, COLLECTION, similarity_top_k=3).retrieve(QUESTION)
    assert len(nodes) == 3
    assert nodes[0].get_content() == "The kettle of hall 3 becomes 63 degrees hot."
    assert nodes[0].metadata["title"] == "Kettle 3"
    assert nodes[0].node_id == nodes[0].metadata["chunk_id"]
    source = nodes[0].node.relationships[NodeRelationship.SOURCE]
    assert isinstance(source, RelatedNodeInfo)
    assert source.node_id == nodes[0].metadata["document_id"]
    scores = [node.score or 0.0 for node in nodes]
    assert scores == sorted(scores, reverse=True)


def test_filters_and_another_org_s_collection(client: Mnemosyne):
    (node,) = MnemosyneRetriever(client, COLLECTION, metadata_filter={"hall": 4}).retrieve(QUESTION)
    assert node.metadata["title"] == "Kettle 4"
    with pytest.raises(NotFoundError):
        MnemosyneRetriever(client, OTHERS_COLLECTION).retrieve(QUESTION)


def test_the_framework_s_own_query_engine_and_postprocessors_take_the_retriever(client: Mnemosyne):
    # The synthesizer requires a model, and does not call it.
    Settings.llm = MockLLM()
    engine = RetrieverQueryEngine(
        MnemosyneRetriever(client, COLLECTION, mode="semantic"),
        get_response_synthesizer(response_mode=ResponseMode.NO_TEXT),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.5)],
    )
    assert [node.metadata["title"] for node in engine.query(QUESTION).source_nodes][:1] == ["Kettle 3"]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "hierarchical"])
def test_the_postprocessor_removes_passages_by_similarity(client: Mnemosyne, mode: RetrievalMode):
    retriever = MnemosyneRetriever(client, COLLECTION, mode=mode)
    nodes = retriever.retrieve(QUESTION)
    similarities = sorted(node.metadata["similarity"] for node in nodes)
    engine = RetrieverQueryEngine(
        retriever,
        get_response_synthesizer(llm=MockLLM(), response_mode=ResponseMode.NO_TEXT),
        node_postprocessors=[MnemosyneSimilarityPostprocessor(similarity_cutoff=similarities[-1])],
    )
    assert [node.metadata["title"] for node in engine.query(QUESTION).source_nodes] == ["Kettle 3"]
    assert [node.metadata["title"] for node in asyncio.run(engine.aquery(QUESTION)).source_nodes] == [
        "Kettle 3"
    ]


def test_the_postprocessor_keeps_passages_that_were_found_by_words_alone(client: Mnemosyne):
    nodes = MnemosyneRetriever(client, COLLECTION, mode="keyword").retrieve(QUESTION)
    assert nodes
    assert MnemosyneSimilarityPostprocessor(similarity_cutoff=1).postprocess_nodes(nodes) == nodes


def test_the_query_engine_answers_with_sources_and_confidence(client: Mnemosyne):
    response = MnemosyneQueryEngine(client, COLLECTION).query(QUESTION)
    assert "63 degrees" in str(response)
    assert response.source_nodes[0].get_content() == "Kettle 3"
    assert response.metadata
    assert response.metadata["level"] in {"medium", "high"}
    assert response.metadata["withheld"] is False
    client.chat.sessions.delete(response.metadata["session_id"])


def test_asynchronous_calls_use_the_asynchronous_client(client: Mnemosyne):
    async def calls() -> tuple[int, str]:
        async with AsyncMnemosyne() as async_client:
            client.close()
            retriever = MnemosyneRetriever(client, COLLECTION, similarity_top_k=2, async_client=async_client)
            engine = MnemosyneQueryEngine(client, COLLECTION, async_client=async_client)
            return len(await retriever.aretrieve(QUESTION)), str(await engine.aquery(QUESTION))

    count, answer = asyncio.run(calls())
    assert count == 2
    assert "63 degrees" in answer


def test_without_an_asynchronous_client_asynchronous_calls_leave_the_event_loop_free():
    threads: list[int] = []
    hooks = {"request": [lambda _: threads.append(threading.get_ident())]}

    async def calls(client: Mnemosyne) -> None:
        await MnemosyneRetriever(client, COLLECTION).aretrieve(QUESTION)
        await MnemosyneQueryEngine(client, COLLECTION).aquery(QUESTION)

    with httpx.Client(event_hooks=hooks) as http_client:
        asyncio.run(calls(Mnemosyne(http_client=http_client)))
    assert len(threads) == 2
    assert threading.get_ident() not in threads
