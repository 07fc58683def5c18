"""A worker as a process of its own, for tests that kill it: it works until then."""

import time

from shared.config import read_settings
from shared.pipeline import Pipeline
from shared.work import Worker


def main() -> None:
    core = Pipeline(read_settings())
    worker = Worker(core.database, core.embedder, core.require_signer(), core.networks)
    print("ready", flush=True)  # noqa: T201  # what the test waits for
    while True:
        if worker.work(2).claimed == 0:
            time.sleep(0.05)


if __name__ == "__main__":
    main()
