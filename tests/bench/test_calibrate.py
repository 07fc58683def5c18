"""Calibration fitted to labelled questions, written to rag.settings and used by the services."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime

from bench import calibrate, eval_confidence
from local.seed_demo import make_services
from local.stack import Stack
from shared import pipeline
from shared.calibration.labelled_sets import Item, LabelledSet
from shared.generation import calibration_fit
from shared.generation.confidence import Calibration
from shared.services import Services
from shared.types import Query
from tests.actors import World
from tests.bench.ingested_sets import ingested
from tests.conftest import People

TEXTS = {
    "kettle": "The kettle switches off at 100 degrees.",
    "oven": "The oven switches off at 250 degrees.",
    "garage": "The garage closes at eight in the evening.",
    "canteen": "On Tuesdays there is lentil soup.",
}
# Some answerable questions share no word with their document, and some others almost all words with one.
ANSWERABLE = {
    "kettle": ("At how many degrees does the kettle switch off?", "How hot may water for tea become?"),
    "oven": ("At how many degrees does the oven switch off?",),
    "garage": ("When does the garage close?", "Until when can I fetch my car?"),
    "canteen": ("What can I eat at the beginning of the week?",),
}
FOREIGN = (
    "At how many degrees does the toaster switch off?", "Who won the cup in 1998?", "How old is the moon?",
)  # fmt: skip
SET = LabelledSet(
    "household",
    [Item(name, text, name) for name, text in TEXTS.items()],
    [
        *(Item(text, text, label="answerable") for texts in ANSWERABLE.values() for text in texts),
        *(Item(text, text, label="out_of_corpus") for text in FOREIGN),
    ],
    {text: {name: 1} for name, texts in ANSWERABLE.items() for text in texts},
)


def test_a_fitted_calibration_is_written_with_its_errors_and_used(
    stack: Stack, services: Services, people: People, world: World
):
    own = ingested(services, people, SET, org_id=people.acme.id)
    model = eval_confidence.model_of(own)
    summary = calibration_fit.report({SET.name: eval_confidence.observe(own, SET, [])}, model, budget=0.2)
    calibrate.write(stack.database_url(), f"{model} + reranker", summary)
    calibrate.write(stack.database_url(), model, summary)
    try:
        ((written,),) = world.sql("select calibrations from rag.settings")
        with closing(make_services(stack)) as calibrated:
            used = calibrated.calibration(people.ann.principal, calibrated.embedder.model, is_reranked=False)
            query = Query("At how many degrees does the kettle switch off?")
            answer = asyncio.run(pipeline.answer(calibrated, people.ann.principal, query))
    finally:
        world.sql("update rag.settings set calibrations = '{}'")
    assert set(written) == {model, f"{model} + reranker"}
    about = written[model]
    assert about["date"] == f"{datetime.now(UTC):%Y-%m-%d}"
    assert about["budget"] == 0.2
    questions = about["sets"][SET.name]["questions"]
    assert questions == {"answerable": 6, "hidden": 6, "foreign": 3}
    assert about["sets"] == summary["sets"]
    assert used == Calibration.of(summary["calibration"])
    assert answer.judgement.thresholds == used.thresholds
    assert used != services.calibration(people.ann.principal, services.embedder.model, is_reranked=False)
