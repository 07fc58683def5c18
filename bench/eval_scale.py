"""Confidence without a label of the adopter: on the scale of similarities, and by the shipped questions.

    python -m bench.eval_scale FOLDER...

Each folder is a labelled set, or holds some (labelled_sets.py). Each local model embeds a part of each set. A
similarity counts by its position on the model's scale (scale_before_calibration.py). The first table
has the errors of each set under a fit on the other sets, by one of the models or by both; the next line is
the fit on all sets, whose numbers shared/generation/confidence.py contains. The second table has the errors
under the model's first calibration (shared/calibration/fit_to_shipped_questions.py).
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from zlib import crc32

from rich.console import Console

from bench.figures import markdown_table, print_lines
from bench.labelled_sets import ingest_set
from shared.calibration import stored_search
from shared.calibration.fit_to_shipped_questions import fitted as first_calibration
from shared.calibration.fit_to_shipped_questions import shipped_search
from shared.calibration.labelled_sets import LabelledSet, sets_in
from shared.config import LOCAL_MODEL, MULTILINGUAL_MODEL
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, HIDDEN, Observation, errors, fit
from shared.generation.confidence import SCALED_COVERAGE_WEIGHT, Calibration
from shared.models.embeddings import local_embedder
from shared.models.scale_before_calibration import SimilarityScale, measure_scale

MODELS = LOCAL_MODEL, MULTILINGUAL_MODEL
# Of each set, and of each label; and foreign questions from each other set.
DOCUMENTS, QUESTIONS, FOREIGN_QUESTIONS = 450, 80, 12
Observed = Mapping[str, Mapping[str, Sequence[Observation]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.eval_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", type=Path, nargs="+")
    sets = [part_of(each) for folder in parser.parse_args().folders for each in sets_in(folder)]
    stored_search.FOREIGN_QUESTIONS = FOREIGN_QUESTIONS
    console = Console()
    scales = {model: _scale(model) for model in MODELS}
    observed = {model: observe(model, sets, scales[model], console) for model in MODELS}
    positions = {
        model: {name: [_on_scale(each, scales[model]) for each in own] for name, own in of_model.items()}
        for model, of_model in observed.items()
    }
    lines = []
    for fitted_to in (*((each,) for each in MODELS), MODELS):
        lines += table(positions, fitted_to)
    _print(console, lines)
    console.print(fitted(chain.from_iterable(of.values() for of in positions.values())), soft_wrap=True)
    lines = []
    for model in MODELS:
        embedder = local_embedder(model)
        search = shipped_search(embedder)
        search.run_until()
        first = Calibration.of(first_calibration(search, model))
        console.print(first, soft_wrap=True)
        lines += [
            _line("shipped questions", model, name, own, first) for name, own in observed[model].items()
        ]
    _print(console, lines)


def _print(console: Console, rows: Sequence[Sequence[str]]) -> None:
    columns = (
        "fitted to", "model", "set", "answered", "high", "hidden high", "foreign answered", "AUROC, foreign",
    )  # fmt: skip
    print_lines(markdown_table(columns, rows), console)


def _scale(model: str) -> SimilarityScale:
    scale = measure_scale(local_embedder(model))
    assert scale  # the local models tell the pairs apart
    return scale


def part_of(labelled_set: LabelledSet) -> LabelledSet:
    """The questions whose ids hash lowest, of each label, with their documents and as many others."""
    ranked = sorted(labelled_set.questions, key=lambda item: crc32(item.id.encode()))
    labels = {item.label for item in ranked}
    questions = [item for label in labels for item in [i for i in ranked if i.label == label][:QUESTIONS]]
    gold = set(chain.from_iterable(labelled_set.relevant.get(item.id, {}) for item in questions))
    documents = sorted(
        labelled_set.documents, key=lambda item: (item.id not in gold, crc32(item.id.encode()))
    )
    count = max(DOCUMENTS, len(gold))
    return replace(labelled_set, documents=documents[:count], questions=questions, published={})


def observe(
    model: str, sets: Sequence[LabelledSet], scale: SimilarityScale, console: Console
) -> dict[str, list[Observation]]:
    """By set."""
    console.print(f"{model}: {scale}")
    # A stack has the model of the environment.
    os.environ["RAG_EMBEDDING_MODEL"] = model
    results = {}
    for labelled_set in sets:
        others = [each for each in sets if each is not labelled_set]
        with ingest_set(labelled_set, console) as ingested:
            results[labelled_set.name] = stored_search.observe_stored(
                ingested.services,
                ingested.reader,
                labelled_set,
                SCALED_COVERAGE_WEIGHT * scale.width,
                others,
            )
    return results


def _on_scale(observation: Observation, scale: SimilarityScale) -> Observation:
    features = observation.features
    position = (features.similarity - scale.unrelated) / scale.width
    return replace(observation, features=replace(features, similarity=position))


def fitted(sets: chain[Sequence[Observation]]) -> Calibration:
    return fit(sets, coverage_weight=SCALED_COVERAGE_WEIGHT)


def table(observed: Observed, fitted_to: Sequence[str]) -> list[tuple[str, ...]]:
    """A line for each model and set, whose observations are not among those of the fit."""
    lines = []
    for model in MODELS:
        for name, own in observed[model].items():
            others = (each for one in fitted_to for other, each in observed[one].items() if other != name)
            lines.append(_line(" and ".join(fitted_to), model, name, own, fitted(chain(others))))
    return lines


def _line(
    fitted_to: str, model: str, name: str, observations: Sequence[Observation], calibration: Calibration
) -> tuple[str, ...]:
    shares = errors(observations, calibration)
    answered, high = shares["answered"], shares["high"]
    figures = [answered[ANSWERABLE], high[ANSWERABLE], high[HIDDEN], answered[FOREIGN]]
    percent = (f"{100 * figure:.1f} %" for figure in figures)
    return fitted_to, model, name, *percent, f"{shares['auroc'][FOREIGN]:.3f}"


if __name__ == "__main__":
    main()
