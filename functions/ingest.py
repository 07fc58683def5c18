"""ingest: the worker. A schedule calls it; it does what waits, documents, webhooks and the graph, for as long
as it may.

EventBridge invokes it with an event of its own; Cloud Scheduler, pg_cron with pg_net, and the local stack
call it over HTTP, with the worker's token.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from pydantic import BaseModel

from shared.api.app import create_app, lambda_handler
from shared.api.contracts.platform import common as wire
from shared.api.contracts.platform.webhooks import message_of
from shared.api.dependencies import Core, get_services, worker_only
from shared.documents.webhook_delivery import WebhookSender
from shared.ingestion.graph_worker import GraphWorker
from shared.ingestion.job_queue import BatchResult, Jobs
from shared.ingestion.storage_cleanup import remove_deleted_collections, remove_due
from shared.ingestion.worker import Worker

# How long a call goes on claiming; what it has claimed then, it finishes.
BUDGET_SECONDS = 45.0

# It searches nothing: it starts without a reranker, an answering model and thresholds.
app = create_app(wire, "ingest", searches=False, errors=(401, 404, 500, 503))


class Report(BaseModel):
    """What one call did, of documents and of webhooks, and how many documents it read for names besides.
    `idle`: nothing was left that was due."""

    completed: int
    failed: int
    postponed: int
    delivered: int
    undelivered: int
    read: int
    idle: bool


@app.post("/functions/v1/ingest", dependencies=[worker_only])
def ingest(core: Core) -> Report:
    return _work(core)


def _work(core: Core) -> Report:
    signer = core.require_signer()
    jobs = Jobs(core.database, signer)
    worker = Worker(jobs, core.embedder, core.networks, core.transcriber, core.storage)
    courier = WebhookSender(core.database, signer, core.networks, message_of)
    builder = GraphWorker(jobs, core.graph_model)
    # Beside each other: documents do not wait for slow receivers or models, nor these for long documents.
    finished = Event()
    with ThreadPoolExecutor(2) as beside:
        delivering = beside.submit(courier.deliver_until, finished, BUDGET_SECONDS)
        reading = beside.submit(builder.build_until, finished, BUDGET_SECONDS)
        try:
            done, idle = _documents(worker)
        finally:
            finished.set()
        sent = delivering.result()
        read, all_read = reading.result()
    remove_deleted_collections(core.database, signer)
    if core.storage:
        remove_due(core.database, signer, core.storage)
    return Report(
        completed=done.completed,
        failed=done.failed,
        postponed=done.postponed,
        delivered=sent.delivered,
        undelivered=sent.claimed - sent.delivered,
        read=read.completed,
        idle=idle and all_read,
    )


def _documents(worker: Worker) -> tuple[BatchResult, bool]:
    """What was done of them, and whether nothing was left that was due."""
    done, idle, until = BatchResult(), False, time.monotonic() + BUDGET_SECONDS
    while not idle and time.monotonic() < until:
        step = worker.work()
        idle = step.claimed == 0
        done += step
    return done, idle


_http = lambda_handler(app)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """The AWS Lambda entry point: of a schedule's event, or of an HTTP request."""
    if event.get("source") == "aws.events":
        return _work(get_services()).model_dump()
    return _http(event, context)
