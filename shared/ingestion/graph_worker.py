"""The worker's third hand: documents that nobody has read for names yet are read by the rules, and those that
only the rules have read by a model, where one is configured.

    claim -> open -> read -> keep, a part of its chunks at a time

A long document is put down now and then, so that others get their turn. Whatever dies, what was kept is not
read again.
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
# How many chunks a model is asked about at once, and what one document may take before others are read.
ASKED_AT_ONCE, TURN_SECONDS = 4, 15
# After which the rest of a round's documents is left for another.
ROUND_SECONDS = 60
# Until the next look, while there is nothing.
PAUSE_SECONDS = 0.5


class GraphWorker:
    """Several at once never read a document twice."""

    def __init__(self, jobs: Jobs, model: GraphModel | None = None) -> None:
        self._jobs = jobs
        # None, too, once it has failed: then it is asked again when the worker is called next.
        self._model = model
        self._lease_seconds = LEASE_SECONDS + round(4 * model.seconds if model else 0)

    def build_until(self, finished: Event, seconds: float) -> tuple[BatchResult, bool]:
        """What is to be read, until whatever brings more has finished and nothing is left, or the seconds are
        over; and whether nothing is left. When nothing can be claimed, the log says so."""
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
        """One round: some documents, each read, or failed with a reason, or put off. Raises a RagError when
        nothing can be claimed."""
        wanted = {
            "wanted": CLAIMED,
            "lease_seconds": self._lease_seconds,
            "with_model": self._model is not None,
        }
        claimed = self._jobs.claimed("rag_claim_extractions", wanted)
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
        """As much of the part as there is time for; whether there is more of the document."""
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
        """What the first of them name, and why not the others."""
        names: list[Extraction | None] = []
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            asked: list[Future[Extraction | None]] = [
                pool.submit(model.read, title, chunk["content"], _known(chunk["names"]), reading.spent)
                for chunk in chunks
            ]
        for one in asked:
            try:
                names.append(one.result())
            except RagError as failed:
                return names, failed
        return names, None


def _known(names: Sequence[Row]) -> dict[str, str]:
    """Whole names by what the chunk writes in their place, as the rules have read it."""
    return {
        fold(surface): row["name"]
        for row in names
        for surface in row["said"]
        if fold(surface) != fold(row["name"])
    }
