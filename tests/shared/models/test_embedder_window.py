"""The window of a remote embedder, by the published responses of four servers."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from shared.errors import EmbeddingFailed
from shared.models.embedder_window import reported_window
from shared.models.embeddings import embedder_for
from shared.models.openai_embedder import OpenAIEmbedder
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, StandIn

MISSING = Reply(status=404, body=b"404 page not found")
VLLM_MODEL = {
    "id": "BAAI/bge-m3", "object": "model", "created": 1_760_000_000, "owned_by": "vllm",
    "root": "BAAI/bge-m3", "parent": None, "max_model_len": 8192, "permission": [],
}  # fmt: skip
VLLM = Reply(json={"object": "list", "data": [VLLM_MODEL]})


def llama_cpp(**meta: int) -> Reply:
    entry = {"id": "nomic.gguf", "object": "model", "created": 1, "owned_by": "llamacpp", "meta": meta}
    return Reply(json={"models": [], "object": "list", "data": [entry]})


OLLAMA_NAMES = [
    {"id": f"{name}:latest", "object": "model", "created": 1, "owned_by": "library"}
    for name in ("nomic-embed-text", "llama3.2")
]
OLLAMA_MODELS = Reply(json={"object": "list", "data": OLLAMA_NAMES})
OLLAMA_INFO = {
    "general.architecture": "nomic-bert", "nomic-bert.context_length": 2048,
    "nomic-bert.embedding_length": 768,
}  # fmt: skip
OLLAMA_DETAILS = Reply(json={"modelfile": "…", "model_info": OLLAMA_INFO, "capabilities": ["embedding"]})
TEI = Reply(json={"model_id": "intfloat/multilingual-e5-small", "max_input_length": 512})
SERVERS = {
    "vllm": ("BAAI/bge-m3", [VLLM], 8192),
    "llama.cpp": ("nomic", [llama_cpp(n_ctx_train=2048, n_embd=768)], 2048),
    "llama.cpp with a context of its own": ("nomic", [llama_cpp(n_ctx=512, n_ctx_train=2048)], 512),
    "text embeddings inference": ("any", [MISSING, TEI], 512),
    "ollama": ("nomic-embed-text", [OLLAMA_MODELS, MISSING, OLLAMA_DETAILS], 2048),
    "none of them": ("any", [Reply(json={"data": []}), MISSING, MISSING], None),
    "ollama behind a page": ("nomic", [Reply(json={"data": 5}), Reply(body=b"<html>"), OLLAMA_DETAILS], 2048),
    "lists": ("any", [Reply(json=[]), Reply(json=[]), Reply(json={"model_info": []})], None),
    "a window of no use": ("nomic", [llama_cpp(n_ctx=0, n_ctx_train=0), MISSING, MISSING], None),
}


@pytest.mark.parametrize("server", SERVERS)
def test_the_window_is_the_server_s(service: StandIn, server: str):
    model, replies, window = SERVERS[server]
    service.replies(*replies)
    assert reported_window(f"{service.url}/v1", "key", model) == window
    paths = ["/v1/models", "/info", "/api/show"]
    assert [request.path for request in service.requests] == paths[: len(service.requests)]
    assert {request.headers["authorization"] for request in service.requests} == {"Bearer key"}


def test_a_server_that_is_gone_is_an_error():
    with pytest.raises(EmbeddingFailed):
        reported_window("http://127.0.0.1:9", "key", "any")


def embedder(**fields: Any) -> OpenAIEmbedder:
    made = embedder_for(settings(openai_api_key="key", **fields))
    assert isinstance(made, OpenAIEmbedder)
    return closed_after_test(made)


def test_an_embedder_asks_once_and_its_passages_fit(service: StandIn):
    service.replies(llama_cpp(n_ctx=256))
    small = embedder(rag_embedding_url=f"{service.url}/v1", rag_embedding_model="nomic")
    assert (small.window, small.passage_tokens, small.window) == (256, 256, 256)
    assert len(service.requests) == 1


def test_a_window_is_read_again_after_a_failure(service: StandIn, monkeypatch: pytest.MonkeyPatch):
    service.replies(Reply(drop=True), llama_cpp(n_ctx=256))
    small = embedder(rag_embedding_url=f"{service.url}/v1", rag_embedding_model="nomic")
    assert (small.window, small.window) == (8191, 8191)
    assert len(service.requests) == 1
    monkeypatch.setattr(
        "shared.models.openai_embedder.time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61)
    )
    assert (small.window, small.window) == (256, 256)
