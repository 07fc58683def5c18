"""Graph extraction in the worker: by the rules for new documents, then by a model, where one is configured.

    claim -> open -> read -> keep, a part of its chunks at a time

A long document is postponed now and then, so that others get their turn. Parts that are stored are not read
again, even if the worker dies.
"""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

from shared.errors import RagError
from shared.graph.extractor import extract
from shared.graph.llm_extractor import GraphModel
from shared.graph.name_folding import fold
from shared.graph.types import Extraction
from shared.ingestion.graph_job import Reading, Row
from shared.ingestion.job_queue import LEASE_SECONDS, BatchResult, Job, Jobs, JobScope

log = logging.getLogger("rag")
CLAIMED = 8
# Concurrent calls of the model, and the seconds of one document before others get their turn.
ASKED_AT_ONCE, TURN_SECONDS = 4, 15
# After which the rest of a round is left for the next one.
ROUND_SECONDS = 60
# Before the next claim, while there is nothing.
PAUSE_SECONDS = 0.5


class GraphWorker:
    """Several workers at once never read a document twice."""

    def __init__(self, jobs: Jobs, model: GraphModel | None = None) -> None:
        self._jobs = jobs
        # None after a failure: the next call of the worker tries it again.
        self._model = model
        self._lease_seconds = LEASE_SECONDS + round(4 * model.seconds if model else 0)

    def build_until(self, finished: Event, seconds: float) -> tuple[BatchResult, bool]:
        """Read documents until `finished` is set and nothing is left, or the seconds are over; and whether
        nothing is left. A failed claim is logged."""
        done, until = BatchResult(), time.monotonic() + seconds
        while True:
            last = finished.is_set()
            this = self._build_or_say_why()
            done += this
            if time.monotonic() > until or (last and not this.claimed):
                return done, not this.claimed
            if not this.claimed:
                finished.wait(PAUSE_SECONDS)

    def _build_or_say_why(self) -> BatchResult:
        try:
            return self.build()
        except RagError as error:
            log.warning("nothing was read for names: %s (%s)", error.code, error.because)
            return BatchResult()

    def build(self) -> BatchResult:
        """One round: some documents, each read, failed with a reason, or postponed. Raises a RagError when
        nothing can be claimed."""
        arguments = {
            "wanted": CLAIMED,
            "lease_seconds": self._lease_seconds,
            "with_model": self._model is not None,
        }
        claimed = self._jobs.claimed("rag_claim_extractions", arguments)
        done, until = BatchResult(claimed=len(claimed)), time.monotonic() + ROUND_SECONDS
        for row in claimed:
            job = Job(
                row["document_id"],
                row["org_id"],
                row["user_id"],
                row["lease"],
                row["attempts"],
                row["as_admin"],
            )
            reading = Reading(self._jobs, job, self._lease_seconds)
            with JobScope(reading, job) as outcome:
                done += self._read(reading) if time.monotonic() < until else self._leave(reading)
            done += outcome.became
            if self._model is not None:
                reading.say_cost(self._model.model)
        return done

    def _read(self, reading: Reading) -> BatchResult:
        until = time.monotonic() + TURN_SECONDS
        while (part := reading.open()) is not None:
            if part["level"] == 0:
                texts = [chunk["content"] for chunk in part["chunks"]]
                more = reading.keep(part["first"], extract(part["title"], texts))
            elif self._model is None:
                return self._leave(reading)
            else:
                more = self._read_by_model(self._model, reading, part, until)
            if not more:
                break
            if time.monotonic() > until:
                return self._leave(reading)
        return BatchResult(completed=1)

    def _leave(self, reading: Reading) -> BatchResult:
        reading.leave()
        return BatchResult(postponed=1)

    def _read_by_model(self, model: GraphModel, reading: Reading, part: Row, until: float) -> bool:
        """Read as much of the part as there is time for. Returns whether the document has more."""
        chunks, more = part["chunks"], True
        for start in range(0, max(1, len(chunks)), ASKED_AT_ONCE):
            some = chunks[start : start + ASKED_AT_ONCE]
            names, failed = self._ask(model, reading, part["title"], some)
            if names or not some:
                more = reading.keep(part["first"] + start, names, model.model)
            if failed is not None:
                if failed.status >= 500:
                    self._model = None
                raise failed
            if time.monotonic() > until:
                break
        return more

    def _ask(
        self, model: GraphModel, reading: Reading, title: str, chunks: Sequence[Row]
    ) -> tuple[list[Extraction | None], RagError | None]:
        """The names in the first chunks, and the error that stopped the rest."""
        names: list[Extraction | None] = []
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            futures: list[Future[Extraction | None]] = [
                pool.submit(model.extract, title, chunk["content"], _known(chunk["names"]), reading.spent)
                for chunk in chunks
            ]
        for one in futures:
            try:
                names.append(one.result())
            except RagError as failed:
                return names, failed
        return names, None


def _known(names: Sequence[Row]) -> dict[str, str]:
    """Whole names by their short forms in the chunk, as the rules have read them."""
    return {
        fold(surface): row["name"]
        for row in names
        for surface in row["said"]
        if fold(surface) != fold(row["name"])
    }
