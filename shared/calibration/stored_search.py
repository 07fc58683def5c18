"""Observations of labelled questions by the real search, as a user, over documents that are stored."""

from collections.abc import Sequence
from dataclasses import replace

from shared import pipeline
from shared.calibration.labelled_sets import QUESTIONS_OF_A_KIND, LabelledSet, sample
from shared.errors import RerankFailed
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, HIDDEN, Observation, observe
from shared.generation.confidence import (
    CALIBRATIONS,
    JUDGED_MATCHES,
    SCALED_COVERAGE_WEIGHT,
    calibration_name,
)
from shared.generation.confidence_features import COVERAGE_WEIGHT
from shared.models.embeddings import Embedder
from shared.models.scale_before_calibration import measure_scale
from shared.services import Services
from shared.types import Filters, Match, Principal

# Of each other set.
FOREIGN_QUESTIONS = 40
MAX_CHARACTERS = 500


def observe_stored(
    services: Services,
    caller: Principal,
    labelled_set: LabelledSet,
    coverage_weight: float = COVERAGE_WEIGHT,
    others: Sequence[LabelledSet] = (),
) -> list[Observation]:
    """A question of another set counts as foreign. The ids of the set's documents are the names that the
    caller gave them, or their ids. Raises a RagError, and ValueError where no search finds any of them."""

    def matches_of(question: str) -> tuple[Match, ...]:
        # More than are judged: hidden questions need others in the place of removed ones.
        query = replace(
            pipeline.confidence_query(question[:MAX_CHARACTERS], Filters(), services.reranker is not None),
            top_k=2 * JUDGED_MATCHES,
        )
        result = pipeline.search(services, caller, query)
        if result.rerank_failed:
            raise RerankFailed(log_reason="a search of the calibration was not reranked")
        return result.matches

    observations: list[Observation] = []
    is_any_found = not labelled_set.relevant
    for item in sample(labelled_set.questions, QUESTIONS_OF_A_KIND):
        kind = labelled_set.kind_of(item)
        if kind is None:
            continue
        matches = matches_of(item.text)
        observations.append(observe(kind, item.text, matches, coverage_weight))
        gold = labelled_set.relevant.get(item.id, {})
        is_any_found |= any(match.document_name in gold for match in matches)
        if kind == ANSWERABLE and gold:
            without = [match for match in matches if match.document_name not in gold]
            observations.append(observe(HIDDEN, item.text, without, coverage_weight))
    if not is_any_found:
        raise ValueError(
            f"{labelled_set.name}: no document of qrels.tsv was found; its ids are the names that the user "
            "gave the documents, or their ids"
        )
    for other in others:
        answerable = (item for item in other.questions if other.kind_of(item) == ANSWERABLE)
        observations += [
            observe(FOREIGN, item.text, matches_of(item.text), coverage_weight)
            for item in sample(answerable, FOREIGN_QUESTIONS)
        ]
    return observations


def coverage_weight_of(embedder: Embedder) -> float:
    """The weight of a model's calibration: in proportion to the scale of its similarities, or as that of the
    built-in one. Raises EmbeddingFailed."""
    if built_in := CALIBRATIONS.get(embedder.model):
        return built_in.coverage_weight
    scale = measure_scale(embedder)
    return round(SCALED_COVERAGE_WEIGHT * scale.width, 4) if scale else COVERAGE_WEIGHT


def calibration_name_of(services: Services) -> str:
    """The name of the calibration that fits the observations."""
    reranker = services.reranker
    return calibration_name(services.embedder.model, reranker.model if reranker else None)
