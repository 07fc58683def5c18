"""Scheduler of the local stack: calls the ingest function repeatedly, as EventBridge would."""

import os
import time

import httpx

from shared.clients.http_client import http_client

PAUSE_SECONDS = 1.0
# Longer than one call takes.
TIMEOUT_SECONDS = 300.0


def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['RAG_WORKER_TOKEN']}"}
    with http_client(TIMEOUT_SECONDS) as client:
        while True:
            try:
                response = client.post(os.environ["LOCAL_INGEST_URL"], headers=headers)
                idle = response.status_code != 200 or response.json()["idle"]
            except httpx.TransportError:
                idle = True
            if idle:
                time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
