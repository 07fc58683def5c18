"""Function ingest: the worker for documents, webhooks, the graph, sources and calibrations, called by a
schedule.

EventBridge invokes it with an event, functions/schedule.py calls it in its own process, and Cloud Scheduler
and pg_cron with pg_net call it over HTTP, with the worker's token.
"""

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from typing import Any, NamedTuple

from pydantic import BaseModel

from shared.access.token_signer import Signer
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import worker_only
from shared.api.contracts.platform import error_format
from shared.api.contracts.platform.webhooks import message_of
from shared.api.dependencies import Container, get_services
from shared.calibration.fit_to_shipped_questions import continue_first_calibration
from shared.documents.webhook_delivery_attempts import WebhookSender
from shared.ingestion.document_worker import Worker
from shared.ingestion.graph_worker import GraphWorker
from shared.ingestion.job_queue import LATEST_CLAIM_SECONDS, BatchResult, BusyOrgs, Jobs, work_until
from shared.ingestion.maintenance import extend_hnsw, remove_due, remove_old_rows
from shared.ingestion.sources.open_source import open_source
from shared.ingestion.sources.source_worker import SourceWorker
from shared.services import Services

# How long a call claims jobs; a little longer while a slow one is processed. Afterwards the call finishes the
# claimed ones.
BUDGET_SECONDS = 45.0
# Each is busy with one org. The parser of each may use 2 GB (serverless.yml).
DOCUMENT_THREADS, SOURCE_THREADS = 2, 4
# How long a call continues a calibration, for which the next documents wait.
CALIBRATION_SECONDS = 5.0
# A thread of rounds: their sum, and whether nothing is due.
Rounds = Future[tuple[BatchResult, bool]]

app = create_app(error_format, "ingest", searches=False, errors=(401, 404, 500, 503))


class WorkReport(BaseModel):
    """The numbers of processed documents, of webhook deliveries, of documents whose names were extracted
    (`read`), and of sources that were listed. `idle`: no due item remained."""

    completed: int
    failed: int
    postponed: int
    delivered: int
    undelivered: int
    read: int
    sources: int
    idle: bool


@app.post("/functions/v1/ingest", dependencies=[worker_only])
def ingest(services: Container) -> WorkReport:
    return work(services)


def _calibrate(services: Services, signer: Signer) -> bool:
    """Whether each model of the deployment has a calibration, or another worker fits it."""
    done = [
        continue_first_calibration(services.database, signer, embedder, CALIBRATION_SECONDS)
        for embedder in services.embedders
    ]
    return all(done)


def _together(threads: Sequence[Rounds]) -> tuple[BatchResult, bool]:
    """The results of all, and whether nothing is due."""
    results = [thread.result() for thread in threads]
    return sum((batch for batch, _ in results), BatchResult()), all(is_idle for _, is_idle in results)


def work(services: Services, latest_claim: float = LATEST_CLAIM_SECONDS) -> WorkReport:
    """One call of the worker. While a slow document is processed others are claimed, at most `latest_claim`
    seconds after the budget. Raises a RagError for a queue whose items cannot be claimed."""
    signer = services.require_signer()
    threads = _process_queues(services, signer, latest_claim)
    documents, all_ingested = _together(threads.ingestion)
    remove_old_rows(services.database, signer)
    extend_hnsw(services.database, signer)
    if services.storage:
        remove_due(services.database, signer, services.storage)
    is_calibrated = threads.calibration.result()
    deliveries, _ = threads.delivery.result()
    extractions, all_extracted = threads.extraction.result()
    listings, all_listed = _together(threads.listing)
    return WorkReport(
        completed=documents.completed,
        failed=documents.failed,
        postponed=documents.postponed,
        delivered=deliveries.completed,
        undelivered=deliveries.claimed - deliveries.completed,
        read=extractions.completed,
        sources=listings.completed,
        idle=all_ingested and all_extracted and all_listed and is_calibrated,
    )


class _Threads(NamedTuple):
    """The threads of a call, which have ended."""

    calibration: Future[bool]
    delivery: Rounds
    listing: Sequence[Rounds]
    extraction: Rounds
    ingestion: Sequence[Rounds]


def _process_queues(services: Services, signer: Signer, latest_claim: float) -> _Threads:
    """Process each queue in threads of its own until the budget is over. Documents do not wait for slow
    receivers or sources, nor these for long documents."""
    jobs = Jobs(services.database, signer)
    orgs_with_documents = BusyOrgs()
    worker = Worker(
        jobs,
        services.embedder,
        services.networks,
        services.transcriber,
        services.storage,
        services.embedder_of_org,
        orgs_with_documents,
    )
    sender = WebhookSender(services.database, signer, services.networks, message_of)
    graph_worker = GraphWorker(jobs)
    source_worker = SourceWorker(
        jobs,
        partial(open_source, networks=services.networks, endpoints=services.settings.rag_source_endpoints),
    )
    end, finished = time.monotonic() + BUDGET_SECONDS, Event()

    # Each waits some seconds for more work, and returns whether its loop continues.
    def wait_to_list(seconds: float) -> bool:
        return orgs_with_documents.has_work(seconds)

    def wait_to_extract(seconds: float) -> bool:
        return bool(wait(listing, seconds).not_done) or orgs_with_documents.has_work(seconds)

    def wait_to_ingest(seconds: float) -> bool:
        slow = wait([*listing, extraction], seconds).not_done
        return bool(slow) or orgs_with_documents.are_busy(seconds, claimed_by=end)

    def wait_to_deliver(seconds: float) -> bool:
        return not finished.wait(seconds)

    # The call takes documents until sources and extractions have ended: the next call begins afterwards.
    with ThreadPoolExecutor(DOCUMENT_THREADS + SOURCE_THREADS + 3) as pool:
        calibration = pool.submit(_calibrate, services, signer)
        delivery = pool.submit(work_until, sender.deliver, end, wait_to_deliver, math.inf)
        listing = [
            pool.submit(work_until, source_worker.work, end, wait_to_list) for _ in range(SOURCE_THREADS)
        ]
        extraction = pool.submit(work_until, graph_worker.build, end, wait_to_extract)
        try:
            ingestion = [
                pool.submit(work_until, worker.work, end, wait_to_ingest, latest_claim)
                for _ in range(DOCUMENT_THREADS)
            ]
            wait(ingestion)
        finally:
            finished.set()
    return _Threads(calibration, delivery, listing, extraction, ingestion)


_http = lambda_handler(app)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """The AWS Lambda entry point for events of a schedule and HTTP requests."""
    if event.get("source") == "aws.events":
        return work(get_services()).model_dump()
    return _http(event, context)
