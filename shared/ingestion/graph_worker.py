"""Graph extraction in the worker: by rules, then by a model, where one is configured.

A document is extracted and stored in parts. A long one is postponed now and then, so that others get their
turn. Stored parts are not repeated, even if the worker dies.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from shared.errors import RagError
from shared.graph.llm_extractor import GraphModel
from shared.graph.name_folding import fold
from shared.graph.rule_extractor import extract
from shared.graph.types import Extraction
from shared.ingestion.graph_job import ExtractionJob, Row
from shared.ingestion.job_queue import LEASE_SECONDS, BatchResult, Job, Jobs, attempt

CLAIMED = 8
# Concurrent calls of the model, and the seconds of one document before others get their turn.
CONCURRENT_CALLS, TURN_SECONDS = 4, 15
# The rest of a round is postponed after these.
ROUND_SECONDS = 60


class GraphWorker:
    """Extracts claimed documents. Several workers at once never extract a document twice."""

    def __init__(self, jobs: Jobs, model: GraphModel | None = None) -> None:
        self._jobs = jobs
        # None after a failure, until the next call of the worker.
        self._model = model
        self._lease_seconds = LEASE_SECONDS + round(4 * model.seconds if model else 0)

    def build(self) -> BatchResult:
        """One round: some documents, each completed, failed or postponed. Raises a RagError for a failed
        claim."""
        arguments = {
            "max_items": CLAIMED,
            "lease_seconds": self._lease_seconds,
            "with_model": self._model is not None,
        }
        claimed = self._jobs.claimed("rag_claim_extractions", arguments)
        total, until = BatchResult(claimed=len(claimed)), time.monotonic() + ROUND_SECONDS
        for row in claimed:
            job = Job.of(row["document_id"], row)
            extraction = ExtractionJob(self._jobs, job, self._lease_seconds)
            action = self._read if time.monotonic() < until else self._postpone
            total += attempt(extraction, job, partial(action, extraction))
            if self._model is not None:
                extraction.log_usage(self._model.model)
        return total

    def _read(self, extraction: ExtractionJob) -> BatchResult:
        until = time.monotonic() + TURN_SECONDS
        while (part := extraction.next_part()) is not None:
            if part["level"] == 0:
                texts = [chunk["content"] for chunk in part["chunks"]]
                more = extraction.store(part["first"], extract(part["title"], texts))
            elif self._model is None:
                return self._postpone(extraction)
            else:
                more = self._read_by_model(self._model, extraction, part, until)
            if not more:
                break
            if time.monotonic() > until:
                return self._postpone(extraction)
        return BatchResult(completed=1)

    def _postpone(self, extraction: ExtractionJob) -> BatchResult:
        extraction.postpone()
        return BatchResult(postponed=1)

    def _read_by_model(self, model: GraphModel, extraction: ExtractionJob, part: Row, until: float) -> bool:
        """Extract chunks until the time is over. Returns whether the document has more."""
        chunks, more = part["chunks"], True
        for start in range(0, max(1, len(chunks)), CONCURRENT_CALLS):
            group = chunks[start : start + CONCURRENT_CALLS]
            names, failed = self._extract(model, extraction, part["title"], group)
            if names or not group:
                more = extraction.store(part["first"] + start, names, model.model)
            if failed is not None:
                if failed.status >= 500:
                    self._model = None
                raise failed
            if time.monotonic() > until:
                break
        return more

    def _extract(
        self, model: GraphModel, extraction: ExtractionJob, title: str, chunks: Sequence[Row]
    ) -> tuple[list[Extraction | None], RagError | None]:
        """The results of the first chunks, and the error that stopped the rest."""
        names: list[Extraction | None] = []
        with ThreadPoolExecutor(CONCURRENT_CALLS) as pool:
            futures: list[Future[Extraction | None]] = [
                pool.submit(
                    model.extract, title, chunk["content"], _full_names(chunk["names"]), extraction.usage
                )
                for chunk in chunks
            ]
        for one in futures:
            try:
                names.append(one.result())
            except RagError as failed:
                return names, failed
        return names, None


def _full_names(names: Sequence[Row]) -> dict[str, str]:
    """Names in full by their short forms in the chunk, by the rules' extraction."""
    return {
        fold(surface): row["name"]
        for row in names
        for surface in row["surfaces"]
        if fold(surface) != fold(row["name"])
    }
