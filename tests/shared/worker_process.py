"""A worker as a process of its own, for tests that kill it: until then it works, as a schedule has it."""

import time

from shared.config import read_settings
from shared.errors import RagError
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult, Jobs
from shared.services import Services


def main() -> None:
    services = Services(read_settings())
    worker = Worker(Jobs(services.database, services.require_signer()), services.embedder)
    while True:
        try:
            done = worker.work(2)
        except RagError:
            # Nothing could be claimed: the database is away.
            done = BatchResult()
        if done.claimed == 0:
            time.sleep(0.05)


if __name__ == "__main__":
    main()
