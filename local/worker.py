"""The schedule of a local stack: calls the ingest function again and again, as EventBridge would."""

import os
import time

import httpx

PAUSE_SECONDS = 1.0
# Longer than one call goes on.
PATIENCE_SECONDS = 300.0


def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['RAG_WORKER_TOKEN']}"}
    with httpx.Client(timeout=PATIENCE_SECONDS) as client:
        while True:
            try:
                answer = client.post(os.environ["LOCAL_INGEST_URL"], headers=headers)
                idle = answer.status_code != 200 or answer.json()["idle"]
            except httpx.TransportError:
                idle = True
            if idle:
                time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
