"""Questions of four kinds about a shelf of made-up text, and a member who asks them through PostgREST."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from bench.contest import call, connected, literal
from bench.prose import KINDS as IDENTIFIER_KINDS
from bench.prose import SEED
from bench.shelf import Shelf
from bench.vectors import Halves

TOP_K = 10
COMMON = 100
WARM = 10
SEMANTIC, KEYWORD, HYBRID, GRAPH = "semantic", "keyword", "hybrid", "graph"
TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER = "like text", "common words", "a rare word", "an identifier"
KINDS = (TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER)
IDENTIFIER_OF = re.compile(rf"\b(?:{'|'.join(IDENTIFIER_KINDS)})-\d+")
FUNCTIONS = {SEMANTIC: "rag_match", GRAPH: "rag_graph_search"}
Rows = list[dict[str, Any]]
Draw = Callable[[random.Random], str]


def questions(draw: Draw, count: int) -> list[str]:
    drawn = random.Random(SEED)  # noqa: S311  # not a secret
    return [draw(drawn) for _ in range(count)]


def kinds(shelf: Shelf) -> dict[str, Draw]:
    common = [word for word, _ in shelf.holding.most_common(COMMON)]
    rare = sorted(word for word, count in shelf.holding.items() if count <= 5 and len(word) > 6)
    identifiers = sorted({name for chunk in shelf.chunks for name in IDENTIFIER_OF.findall(chunk)})
    return {
        TEXT: lambda draw: shelf.prose.question(draw.randrange(10**9)),
        COMMON_WORDS: lambda draw: " ".join(draw.sample(common, draw.randint(5, 8))),
        RARE_WORD: lambda draw: draw.choice(rare),
        IDENTIFIER: lambda draw: draw.choice(identifiers),
    }


@dataclass
class Taken:
    """Seconds and answers of one way to search, question by question."""

    seconds: list[float] = field(default_factory=list)
    answers: list[Rows] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1000

    @property
    def p95_ms(self) -> float:
        return quantiles(self.seconds, n=20)[-1] * 1000


@dataclass(frozen=True)
class Asker:
    address: str
    token: str

    def ask(
        self, texts: Sequence[str], vectors: Halves, ways: Sequence[str], top_k: int = TOP_K
    ) -> dict[str, Taken]:
        """Every way answers every question once, in an order that is drawn anew for each; the first few once
        more, before, and not counted."""
        taken = {way: Taken() for way in ways}
        shuffled = random.Random(7).sample  # noqa: S311  # not a secret
        asked = [(text, literal(vector)) for text, vector in zip(texts, vectors, strict=True)]
        with connected(self.address) as connection:
            for turn, (text, vector) in enumerate([*asked[:WARM], *asked]):
                for way in shuffled(list(ways), len(ways)):
                    function, body = request(way, text, vector, top_k)
                    started = perf_counter()
                    answer = call(connection, f"/rpc/{function}", self.token, body)
                    seconds = perf_counter() - started
                    if turn >= min(WARM, len(asked)):
                        taken[way].seconds.append(seconds)
                        said = json.loads(answer)
                        taken[way].answers.append(said["matches"] if way == GRAPH else said)
        return taken


def request(way: str, text: str, vector: str, top_k: int) -> tuple[str, bytes]:
    """The function and what it is sent. By word no vector is: the application does not embed then."""
    body: dict[str, Any] = {"top_k": top_k}
    if way != KEYWORD:
        body["query_vector"] = vector
    if way != SEMANTIC:
        body |= {"query_text": text, "mode": way}
    return FUNCTIONS.get(way, "rag_search"), json.dumps(body).encode()
