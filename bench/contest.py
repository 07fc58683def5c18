"""Functions of the database that answer the same questions, asked in turns through PostgREST and marked
against an exact oracle: how long each took, what share of the true nearest it found, whether its pages were
full."""

import http.client
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from bench import vectors
from bench.rows import Org, is_rare, row_of

TOP_K = 10
# Rounding differs between two ways to compute one distance.
TIE = 1e-5


def literal(vector: vectors.Halves) -> str:
    """As pgvector reads it; the digits are enough for the same halves."""
    return f"[{','.join(f'{value:.7g}' for value in vector.astype(float))}]"


@dataclass(frozen=True)
class Contender:
    """A function, its argument that takes the query, the one that takes the number, and the others; a token
    where the asker's own is not the one that it is called with."""

    function: str
    query: str = "query_vector"
    limit: str = "top_k"
    more: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = None

    def body(self, vector: vectors.Halves) -> bytes:
        return json.dumps({self.query: literal(vector), self.limit: TOP_K, **self.more}).encode()


@dataclass(frozen=True)
class Paper:
    """A user's questions, the rows that each may find, and how far away the last of the true page lies."""

    token: str
    queries: vectors.Halves
    distances: Mapping[int, NDArray[np.float32]]
    page: int
    furthest: Sequence[float]

    @classmethod
    def of(cls, token: str, orgs: Sequence[Org], count: int, *, rare: bool) -> "Paper":
        """`count` questions over all chunks of the orgs, or over the rare hundredth only."""
        queries = asked(orgs, count)
        to_all = {org.number: _to_all(org, queries, rare=rare) for org in orgs}
        every = np.concatenate(list(to_all.values()), axis=1)
        page = min(TOP_K, int(np.isfinite(every[0]).sum()))
        furthest = np.partition(every, page - 1, axis=1)[:, page - 1]
        return cls(token, queries, to_all, page, [float(distance) for distance in furthest])


def asked(orgs: Sequence[Org], count: int) -> vectors.Halves:
    """Questions of their user, about each org's topics in equal parts."""
    return np.concatenate([org.queries(-(-count // len(orgs))) for org in orgs])[:count]


def _to_all(org: Org, queries: vectors.Halves, *, rare: bool) -> NDArray[np.float32]:
    """Distances of each question to each row of the org; infinite to what the filter leaves out."""
    found = vectors.distances(org.embeddings(), queries)
    if rare:
        found[:, ~is_rare(np.arange(org.chunks, dtype=np.uint64))] = np.inf
    return found


@dataclass
class Score:
    seconds: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    page: int = 0
    last: Mapping[str, Any] = field(default_factory=dict)

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1000

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

    def mark(self, paper: Paper, question: int, rows: Sequence[Mapping[str, Any]]) -> None:
        hits = 0
        for row in rows:
            org, number = row_of(row["chunk_id"])
            if org not in paper.distances:  # a control may answer with rows that nobody asked for
                continue
            hits += bool(paper.distances[org][question, number] <= paper.furthest[question] + TIE)
        self.page = paper.page
        self.recalls.append(min(hits, paper.page) / paper.page)
        self.rows.append(len(rows))
        self.last = rows[0] if rows else {}


def contest(
    address: str, paper: Paper, contenders: Mapping[str, Contender], *, warm: int = 10
) -> dict[str, Score]:
    """Every contender answers every question once, in an order that is drawn anew for each; the first
    `warm` questions are answered once more, before, and not counted.

    Raises RuntimeError at an answer that is no 200.
    """
    scores = {name: Score() for name in contenders}
    shuffled = random.Random(7).sample  # noqa: S311  # not a secret
    with connected(address) as connection:
        for turn, question in enumerate([*range(warm), *range(len(paper.queries))]):
            for name in shuffled(list(contenders), len(contenders)):
                contender = contenders[name]
                body = contender.body(paper.queries[question])
                started = perf_counter()
                answer = call(connection, f"/rpc/{contender.function}", contender.token or paper.token, body)
                taken = perf_counter() - started
                if turn >= warm:
                    scores[name].seconds.append(taken)
                    scores[name].mark(paper, question, json.loads(answer))
    return scores


@contextmanager
def connected(address: str) -> Iterator[http.client.HTTPConnection]:
    """One connection to that host, for many calls."""
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as connection:
        yield connection


def call(connection: http.client.HTTPConnection, path: str, token: str, body: bytes) -> bytes:
    """The answer's body. Raises RuntimeError when it is no 200."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {said[:500]!r}")
    return said
