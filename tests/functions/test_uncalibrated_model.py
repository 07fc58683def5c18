"""Answers by a model that nothing is fitted to, and its calibration by a part of the shipped questions."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions import administration, ingest
from shared.calibration import fit_to_shipped_questions
from shared.calibration.fit_to_shipped_questions import (
    QUESTION_SET,
    SHIPPED,
    continue_first_calibration,
    fitted,
    shipped_search,
)
from shared.config import MULTILINGUAL_MODEL, Settings
from shared.generation.confidence import BY_SHIPPED_QUESTIONS, CALIBRATIONS, NOT_CALIBRATED, Calibration
from shared.models.embedding_roles import Role
from shared.models.embeddings import local_embedder
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

pytestmark = pytest.mark.usefixtures("unlimited_wait_for_scales", "no_jobs")

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


@pytest.fixture
def few_questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """15 documents and 40 questions in the place of all."""
    shutil.copytree(SHIPPED / "clinics", tmp_path / "clinics")
    monkeypatch.setattr(fit_to_shipped_questions, "SHIPPED", tmp_path)


@pytest.fixture
def endpoint_of_model(
    settings: Settings, world: World, services: Services, few_questions: None
) -> Iterator[Any]:
    with (
        deployed(settings, world, services, "uncalibrated", 0.5) as found,
        deployed_with(world, calibrations={}, calibration_claims={}),
    ):
        yield found


def row_of(world: World, model: str = "uncalibrated") -> Any:
    return world.sql("select calibrations -> %s from rag.settings", model)[0][0]


def calibrate(services: Services, seconds: float = 60.0) -> bool:
    return continue_first_calibration(
        services.database, services.require_signer(), services.embedder, seconds
    )


def test_the_worker_calibrates_the_model_and_answers_follow(
    endpoint_of_model: Any, people: People, world: World
):
    deployment, _ = endpoint_of_model
    put(deployment, people.ada, HOME, "Kettle manual", TEXTS["Kettle manual"])
    while not ingest.work(deployment).idle:
        pass
    row = row_of(world)
    assert (row["source"], row["question_set"]) == ("shipped_questions", QUESTION_SET)
    assert row["sets"]["clinics"]["questions"] == {"answerable": 20, "hidden": 40}
    for _, text, detail in details(deployment, people.ada, next(iter(QUESTIONS))):
        assert "100 degrees" in text
        assert BY_SHIPPED_QUESTIONS in detail["because"]
        assert NOT_CALIBRATED not in detail["because"]
        assert detail["thresholds"] == {"high": row["high"], "medium": row["medium"]}
    with client_of(administration.app, deployment) as client:
        report = json_of(client.get("/api/v1/health", headers=people.ada.headers()))
    assert report["services"]["embedding_service"] == "healthy"
    assert report["details"]["embedding"]["calibration"] == "shipped_questions"


def test_a_calibration_continues_in_the_next_call_and_another_worker_leaves_it(
    endpoint_of_model: Any, world: World
):
    deployment, endpoint = endpoint_of_model
    assert not calibrate(deployment, seconds=0.0)
    assert row_of(world) is None
    embedded = len(endpoint.requests)
    with deployed_with(world, embedding_model="uncalibrated"):
        other = Services(deployment.settings)
        assert calibrate(other)
        other.close()
    assert (row_of(world), len(endpoint.requests)) == (None, embedded)
    while not calibrate(deployment, seconds=0.0):
        pass
    assert row_of(world)["source"] == "shipped_questions"
    done = len(endpoint.requests)
    assert calibrate(deployment)
    assert len(endpoint.requests) == done


def test_the_deployer_s_calibration_stays_and_one_of_former_questions_is_replaced(
    endpoint_of_model: Any, world: World
):
    deployment, _ = endpoint_of_model
    own = {"slope": 8, "intercept": -3, "high": 0.6, "medium": 0.3, "ceiling_high": 0, "ceiling_medium": 0}
    with deployed_with(world, calibrations={"uncalibrated": own}):
        assert calibrate(deployment)
        assert row_of(world) == own
    former = {**own, "source": "shipped_questions", "question_set": "2020-01"}
    with deployed_with(world, calibrations={"uncalibrated": former}):
        # It begins, as for a model without a calibration.
        assert not calibrate(deployment, seconds=0.0)


def test_after_a_failure_the_claim_expires_and_the_next_worker_begins_again(
    endpoint_of_model: Any, world: World, caplog: pytest.LogCaptureFixture
):
    deployment, endpoint = endpoint_of_model
    # After one more batch, all are refused.
    endpoint.replies(Reply(status=401, json={"error": {"message": "no such key"}}))
    assert calibrate(deployment)
    assert "uncalibrated could not be calibrated" in caplog.text
    failed = len(endpoint.requests)
    assert calibrate(deployment)
    assert len(endpoint.requests) == failed
    world.sql(
        "update rag.settings set calibration_claims = jsonb_set(calibration_claims, %s, to_jsonb(now()))",
        ["uncalibrated", "until"],
    )
    assert calibrate(deployment)
    assert len(endpoint.requests) == failed + 1
    assert row_of(world) is None


FIT = '"slope": 1, "intercept": 1, "high": 1, "medium": 0, "ceiling_high": 0, "ceiling_medium": 0'


NO_CALIBRATIONS = (
    "null", '{"slope": 1}', f'{{{FIT}, "medium": 2}}', f'{{{FIT}, "other_languages": {{}}}}',
    f'{{{FIT}, "other_languages": {{{FIT}, "slope": 1e9}}}}', f'{{{FIT}, "sets": "{"x" * 10_000}"}}',
)  # fmt: skip


def test_a_calibration_that_is_none_is_refused(world: World):
    statement = "select public.rag_store_calibration('uncalibrated', 'x', %s::jsonb)"
    for calibration in NO_CALIBRATIONS:
        with pytest.raises(psycopg.Error, match="calibration must be that of shipped questions"):
            world.as_role("rag_worker", statement, calibration)


def test_a_model_that_is_not_the_deployment_s_is_not_calibrated(world: World):
    statement = "select public.rag_claim_calibration('of-another', 'x')"
    assert world.as_role("rag_worker", statement) == [(False,)]


@pytest.mark.long
def test_the_built_in_calibration_of_e5_is_that_of_the_shipped_questions():
    embedder = local_embedder(MULTILINGUAL_MODEL)
    search = shipped_search(embedder)
    search.run_until()
    row = Calibration.of({**fitted(search, MULTILINGUAL_MODEL), "source": None})
    built_in = CALIBRATIONS[MULTILINGUAL_MODEL]
    assert row.slope == pytest.approx(built_in.slope, rel=0.02)
    assert row.thresholds.medium == pytest.approx(built_in.thresholds.medium, abs=0.02)
    assert row.thresholds.high == pytest.approx(built_in.thresholds.high, abs=0.02)


def test_one_model_s_claim_leaves_another_model_free(world: World):
    claim = "select public.rag_claim_calibration(%s, 'x')"
    names = {"embedding_model": "one", "other_embedding_models": ["two"]}
    with deployed_with(world, **names, calibrations={}, calibration_claims={}):
        claimed = [world.as_role("rag_worker", claim, name)[0][0] for name in ("one", "two", "one")]
    assert claimed == [True, True, False]


def test_a_model_that_does_not_tell_the_questions_apart_is_not_embedded_again(
    endpoint_of_model: Any, world: World, caplog: pytest.LogCaptureFixture
):
    deployment, endpoint = endpoint_of_model

    def alike(request: Request) -> Any:
        return {
            "data": [{"index": index, "embedding": [1.0, 0.5]} for index in range(len(request.json["input"]))]
        }

    # The first reply is still the local model's.
    endpoint.replies(Reply(json=alike))
    deployment.embedder.embed(["a text"], Role.DOCUMENT)
    assert calibrate(deployment)
    assert "does not tell questions with an answer from others" in caplog.text
    done = len(endpoint.requests)
    with deployed_with(world, embedding_model="uncalibrated"):
        other = Services(deployment.settings)
        assert calibrate(other)
        other.close()
    assert len(endpoint.requests) == done
