"""Command `calibrate`: confidence fitted to labelled questions, and written to the database.

FOLDER is a labelled set or has several (docs/evaluation.md): questions with their documents, which are
searched in memory, or questions alone, about documents that the user of --user, or of the token in RAG_TOKEN,
finds. Without FOLDER, the questions are those that the product ships.
"""

import argparse
import json
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from rich.console import Console

from local.errors import CommandError
from local.operations.org_data.database import connected
from shared.calibration.fit_to_shipped_questions import fitted, shipped_search, stored
from shared.calibration.labelled_sets import InvalidSet, LabelledSet, sets_in
from shared.calibration.memory_search import MemorySearch
from shared.calibration.stored_search import calibration_name_of, coverage_weight_of, observe_stored
from shared.config import Settings
from shared.generation.calibration_fit import ANSWERABLE, BUDGET, FOREIGN, HIDDEN, ON_TOPIC, report
from shared.generation.confidence import SHIPPED_QUESTIONS
from shared.services import Services
from shared.types import Principal

# With fewer, a share may be wrong by a tenth and more.
FEW_QUESTIONS = 50
PROGRESS_SECONDS = 10
KIND_WORDS = {
    ANSWERABLE: "answerable questions",
    HIDDEN: "questions whose documents were hidden or do not exist",
    FOREIGN: "questions on other subjects",
    ON_TOPIC: "questions on the subject without an answer",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="labelled questions")
    parser.add_argument("--user", metavar="EMAIL", help="a user of the local stack, who searches")
    parser.add_argument(
        "--budget", type=_share, default=BUDGET, metavar="SHARE",
        help="the share of questions without an answer that may be called high; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, settings: Settings, options: argparse.Namespace) -> None:
    """Checks the questions and the database before it embeds. Raises CommandError, ConfigurationError, a
    RagError."""
    try:
        sets = sets_in(options.folder) if options.folder else []
    except InvalidSet as error:
        raise CommandError(str(error)) from None
    _check(sets)
    console = Console(soft_wrap=True, highlight=False)
    with closing(Services(settings)) as services:
        model = services.embedder.model
        with connected(database_url) as connection:
            _check_model(connection, model)
            # A role without the right, or a replica, is an error before texts are embedded.
            connection.execute("update rag.settings set calibrations = calibrations")
            connection.rollback()
            if not sets:
                _check_no_own_calibration(connection, model)
        try:
            name, row = _calibration(services, sets, options, console)
        except ValueError as error:
            raise CommandError(str(error)) from None
    # A connection of its own: one that waited while texts were embedded may be closed.
    try:
        with connected(database_url) as connection:
            statement = "update rag.settings set calibrations = calibrations || %s"
            connection.execute(statement, [Jsonb({name: row})])
    except CommandError as error:
        raise CommandError(
            f"the calibration is not stored ({error}); to store it yourself, add this to calibrations in "
            f"rag.settings: {json.dumps({name: row})}"
        ) from None
    if len(row["sets"]) > 1:
        console.print("Each set by a calibration that is fitted to the other sets:")
    for set_name, errors in row["sets"].items():
        console.print(sentences(set_name, errors))
    console.print(f"rag.settings has the calibration of {name}; the functions read it within a minute.")


def sentences(name: str, errors: dict[str, Any]) -> str:
    """The errors of a set in words."""
    questions: dict[str, int] = errors["questions"]
    parts = [
        f"of {count:,} {KIND_WORDS[kind]} {round(errors['answered'][kind] * count):,} are answered, "
        f"{round(errors['high'][kind] * count):,} of them with high confidence"
        for kind, count in questions.items()
    ]
    text = f"{name}: {'; '.join(parts)}."
    if questions.get(ANSWERABLE, 0) < FEW_QUESTIONS:
        text += (
            f" Fewer than {FEW_QUESTIONS} answerable questions: the shares may be wrong by a tenth and more."
        )
    return text


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError("must be between 0 and 1")
    return share


def _check(sets: list[LabelledSet]) -> None:
    """Raises CommandError for sets that cannot be fitted."""
    for labelled_set in sets:
        kinds = {labelled_set.kind_of(question) for question in labelled_set.questions}
        if ANSWERABLE not in kinds:
            raise CommandError(f"{labelled_set.name}: no question is answerable (qrels.tsv, or meta.label)")
        if not labelled_set.relevant and FOREIGN not in kinds and len(sets) == 1:
            raise CommandError(
                f"{labelled_set.name}: no question lacks an answer: name the documents of the answers in "
                "qrels.tsv, or label questions out_of_corpus"
            )
    if len({bool(labelled_set.documents) for labelled_set in sets}) > 1:
        raise CommandError("some of the sets have documents (corpus.jsonl), and others have none")


def _check_model(connection: psycopg.Connection[Any], model: str) -> None:
    """Raises CommandError where the database has not the model of the functions."""
    row = connection.execute("select embedding_model, other_embedding_models from rag.settings").fetchone()
    models = [row[0], *row[1]] if row else []
    if model not in models:
        raise CommandError(
            f"the database is for {', '.join(models)}, and the embedder of these settings is {model}: set "
            "RAG_EMBEDDING_MODEL"
        )


def _check_no_own_calibration(connection: psycopg.Connection[Any], model: str) -> None:
    """Raises CommandError where the shipped questions would replace a fit to the deployer's."""
    row = connection.execute(
        "select calibrations -> %(model)s ->> 'source' from rag.settings where calibrations ? %(model)s",
        {"model": model},
    ).fetchone()
    if row and row[0] != SHIPPED_QUESTIONS:
        raise CommandError(
            f"rag.settings has a calibration of {model} by questions of yours, which those of the product do "
            "not replace: name a FOLDER, or remove it first (docs/evaluation.md)"
        )


def _calibration(
    services: Services, sets: list[LabelledSet], options: argparse.Namespace, console: Console
) -> tuple[str, dict[str, Any]]:
    """The name of a calibration, and its row. Raises ValueError, CommandError, a RagError."""
    embedder = services.embedder
    if not sets:
        search = shipped_search(embedder)
        _run(search, console)
        return embedder.model, fitted(search, embedder.model, options.budget)
    caller = None if sets[0].documents else _caller(services, options)
    weight = coverage_weight_of(embedder)
    if caller is None:
        search = MemorySearch(embedder, sets, weight)
        _run(search, console)
        name, observed = embedder.model, search.observations
    else:
        name, observed = (
            calibration_name_of(services),
            {each.name: observe_stored(services, caller, each, weight) for each in sets},
        )
    return name, stored(report(observed, name, options.budget, weight))


def _run(search: MemorySearch, console: Console) -> None:
    while not search.run_until(time.monotonic() + PROGRESS_SECONDS):
        done, count = search.progress
        console.print(f"{done:,} of {count:,} texts and questions", style="dim")


def _caller(services: Services, options: argparse.Namespace) -> Principal:
    """Raises CommandError without a token, Unauthenticated for an invalid one."""
    token = options.token or os.environ.get("RAG_TOKEN")
    if not token:
        raise CommandError(
            "questions without corpus.jsonl are about stored documents: name a user of the local stack with "
            "--user EMAIL, or set RAG_TOKEN to the token of a user of the deployment"
        )
    return services.verifier.principal(f"Bearer {token}")
