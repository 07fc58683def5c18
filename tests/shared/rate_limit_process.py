"""Process that counts requests of one user against the rate limit from several threads.

`python -m tests.shared.rate_limit_process THREADS ATTEMPTS RATE`. The settings and the user come from the
environment. The process waits for a line on its input, and prints the numbers of admitted and refused calls.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from limits import parse
from starlette.requests import Request

from shared.access.rate_limit import RateLimitCheck, RefusalCache, check_rate_limit
from shared.clients.postgrest import Database
from shared.errors import RateLimited
from shared.types import Principal


def attempt(
    database: Database,
    caller: Principal,
    rate: str,
    bucket: str = "rag",
    refusals: RefusalCache | None = None,
) -> RateLimitCheck | None:
    """One request against the limit; None when it is refused."""
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [], "state": {}})
    spending = RateLimitCheck(database, caller, "rag-search", bucket, parse(rate))
    try:
        check_rate_limit(request, spending, refusals or RefusalCache())
    except RateLimited:
        return None
    return spending


def main(threads: int, attempts: int, rate: str) -> None:
    caller = Principal(os.environ["USER_ID"], os.environ["USER_TOKEN"])
    address, key = os.environ["SUPABASE_URL"], os.environ["SUPABASE_ANON_KEY"]
    secret = os.environ["RAG_FUNCTIONS_SECRET"]
    with closing(Database(address, key, 60, secret)) as database, ThreadPoolExecutor(threads) as pool:
        print("ready", flush=True)  # noqa: T201
        sys.stdin.readline()
        done = list(pool.map(lambda _: attempt(database, caller, rate) is not None, range(attempts)))
    print(done.count(True), done.count(False))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
