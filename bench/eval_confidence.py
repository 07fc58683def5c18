"""Observations of labelled questions by the real search, for the fit of a calibration and its errors.

A question of another set counts as foreign.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from bench.labelled_sets import IngestedSet
from shared import pipeline
from shared.calibration.labelled_sets import Item, LabelledSet
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, HIDDEN, Observation
from shared.generation.calibration_fit import observe as observation
from shared.generation.confidence import (
    CALIBRATIONS,
    JUDGED_MATCHES,
    SCALED_COVERAGE_WEIGHT,
    calibration_name,
)
from shared.generation.confidence_features import COVERAGE_WEIGHT
from shared.models.embeddings import Embedder
from shared.models.similarity_scale import measure_scale
from shared.types import Filters, Match

RESULTS = Path(__file__).parent / "results" / "confidence.json"
# The limit of questions of each kind and set, and of foreign questions from each other set.
QUESTIONS, FOREIGN_QUESTIONS = 500, 40
MAX_CHARACTERS = 500


def observe(
    ingested: IngestedSet,
    labelled_set: LabelledSet,
    others: Sequence[LabelledSet],
    coverage_weight: float = COVERAGE_WEIGHT,
) -> list[Observation]:
    observations: list[Observation] = []
    for item in _sample(labelled_set.questions):
        gold = labelled_set.relevant.get(item.id, {})
        kind = labelled_set.kind_of(item)
        if kind is None:
            continue
        matches = _search(ingested, item.text)
        observations.append(observation(kind, item.text, matches, coverage_weight))
        if kind == ANSWERABLE and gold:
            without = [match for match in matches if ingested.names.get(match.document_id) not in gold]
            observations.append(observation(HIDDEN, item.text, without, coverage_weight))
    for other in others:
        observations += [
            observation(FOREIGN, item.text, _search(ingested, item.text), coverage_weight)
            for item in _sample(_answerable(other), FOREIGN_QUESTIONS)
        ]
    return observations


def coverage_weight_of(embedder: Embedder) -> float:
    """The weight of a model's calibration: in proportion to the scale of its similarities, but that of the
    built-in calibrations as they were fitted. Raises EmbeddingFailed."""
    scale = None if embedder.model in CALIBRATIONS else measure_scale(embedder)
    return round(SCALED_COVERAGE_WEIGHT * scale.width, 4) if scale else COVERAGE_WEIGHT


def model_of(ingested: IngestedSet) -> str:
    """The name of the calibration that fits the observations."""
    reranker = ingested.services.reranker
    return calibration_name(ingested.services.embedder.model, reranker.model if reranker else None)


def _answerable(labelled_set: LabelledSet) -> list[Item]:
    return [item for item in labelled_set.questions if labelled_set.kind_of(item) == ANSWERABLE]


def _sample(items: Iterable[Item], limit: int | None = None) -> list[Item]:
    """Of each label at most so many, those whose ids hash lowest."""
    by_label: dict[str | None, list[Item]] = {}
    for item in sorted(items, key=lambda item: crc32(item.id.encode())):
        by_label.setdefault(item.label, []).append(item)
    return [item for group in by_label.values() for item in group[: limit or QUESTIONS]]


def _search(ingested: IngestedSet, text: str) -> tuple[Match, ...]:
    """More matches than are judged: hidden questions need others in the place of removed ones."""
    query = replace(
        pipeline.confidence_query(text[:MAX_CHARACTERS], Filters(), ingested.services.reranker is not None),
        top_k=2 * JUDGED_MATCHES,
    )
    return pipeline.search(ingested.services, ingested.reader, query).matches
