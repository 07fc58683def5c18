"""Answers by an embedding model that nothing is fitted to, with similarities of its own."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from functions import administration
from shared.config import Settings
from shared.generation.confidence import NOT_CALIBRATED
from shared.models.embedding_roles import Role
from shared.models.scale_before_calibration import pairs
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import client_of, json_of, services_with
from tests.functions.search_workspace import Row, put
from tests.functions.test_answers_without_a_model import HOME, answers
from tests.functions.test_confidence_in_all_contracts import APPS, details_in
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, Request, StandIn

pytestmark = pytest.mark.usefixtures("unlimited_wait_for_scales")

# The first is the text that docs/install.md adds to check an installation.
TEXTS = {
    "text": "The warranty of the kettle is two years.",
    "Kettle manual": "The kettle switches off at 100 degrees. The kettle holds 1.7 litres of water.",
    "Garden": "The roses in the northern bed bloom in June. They are pruned in the first week of March.",
    "Deliveries": "Deliveries arrive at the southern gate. The fee of a delivery is four euros.",
    "Visitors": "Visitors park behind the mill. The gate is closed at nine in the evening.",
}
# Questions, their level, and a part of the answer.
QUESTIONS = {
    "At how many degrees does the kettle switch off?": ("medium", "100 degrees"),
    "How long is the warranty of the kettle?": ("medium", "two years"),
    "Who won the football world cup of 2018?": ("low", "I don't have enough relevant information"),
}


@contextmanager
def deployed(settings: Settings, world: World, local: Services, model: str, floor: float) -> Iterator[Any]:
    """A deployment, and its endpoint: the local model with the cosine floor + (1 - floor) * the local one."""

    def reply(request: Request) -> Row:
        if not request.path.endswith("/embeddings"):
            return {"data": []}
        data = []
        for index, vector in enumerate(local.embedder.embed(request.json["input"], Role.DOCUMENT)):
            scale = math.sqrt(1 - floor) / math.hypot(*vector)
            data.append(
                {"index": index, "embedding": [*(number * scale for number in vector), math.sqrt(floor)]}
            )
        return {"data": data}

    with StandIn() as endpoint, deployed_with(world, embedding_model=model):
        endpoint.replies(Reply(json=reply))
        named = {"openai_api_key": "sk-none", "rag_embedding_url": endpoint.url, "rag_embedding_model": model}
        with services_with(settings, **named) as services:
            yield services, endpoint


def details(services: Services, actor: Actor, question: str) -> Iterator[tuple[str, str, Any]]:
    """Of each contract: its name, the answer, and the confidence."""

    def post(contract: str, path: str, body: Row) -> Any:
        with client_of(APPS[contract], services) as client:
            return client.post(path, json=body, headers=actor.headers())

    for contract, text, body in answers(actor, question, post=post):
        (detail,) = details_in(body)
        yield contract, text, detail


def questions_of_the_scale(endpoint: StandIn) -> int:
    inputs = [request.json.get("input") for request in endpoint.requests if request.body]
    return inputs.count(pairs()[0])


def test_an_answer_is_medium_at_most_and_none_is_withheld_for_the_model(
    settings: Settings, services: Services, people: People, world: World, subtests: pytest.Subtests
):
    with deployed(settings, world, services, "narrow", 0.75) as (deployment, endpoint):
        for title, text in TEXTS.items():
            put(deployment, people.ada, HOME, title, text)
        for question, (level, part) in QUESTIONS.items():
            for contract, text, detail in details(deployment, people.ada, question):
                with subtests.test(question=question, contract=contract):
                    assert (detail["level"], part in text) == (level, True)
                    assert NOT_CALIBRATED in detail["because"]
        assert questions_of_the_scale(endpoint) == 1
        with client_of(administration.app, deployment) as client:
            report = json_of(client.get("/api/v1/health", headers=people.ada.headers()))
        assert report["services"]["embedding_service"] == "degraded"
        assert report["details"]["embedding"]["calibration"] == "none"


def test_a_fit_in_the_database_allows_high(
    settings: Settings, services: Services, people: People, world: World
):
    fit = {
        "slope": 8, "intercept": -3, "high": 0.6, "medium": 0.3, "ceiling_high": 0, "ceiling_medium": 0,
        "coverage_weight": 0.2,
    }  # fmt: skip
    with (
        deployed(settings, world, services, "fitted", 0.0) as (deployment, endpoint),
        deployed_with(world, calibrations={"fitted": fit}),
    ):
        put(deployment, people.ada, HOME, "Kettle manual", TEXTS["Kettle manual"])
        levels = {detail["level"] for _, _, detail in details(deployment, people.ada, next(iter(QUESTIONS)))}
        assert levels == {"high"}
        assert questions_of_the_scale(endpoint) == 0
