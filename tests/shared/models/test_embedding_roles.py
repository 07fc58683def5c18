"""Forms of questions and documents: by the model's name, by the setting, and in the requests."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shared.config import EmbeddingForms
from shared.generation.cited_documents import cite
from shared.generation.extractive.answer import extract
from shared.models.embedding_roles import NO_FORMS, Role, known_forms
from shared.models.embeddings import Embedder, embed, embedder_for, model_of
from shared.models.openai_embedder import OpenAIEmbedder
from tests.shared.examples import closed_after_test, match, settings
from tests.stand_in_server import Reply, Request, StandIn

FORMS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("embedding_roles.json").read_text(encoding="utf-8")
)
# Unknown models, fine-tuned ones, and names that contain or resemble a known one.
OTHERS = (
    "my-model", "e5", "e5-large-v3", "e5-large-v2-legal", "finetuned-multilingual-e5-large",
    "nomic-embed-vision-v1.5", "bge-reranker-large", "bge-m3-retromae", "mxbai-rerank-large",
    "qwen3-reranker-0.6b", "gte-qwen", "embed-english-v2.0", "text-embedding-3-large", "gemini-2.5-flash",
)  # fmt: skip


def endpoint(request: Request) -> Any:
    texts = request.json["input"]
    return {"data": [{"index": index, "embedding": [1.0, 0.5]} for index in range(len(texts))]}


def embedder_at(service: StandIn, model: str, **fields: Any) -> Embedder:
    service.replies(Reply(json=endpoint))
    own = {"openai_api_key": "a key", "rag_embedding_url": f"{service.url}/v1", "rag_embedding_model": model}
    return closed_after_test(embedder_for(settings(**own, **fields)))


def roles_setting(model: str, **forms: Any) -> str:
    return json.dumps({model: forms})


def test_each_known_name_has_its_form():
    wrong = {
        name: forms
        for row in FORMS
        for name in row["names"]
        if (forms := known_forms(name)) != EmbeddingForms(question=row["question"], document=row["document"])
    }
    assert wrong == {}


def test_other_names_have_none():
    assert {name for name in OTHERS if known_forms(name) != NO_FORMS} == set()


def test_a_provider_s_own_parameter_is_used_at_its_host_and_a_prefix_elsewhere():
    jina, nvidia = "jina-embeddings-v4", "nvidia/nv-embedqa-e5-v5"
    assert known_forms(jina, "https://api.jina.ai/v1").question == {"task": "retrieval.query"}
    assert known_forms(jina, "http://localhost:8080/v1").question == "Query: "
    assert known_forms(nvidia, "https://integrate.api.nvidia.com/v1").document == {"input_type": "passage"}
    assert known_forms(nvidia, "http://localhost:8000/v1").document == "passage:"


def test_a_question_and_a_document_have_their_prefixes_in_one_request(service: StandIn):
    embedder = embedder_at(service, "intfloat/multilingual-e5-large")
    embed(embedder, ["who?", "a text"], [Role.QUESTION, Role.DOCUMENT])
    (request,) = service.requests
    assert request.json["input"] == ["query: who?", "passage: a text"]
    assert request.json["model"] == "intfloat/multilingual-e5-large"


def test_parameters_apply_to_the_texts_of_their_role(service: StandIn):
    embedder = embedder_at(service, "embed-multilingual-v3.0")
    embed(embedder, ["who?", "one", "two"], [Role.QUESTION, Role.DOCUMENT, Role.DOCUMENT])
    assert [(request.json["input_type"], request.json["input"]) for request in service.requests] == [
        ("search_query", ["who?"]), ("search_document", ["one", "two"]),
    ]  # fmt: skip


@pytest.mark.parametrize(("model", "count"), [("nomic-embed-text", 1), ("bge-m3", 1), ("voyage-3.5", 2)])
def test_an_extractive_answer_needs_one_request_unless_roles_are_parameters(
    service: StandIn, model: str, count: int
):
    embedder = embedder_at(service, model)
    passage = match("The kettle holds 1.7 litres of water. It weighs 900 grams.")
    question = "How much water does the kettle hold?"
    assert extract(question, [passage], cite([passage]), partial(embed, embedder)).sentences
    assert len(service.requests) == count


def test_the_setting_overrides_the_known_form_and_cannot_change_the_rest_of_a_request(service: StandIn):
    setting = roles_setting("nomic-embed-text", question={"prompt": "q", "model": "x", "input": "y"})
    embedder = embedder_at(service, "nomic-embed-text", rag_embedding_roles=setting)
    embed(embedder, ["who?"], Role.QUESTION)
    embed(embedder, ["a text"], Role.DOCUMENT)
    question, document = (request.json for request in service.requests)
    assert (question["prompt"], question["model"], question["input"]) == ("q", "nomic-embed-text", ["who?"])
    assert document["input"] == ["a text"]


def test_another_form_of_documents_is_another_model_in_the_database(service: StandIn):
    def name(model: str, **forms: Any) -> str:
        setting = roles_setting(model, **forms) if forms else "{}"
        fields = {"rag_embedding_model": model, "rag_embedding_roles": setting, "openai_api_key": "a key"}
        own = settings(**fields)
        embedder = closed_after_test(embedder_for(own))
        assert model_of(own) == embedder.model
        return embedder.model

    assert name("nomic-embed-text") == "nomic-embed-text"
    # Another form of questions leaves the stored vectors as they are.
    assert name("nomic-embed-text", question="Q: ", document="search_document: ") == "nomic-embed-text"
    names = {
        name("bge-m3"), name("bge-m3", document="D: "), name("bge-m3", document="D:"),
        name("bge-m3", document={"input_type": "passage"}), name("nomic-embed-text", document=""),
    }  # fmt: skip
    assert len(names) == 5
    assert all(len(own) <= 100 for own in names)
    assert name("bge-m3", document="D: ") == "bge-m3 [9fe8]"


def test_the_window_has_room_for_the_prefix(service: StandIn):
    embedder = embedder_at(service, "nomic-embed-text")
    assert isinstance(embedder, OpenAIEmbedder)
    assert embedder.window < 8191
