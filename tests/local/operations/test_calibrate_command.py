"""Command `calibrate`: labelled questions in memory, over stored documents, and those of the product."""

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from local.errors import CommandError
from local.operations import calibrate_command
from local.stack import Stack
from shared.calibration import fit_to_shipped_questions
from shared.calibration.fit_to_shipped_questions import SHIPPED
from shared.config import LOCAL_MODEL, Settings
from shared.errors import RagError
from shared.generation.confidence import Calibration
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import services_with
from tests.ingestion import ingest
from tests.local.command_line import run_local
from tests.sql.passages import deployed_with

TEXTS = {
    "kettle": "The kettle switches off at 100 degrees.",
    "oven": "The oven switches off at 250 degrees.",
    "garage": "The garage closes at eight in the evening.",
    "canteen": "On Tuesdays there is lentil soup.",
}
# Some answerable questions share no word with their document, and some others almost all words with one.
ANSWERABLE = {
    "At how many degrees does the kettle switch off?": "kettle",
    "How hot may water for tea become?": "kettle",
    "At how many degrees does the oven switch off?": "oven",
    "When does the garage close?": "garage",
    "Until when can I fetch my car?": "garage",
    "What can I eat at the beginning of the week?": "canteen",
}
FOREIGN = (
    "At how many degrees does the toaster switch off?", "Who won the cup in 1998?", "How old is the moon?",
)  # fmt: skip


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A folder of questions without their documents."""
    labels = {**dict.fromkeys(ANSWERABLE, "answerable"), **dict.fromkeys(FOREIGN, "out_of_corpus")}
    lines = [{"id": text, "text": text, "meta": {"label": label}} for text, label in labels.items()]
    _write(tmp_path / "queries.jsonl", lines)
    judgements = "".join(f"{text}\t{name}\t1\n" for text, name in ANSWERABLE.items())
    (tmp_path / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgements}")
    return tmp_path


def add_documents(folder: Path) -> Path:
    _write(
        folder / "corpus.jsonl", [{"id": name, "title": name, "text": text} for name, text in TEXTS.items()]
    )
    return folder


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.fixture
def calibrations(world: World) -> Iterator[World]:
    with deployed_with(world, calibrations={}):
        yield world


def calibrate(
    stack: Stack, settings: Settings, folder: Path | None, url_options: str = "", **options: Any
) -> None:
    given = Namespace(**{"folder": folder, "budget": 0.2, "token": None, "user": None, **options})
    calibrate_command.run(f"{stack.database_url()}&options={url_options}", settings, given)


def of(world: World) -> Any:
    return world.sql("select calibrations from rag.settings")[0][0]


def test_questions_with_their_documents_are_searched_in_memory_and_the_fit_is_used(
    stack: Stack, settings: Settings, people: People, calibrations: World, questions: Path,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    calibrate(stack, settings, add_documents(questions))
    written = of(calibrations)[LOCAL_MODEL]
    name = questions.name
    assert written["sets"][name]["questions"] == {"answerable": 6, "hidden": 6, "foreign": 3}
    assert written["budget"] == 0.2
    assert calibrations.sql("select count(*) from rag.documents where title = 'kettle'") == [(0,)]
    printed = capsys.readouterr().out
    assert f"{name}: of 6 answerable questions 6 are answered" in printed
    assert "Fewer than 50 answerable questions" in printed
    with services_with(settings) as services:
        used = services.calibration(people.ann.principal, LOCAL_MODEL, is_reranked=False)
        assert used == Calibration.of(written)
        assert services.calibration_source(people.ann.principal) == "rag.settings"


def test_questions_alone_are_about_the_documents_that_the_user_finds(
    stack: Stack, settings: Settings, services: Services, people: People, calibrations: World, questions: Path
):
    for name, text in TEXTS.items():
        document = NewDocument(name, text, external_id=name, lang="en")
        ingest(services.database, services.embedder, people.ann.principal, document)
    calibrate(stack, settings, questions, token=people.ann.token())
    written = of(calibrations)[LOCAL_MODEL]
    assert written["sets"][questions.name]["questions"] == {"answerable": 6, "hidden": 6, "foreign": 3}
    assert written["sets"][questions.name]["auroc"]["foreign"] > 0.8


def test_without_a_folder_the_shipped_questions_are_fitted(
    stack: Stack, settings: Settings, calibrations: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "clinics").symlink_to(SHIPPED / "clinics")
    monkeypatch.setattr(fit_to_shipped_questions, "SHIPPED", tmp_path)
    former = {"slope": 1, "intercept": 0, "high": 1, "medium": 0, "ceiling_high": 0, "ceiling_medium": 0}
    with deployed_with(calibrations, calibrations={LOCAL_MODEL: {**former, "source": "shipped_questions"}}):
        calibrate(stack, settings, None)
        row = of(calibrations)[LOCAL_MODEL]
    assert (row["source"], row["slope"] > 1) == ("shipped_questions", True)
    calibrations.sql("update rag.settings set calibrations = %s", json.dumps({LOCAL_MODEL: former}))
    with pytest.raises(CommandError, match="a calibration of all-MiniLM-L6-v2 by questions of yours"):
        calibrate(stack, settings, None)


def test_nothing_is_embedded_before_folder_labels_and_database_are_checked(
    stack: Stack, settings: Settings, people: People, calibrations: World, questions: Path, tmp_path: Path
):
    unlabelled = tmp_path / "unlabelled"
    unlabelled.mkdir()
    _write(unlabelled / "queries.jsonl", [{"id": "a", "text": "What?"}])
    answerable = tmp_path / "answerable"
    answerable.mkdir()
    _write(answerable / "queries.jsonl", [{"id": "a", "text": "What?", "meta": {"answerable": True}}])
    # An embedder that cannot be reached would fail.
    offline = settings.model_copy(
        update={
            "openai_api_key": SecretStr("sk-none"),
            "rag_embedding_url": "http://127.0.0.1:9/v1",
            "rag_embedding_model": LOCAL_MODEL,
        }
    )
    for folder, message in (
        (tmp_path / "absent", "is no folder"),
        (stack.folder, "no queries.jsonl"),
        (unlabelled, "no question is answerable"),
        (answerable, "no question lacks an answer"),
    ):
        with pytest.raises(CommandError, match=message):
            calibrate(stack, offline, folder)
    with pytest.raises(CommandError, match="the database is for all-MiniLM-L6-v2"):
        calibrate(stack, offline.model_copy(update={"rag_embedding_model": "other"}), questions)
    with pytest.raises(CommandError, match="cannot execute UPDATE in a read-only transaction"):
        calibrate(
            stack, offline, add_documents(questions), url_options="-cdefault_transaction_read_only%3Don"
        )
    (questions / "corpus.jsonl").unlink()
    with pytest.raises(CommandError, match="--user EMAIL, or set RAG_TOKEN"):
        calibrate(stack, settings, questions)
    with pytest.raises(RagError):
        calibrate(stack, settings, questions, token="no token")
    with pytest.raises(CommandError, match=r"no document of qrels\.tsv was found"):
        calibrate(stack, settings, questions, token=people.bob.token())
    assert of(calibrations) == {}


def test_a_wrong_budget_is_named(tmp_path: Path):
    for budget in ("0", "1", "x"):
        result = run_local(tmp_path, "calibrate", "--budget", budget)
        assert result.returncode == 2
        assert "must be between 0 and 1" in result.stderr
