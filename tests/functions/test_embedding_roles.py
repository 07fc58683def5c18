"""A deployment that changes the form of its documents: it then has another embedding model, and says so."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from shared.config import Settings, read_settings
from shared.errors import InvalidRequest
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.models.embedding_roles import Role
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import services_with
from tests.ingestion import ingest
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, Request, StandIn

MODEL = "my-model"
KETTLE = "The kettle switches off at 100 degrees. The kettle holds 1.7 litres of water."


@pytest.fixture
def endpoint(services: Services) -> Iterator[StandIn]:
    """The local model behind HTTP."""

    def reply(request: Request) -> dict[str, Any]:
        if request.method == "GET":
            return {"data": [{"id": MODEL, "max_model_len": 256}]}
        vectors = services.embedder.embed(request.json["input"], Role.DOCUMENT)
        return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}

    with StandIn() as server:
        server.replies(Reply(json=reply))
        yield server


def test_documents_of_another_form_are_of_another_model(
    settings: Settings, people: People, world: World, endpoint: StandIn, caplog: pytest.LogCaptureFixture
):
    ada = people.ada

    def deployment(document: str) -> Any:
        roles = read_settings(
            {"RAG_EMBEDDING_ROLES": json.dumps({MODEL: {"question": "Q: ", "document": document}})},
            supabase_url=settings.supabase_url, supabase_anon_key=SecretStr("none"),
        ).rag_embedding_roles  # fmt: skip
        return services_with(
            settings, openai_api_key="sk-none", rag_embedding_url=endpoint.url, rag_embedding_model=MODEL,
            rag_embedding_roles=roles,
        )  # fmt: skip

    def put(services: Services, title: str) -> None:
        ingest(services.database, services.embedder, ada.principal, NewDocument(title, KETTLE, lang="en"))

    with deployment("D: ") as former, deployment("Document: ") as later:
        name, new = former.embedder.model, later.embedder.model
        assert name != new
        assert {name[:10], new[:10]} == {f"{MODEL} ["}
        fit = {
            "slope": 8, "intercept": -3, "high": 0.6, "medium": 0.3, "ceiling_high": 0, "ceiling_medium": 0,
        }  # fmt: skip
        with deployed_with(world, embedding_model=name, calibrations={name: fit}):
            put(former, "Kettle manual")
            texts = endpoint.requests[-1].json["input"]
            assert all(text.startswith("D: ") for text in texts)
            with caplog.at_level(logging.WARNING, "rag"):
                later.prepare()
            assert f"the database has the model as {new}" in caplog.text
            with pytest.raises(
                InvalidRequest, match="is not an embedding model of this deployment"
            ) as raised:
                put(later, "Boiler manual")
            assert raised.value.code == "unknown_embedding_model"
        assert {request.json["model"] for request in endpoint.requests if request.body} == {MODEL}
