"""The functions' secret, which clients may send too: the functions send it to PostgREST alone."""

import logging
from typing import Any

import pytest

from functions import rag_answer, rag_search
from shared.clients.postgrest import SECRET_HEADER
from shared.ingestion.synchronous_ingestion import NewDocument
from tests.actors import vector
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.test_documents import collection
from tests.ingestion import ingest
from tests.stand_in_server import Reply, Request, StandIn
from tests.upload_client import Uploads, page

TEXT = "The kiln may become 1180 degrees hot."


def of_models(request: Request) -> Any:
    """A vector, or an answer."""
    if request.path.endswith("/embeddings"):
        data = [{"object": "embedding", "index": 0, "embedding": vector(1)}]
        return {"object": "list", "model": "m", "data": data, "usage": {}}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def test_models_storage_and_logs_never_get_the_secret(
    uploading: Uploads, people: People, gateway: StandIn, caplog: pytest.LogCaptureFixture
):
    services = uploading.services
    ingest(
        services.database,
        services.embedder,
        people.ann.principal,
        NewDocument("The kiln", TEXT),
    )
    secret, own = people.ann.headers()[SECRET_HEADER], "of the client"
    headers = people.ann.headers() | {SECRET_HEADER: own}
    gateway.replies(Reply(json=of_models))
    writes = {"rag_llm_api_key": "sk-llm", "rag_llm_url": gateway.url}
    embeds = {"openai_api_key": "sk-embed", "rag_embedding_url": gateway.url}
    with caplog.at_level(logging.DEBUG):
        for function, name, changes in ((rag_answer, "answer", writes), (rag_search, "search", embeds)):
            with app_with(function.app, services.settings, **changes) as app:
                body = {"query_text": "How hot may the kiln become?"}
                response: Any = app.post(f"/api/rag/{name}", json=body, headers=headers)
                assert response.status_code == 200, response.text
        uploading.app.headers[SECRET_HEADER] = own
        uploading.bring(people.ann.direct(), collection(people.ann, "docs"), page(TEXT))
    assert {request.path for request in gateway.requests} == {"/chat/completions", "/embeddings"}
    for request in gateway.requests:
        assert not any(value in f"{request.headers} {request.body!r}" for value in (secret, own))
    by_service: dict[str, list[dict[str, str]]] = {"storage": [], "rest": []}
    for path, sent in uploading.server.requests:
        by_service.setdefault(path.split("/")[1], []).append(sent)
    # PostgREST gets it from the settings, not from the client.
    assert {sent.get(SECRET_HEADER.lower()) for sent in by_service["rest"]} == {secret}
    assert by_service["storage"]
    assert secret not in str(by_service["storage"])
    assert caplog.records
    assert not [record for record in caplog.records if secret in f"{record.getMessage()} {vars(record)}"]
