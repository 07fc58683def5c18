"""The worker calibrates confidence for a model that has no calibration, by a small part of the shipped
questions, and answers follow it."""

import shutil
from collections.abc import Iterator
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
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import client_of, json_of
from tests.functions.search_workspace import put
from tests.functions.test_answers_without_a_model import HOME
from tests.functions.test_uncalibrated_model import TEXTS, deployed, details
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, Request

pytestmark = pytest.mark.usefixtures("unlimited_wait_for_scales", "no_jobs")
QUESTION = "At how many degrees does the kettle switch off?"


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
    for _, text, detail in details(deployment, people.ada, QUESTION):
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
