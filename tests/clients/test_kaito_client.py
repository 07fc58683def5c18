"""KAITO RAGEngine's own Python client, unmodified, against the index API: only its base URL is ours."""

from collections.abc import Iterator
from typing import Any

import pytest
from kaito_rag_engine_client import AuthenticatedClient, Client
from kaito_rag_engine_client.api.chat import chat
from kaito_rag_engine_client.api.index import (
    create_index,
    delete_documents_in_index,
    delete_index,
    list_documents_in_index,
    list_indexes,
    load_index,
    persist_index,
    retrieve_index,
    update_documents_in_index,
)
from kaito_rag_engine_client.api.monitoring import get_health, get_metrics
from kaito_rag_engine_client.models import (
    ChatRequest,
    DeleteDocumentRequest,
    Document,
    IndexRequest,
    RetrieveRequest,
    UpdateDocumentRequest,
)

from local.stack import Stack
from tests.conftest import People

KETTLE = "The kettle switches off at 100 degrees. It holds 1.7 litres."
TOASTER = "The toaster browns bread in two minutes. It has two slots."


@pytest.fixture
def kaito(stack: Stack, people: People) -> Iterator[Any]:
    """ann's."""
    token = people.ann.token()
    with AuthenticatedClient(base_url=stack.url, token=token, raise_on_unexpected_status=True) as client:
        yield client


def document(text: str, **metadata: Any) -> Any:
    return Document.from_dict({"text": text, "metadata": metadata})


def indexed(kaito: Any, name: str = "rag_index") -> list[Any]:
    documents = [document(KETTLE, author="kaito"), document(TOASTER, author="ann")]
    rows: list[Any] = create_index.sync(client=kaito, body=IndexRequest(index_name=name, documents=documents))
    return rows


def test_the_client_creates_reads_and_deletes_documents(kaito: Any):
    kettle, toaster = indexed(kaito)
    assert (kettle.text, kettle.is_truncated) == (KETTLE, False)
    assert kettle.metadata.to_dict() == {"author": "kaito"}
    assert list_indexes.sync(client=kaito) == ["rag_index"]

    page = list_documents_in_index.sync("rag_index", client=kaito, limit=1, max_text_length=10)
    assert (page.count, page.total_items) == (1, 2)
    assert (page.documents[0].text, page.documents[0].is_truncated) == (KETTLE[:10], True)
    mine = list_documents_in_index.sync("rag_index", client=kaito, metadata_filter='{"author": "ann"}')
    assert [item.doc_id for item in mine.documents] == [toaster.doc_id]

    kettle.text = "The kettle switches off at 90 degrees."
    changes = UpdateDocumentRequest(documents=[kettle, toaster])
    answer = update_documents_in_index.sync("rag_index", client=kaito, body=changes)
    assert [item.doc_id for item in answer.updated_documents] == [kettle.doc_id]
    assert [item.doc_id for item in answer.unchanged_documents] == [toaster.doc_id]

    question = "When does the kettle switch off?"
    request = RetrieveRequest(index_name="rag_index", query=question, max_node_count=1)
    response = retrieve_index.sync(client=kaito, body=request)
    (result,) = response.results
    assert (response.count, result.doc_id, result.text) == (1, kettle.doc_id, kettle.text)

    gone = DeleteDocumentRequest(doc_ids=[kettle.doc_id, "nobody"])
    deleted = delete_documents_in_index.sync("rag_index", client=kaito, body=gone)
    assert (deleted.deleted_doc_ids, deleted.not_found_doc_ids) == ([kettle.doc_id], ["nobody"])
    delete_index.sync("rag_index", client=kaito)
    assert list_indexes.sync(client=kaito) == []


def test_a_snapshot_restores_the_documents(kaito: Any):
    kettle, _ = indexed(kaito)
    persist_index.sync("rag_index", client=kaito, path="./monday")
    update = UpdateDocumentRequest(documents=[Document(text="Nothing.", doc_id=kettle.doc_id)])
    update_documents_in_index.sync("rag_index", client=kaito, body=update)
    load_index.sync("rag_index", client=kaito, path="./monday", overwrite=True)
    texts = {item.text for item in list_documents_in_index.sync("rag_index", client=kaito).documents}
    assert texts == {KETTLE, TOASTER}


def test_a_chat_is_answered_from_an_index(kaito: Any):
    kettle, _ = indexed(kaito)
    messages = [{"role": "user", "content": "At how many degrees does the kettle switch off?"}]
    request = {"index_name": "rag_index", "model": "example_model", "messages": messages}
    answer = chat.sync(client=kaito, body=ChatRequest.from_dict(request))
    assert "100 degrees" in answer.choices[0].message.content
    assert answer.source_nodes[0].doc_id == kettle.doc_id


def test_invalid_requests_raise_validation_errors(kaito: Any):
    request = RetrieveRequest(index_name="x", query="x", max_node_count=301)
    answer = retrieve_index.sync(client=kaito, body=request)
    assert answer.detail[0].loc == ["body", "max_node_count"]


def test_health_is_public_and_metrics_are_for_the_operator(stack: Stack, people: People):
    with Client(base_url=stack.url) as client:
        health = get_health.sync(client=client)
        assert (health.status, health.detail) == ("Healthy", None)
    with AuthenticatedClient(base_url=stack.url, token=stack.state.metrics_token) as operator:
        assert b"rag_requests_total" in get_metrics.sync_detailed(client=operator).content
