"""Confidence of models that nothing is fitted to: the fit on the scale of similarities, and its errors.

    python -m bench.eval_scale FOLDER...

Each folder is a labelled set, or holds some (labelled_sets.py). Each local model embeds a part of each set. A
similarity counts by its position on the model's scale (shared/models/similarity_scale.py). The table has the
errors of each set under a fit on the other sets, by one of the models or by both. The last line is the fit on
all sets, whose numbers shared/generation/confidence.py contains.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from zlib import crc32

from rich.console import Console

from bench.labelled_sets import ingest_set
from shared.calibration import stored_search
from shared.calibration.labelled_sets import LabelledSet, sets_in
from shared.config import LOCAL_MODEL, MULTILINGUAL_MODEL
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, HIDDEN, Observation, errors, fit
from shared.generation.confidence import SCALED_COVERAGE_WEIGHT, Calibration
from shared.models.embeddings import local_embedder
from shared.models.similarity_scale import SimilarityScale, measure_scale

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
    stored_search.QUESTIONS, stored_search.FOREIGN_QUESTIONS = QUESTIONS, FOREIGN_QUESTIONS
    console = Console()
    observed = {model: observe(model, sets, console) for model in MODELS}
    lines = [
        "| fitted to | model | set | answered | high | hidden high | foreign answered | AUROC, foreign |"
    ]
    lines.append("|---" * 8 + "|")
    for fitted_to in ((each,) for each in MODELS):
        lines += table(observed, fitted_to)
    lines += table(observed, MODELS)
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    console.print(fitted(chain.from_iterable(observed[model].values() for model in MODELS)), soft_wrap=True)


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


def observe(model: str, sets: Sequence[LabelledSet], console: Console) -> dict[str, list[Observation]]:
    """By set, with positions on the model's scale as similarities."""
    scale = measure_scale(local_embedder(model))
    assert scale  # the local models tell the pairs apart
    console.print(f"{model}: {scale}")
    weight = SCALED_COVERAGE_WEIGHT * scale.width
    # A stack has the model of the environment.
    os.environ["RAG_EMBEDDING_MODEL"] = model
    results = {}
    for labelled_set in sets:
        others = [each for each in sets if each is not labelled_set]
        with ingest_set(labelled_set, console) as ingested:
            own = stored_search.observe_stored(
                ingested.services, ingested.reader, labelled_set, weight, others
            )
        results[labelled_set.name] = [_on_scale(each, scale) for each in own]
    return results


def _on_scale(observation: Observation, scale: SimilarityScale) -> Observation:
    features = observation.features
    position = (features.similarity - scale.unrelated) / scale.width
    return replace(observation, features=replace(features, similarity=position))


def fitted(sets: chain[Sequence[Observation]]) -> Calibration:
    return fit(sets, coverage_weight=SCALED_COVERAGE_WEIGHT)


def table(observed: Observed, fitted_to: Sequence[str]) -> list[str]:
    """A line for each model and set, whose observations are not among those of the fit."""
    lines = []
    for model in MODELS:
        for name in observed[model]:
            others = (own for each in fitted_to for other, own in observed[each].items() if other != name)
            shares = errors(observed[model][name], fitted(chain(others)))
            answered, high = shares["answered"], shares["high"]
            figures = [answered[ANSWERABLE], high[ANSWERABLE], high[HIDDEN], answered[FOREIGN]]
            percent = " | ".join(f"{100 * figure:.1f} %" for figure in figures)
            by = " and ".join(fitted_to)
            lines.append(f"| {by} | {model} | {name} | {percent} | {shares['auroc'][FOREIGN]:.3f} |")
    return lines


if __name__ == "__main__":
    main()
