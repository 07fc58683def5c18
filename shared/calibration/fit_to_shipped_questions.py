"""A model's first calibration, fitted to the questions that the product ships: the adopter labels none.

The worker fits it when a deployment first has a model without one: it embeds the shipped documents and
questions once, in slices of time, and stores the fit in rag.settings. A calibration of the adopter's own
questions takes its place.
"""

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from shared.access.token_signer import Signer, worker_principal
from shared.calibration.labelled_sets import sets_in
from shared.calibration.memory_search import MemorySearch
from shared.clients.postgrest import Database
from shared.errors import RagError
from shared.generation.calibration_fit import BUDGET, HIDDEN, ON_TOPIC, report
from shared.generation.confidence import CALIBRATIONS, SCALED_COVERAGE_WEIGHT, SHIPPED_QUESTIONS
from shared.models.embeddings import Embedder
from shared.models.scale_before_calibration import measure_scale

log = logging.getLogger("rag")
SHIPPED = Path(__file__).with_name("questions")
# A worker of a release with other questions fits again.
QUESTION_SET = "2026-11"
# The shipped documents are few, so that foreign questions are less similar to them than to an adopter's: of
# six public sets, 3 % of the foreign questions are answered (docs/benchmarks.md).
FOREIGN_ANSWERED = 0.3


def shipped_search(embedder: Embedder) -> MemorySearch:
    """Raises EmbeddingFailed, and ValueError for a model that does not tell the questions apart."""
    scale = measure_scale(embedder)
    if scale is None:
        raise ValueError("the model does not tell questions with an answer from others")
    return MemorySearch(embedder, sets_in(SHIPPED), round(SCALED_COVERAGE_WEIGHT * scale.width, 4))


def fitted(search: MemorySearch, model: str, budget: float = BUDGET) -> dict[str, Any]:
    """The calibration as rag.settings has it, with its date and its errors: each set's, if there are
    several, by a fit of the others. Raises ValueError for a model that does not tell the questions
    apart."""
    observed = {
        name: [replace(item, kind=HIDDEN) if item.kind == ON_TOPIC else item for item in items]
        for name, items in search.observations.items()
    }
    summary = report(observed, model, budget, search.coverage_weight, FOREIGN_ANSWERED)
    return {**stored(summary), "question_set": QUESTION_SET, "source": SHIPPED_QUESTIONS}


def stored(summary: dict[str, Any]) -> dict[str, Any]:
    """The row of rag.settings for the report of a fit."""
    about = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "budget": summary["budget"], "sets": summary["sets"]}
    return {**summary["calibration"], **about}


_searches: WeakKeyDictionary[Embedder, MemorySearch] = WeakKeyDictionary()
# Those whose claim this process has.
_claimed: WeakSet[Embedder] = WeakSet()


def continue_first_calibration(
    database: Database, signer: Signer, embedder: Embedder, seconds: float
) -> bool:
    """For the worker: fit the model's first calibration, where the database has none and no other worker does
    so, or continue for so many seconds. Returns whether nothing remains. A failure is logged; the claim
    expires, and then a worker begins again. No worker does for a model that no calibration fits."""
    model = embedder.model
    if model in CALIBRATIONS:
        return True

    def call(function: str, **arguments: Any) -> Any:
        arguments |= {"model": model, "question_set": QUESTION_SET}
        return database.call(worker_principal(signer), function, arguments)

    end = time.monotonic() + seconds
    try:
        if embedder not in _claimed:
            if not call("rag_claim_calibration"):
                return True
            _claimed.add(embedder)
            log.info("%s has no calibration of confidence: it is fitted to the shipped questions", model)
        try:
            if embedder not in _searches:
                _searches[embedder] = shipped_search(embedder)
            if not _searches[embedder].run_until(end):
                return False
            calibration = fitted(_searches[embedder], model)
        except ValueError as error:
            calibration = None
            log.warning("%s: no calibration: %s; see make calibrate", model, error)
        call("rag_store_calibration", calibration=calibration)
        _searches.pop(embedder, None)
    except RagError as error:
        # The search stays: the next claim continues it.
        log.warning("%s could not be calibrated (%s); the worker tries again", model, error.log_reason)
    _claimed.discard(embedder)
    return True
