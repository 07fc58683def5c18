"""Load generator: a closed loop of clients on persistent connections."""

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from urllib.parse import urlsplit


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, path: str, token: str, body: object) -> "Request":
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return cls("POST", path, headers, json.dumps(body).encode())


@dataclass
class Outcome:
    """Of all clients together: seconds of each request, statuses (0 for a broken connection), and how long it
    took in all."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    elapsed: float = 0.0

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1000

    @property
    def per_second(self) -> float:
        return len(self.seconds) / self.elapsed

    def add(self, other: "Outcome") -> None:
        self.seconds += other.seconds
        self.statuses += other.statuses
        self.elapsed += other.elapsed


def run_clients(url: str, clients: int, next_request: Callable[[int, int], Request | None]) -> Outcome:
    """Each client sends what `next_request(client, number)` says, one after the other, until it says None.

    Raises RuntimeError unless every answer was a 200: speed at failing is not measured.
    """
    total = Outcome()
    lock = threading.Lock()
    parts = urlsplit(url)

    def run(client: int) -> None:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        own = Outcome()
        number = 0
        while (request := next_request(client, number)) is not None:
            number += 1
            started = perf_counter()
            try:
                connection.request(request.method, request.path, request.body, request.headers)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException):
                connection.close()
                status = 0
            own.statuses[status] += 1
            own.seconds.append(perf_counter() - started)
        connection.close()
        with lock:
            total.seconds += own.seconds
            total.statuses += own.statuses

    threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
    started = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total.elapsed = perf_counter() - started
    if set(total.statuses) - {200}:
        raise RuntimeError(f"{url}: answers by status {dict(total.statuses)}")
    return total
