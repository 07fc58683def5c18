"""Interleaved measurement of SQL functions through PostgREST, against an exact oracle.

For each function: its times, its recall of the true nearest chunks, and the share of full pages.
"""

import http.client
import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from bench import synthetic_vectors
from bench.tenant_rows import Org, is_rare, row_of

TOP_K = 10
WARM = 10
# Rounding differs between two ways to compute one distance.
TIE = 1e-5


def vector_literal(vector: synthetic_vectors.Halves) -> str:
    """As pgvector reads it; the digits are enough for the same halves."""
    return f"[{','.join(f'{value:.7g}' for value in vector.astype(float))}]"


@dataclass(frozen=True)
class Candidate:
    """A function, its argument that takes the query, the one that takes the number, and the others; a token
    where the asker's own is not the one that it is called with."""

    function: str
    query: str = "query_vector"
    limit: str = "top_k"
    more: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = None

    def body(self, vector: synthetic_vectors.Halves) -> bytes:
        return json.dumps({self.query: vector_literal(vector), self.limit: TOP_K, **self.more}).encode()


@dataclass(frozen=True)
class Workload:
    """A user's questions, the rows that each may find, and how far away the last of the true page lies."""

    token: str
    queries: synthetic_vectors.Halves
    distances: Mapping[int, NDArray[np.float32]]
    page: int
    page_distance: Sequence[float]

    @classmethod
    def of(cls, token: str, orgs: Sequence[Org], count: int, *, rare: bool) -> "Workload":
        """`count` questions over all chunks of the orgs, or over the rare hundredth only."""
        queries = sample_queries(orgs, count)
        to_all = {org.number: _distances(org, queries, rare=rare) for org in orgs}
        every = np.concatenate(list(to_all.values()), axis=1)
        page = min(TOP_K, int(np.isfinite(every[0]).sum()))
        page_distance = np.partition(every, page - 1, axis=1)[:, page - 1]
        return cls(token, queries, to_all, page, [float(distance) for distance in page_distance])


def sample_queries(orgs: Sequence[Org], count: int) -> synthetic_vectors.Halves:
    """Questions of their user, about each org's topics in equal parts."""
    return np.concatenate([org.queries(-(-count // len(orgs))) for org in orgs])[:count]


def _distances(org: Org, queries: synthetic_vectors.Halves, *, rare: bool) -> NDArray[np.float32]:
    """Distances of each question to each row of the org; infinite to what the filter leaves out."""
    distances = synthetic_vectors.distances(org.embeddings(), queries)
    if rare:
        distances[:, ~is_rare(np.arange(org.chunks, dtype=np.uint64))] = np.inf
    return distances


@dataclass
class Timings:
    seconds: list[float] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1000

    @property
    def p95_ms(self) -> float:
        return float(np.percentile(self.seconds, 95)) * 1000


@dataclass
class Score(Timings):
    recalls: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    page: int = 0
    last: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recall(self) -> float:
        return sum(self.recalls) / len(self.recalls)

    @property
    def full_pages(self) -> float:
        """The share of questions whose page was full."""
        return sum(rows == self.page for rows in self.rows) / len(self.rows)

    @property
    def passes(self) -> bool:
        return self.recall >= 0.99 and self.full_pages == 1

    def record(self, workload: Workload, question: int, rows: Sequence[Mapping[str, Any]]) -> None:
        hits = 0
        for row in rows:
            org, number = row_of(row["chunk_id"])
            if org not in workload.distances:  # a control may return additional rows
                continue
            hits += bool(workload.distances[org][question, number] <= workload.page_distance[question] + TIE)
        self.page = workload.page
        self.recalls.append(min(hits, workload.page) / workload.page)
        self.rows.append(len(rows))
        self.last = rows[0] if rows else {}


def turns(names: Collection[str], questions: int) -> Iterator[tuple[int, str, bool]]:
    """Every name for every question, in an order that is drawn anew for each, and whether the turn counts:
    the first questions come once more before, and do not count."""
    shuffled = random.Random(7).sample  # noqa: S311  # not a secret
    warm = min(WARM, questions)
    for turn, question in enumerate([*range(warm), *range(questions)]):
        for name in shuffled(list(names), len(names)):
            yield question, name, turn >= warm


def run_interleaved(
    address: str, workload: Workload, candidates: Mapping[str, Candidate]
) -> dict[str, Score]:
    """Every contender answers every question. Raises RuntimeError at an answer that is no 200."""
    scores = {name: Score() for name in candidates}
    with connect(address) as connection:
        for question, name, counts in turns(candidates, len(workload.queries)):
            candidate = candidates[name]
            body, token = candidate.body(workload.queries[question]), candidate.token or workload.token
            started = perf_counter()
            answer = post(connection, f"/rpc/{candidate.function}", token, body)
            taken = perf_counter() - started
            if counts:
                scores[name].seconds.append(taken)
                scores[name].record(workload, question, json.loads(answer))
    return scores


@contextmanager
def connect(address: str) -> Iterator[http.client.HTTPConnection]:
    """One connection to that host, for many calls."""
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as connection:
        yield connection


def post(connection: http.client.HTTPConnection, path: str, token: str, body: bytes) -> bytes:
    """The answer's body. Raises RuntimeError when it is no 200."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    output = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {output[:500]!r}")
    return output
