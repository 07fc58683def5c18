"""Questions of several kinds about synthetic text: asked by a client as a member."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from bench.interleaved import connect, post, vector_literal
from bench.synthetic_text import KINDS as IDENTIFIER_KINDS
from bench.synthetic_text import SEED
from bench.synthetic_vectors import Halves
from bench.text_corpus import TextCorpus

TOP_K = 10
COMMON = 100
WARM = 10
SEMANTIC, KEYWORD, HYBRID, GRAPH = "semantic", "keyword", "hybrid", "graph"
TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER = "like text", "common words", "a rare word", "an identifier"
LONG, PASSAGE = "16 to 39 words of text", "40 to 120 words of text"
KINDS = (TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER, LONG, PASSAGE)
IDENTIFIER_OF = re.compile(rf"\b(?:{'|'.join(IDENTIFIER_KINDS)})-\d+")
FUNCTIONS = {SEMANTIC: "rag_match", GRAPH: "rag_graph_search"}
Rows = list[dict[str, Any]]
Draw = Callable[[random.Random], str]


def questions(draw: Draw, count: int) -> list[str]:
    drawn = random.Random(SEED)  # noqa: S311  # not a secret
    return [draw(drawn) for _ in range(count)]


def kinds(corpus: TextCorpus) -> dict[str, Draw]:
    common = [word for word, _ in corpus.chunk_counts.most_common(COMMON)]
    rare = sorted(word for word, count in corpus.chunk_counts.items() if count <= 5 and len(word) > 6)
    identifiers = sorted({name for chunk in corpus.chunks for name in IDENTIFIER_OF.findall(chunk)})
    return {
        TEXT: lambda draw: corpus.prose.question(draw.randrange(10**9)),
        COMMON_WORDS: lambda draw: " ".join(draw.sample(common, draw.randint(5, 8))),
        RARE_WORD: lambda draw: draw.choice(rare),
        IDENTIFIER: lambda draw: draw.choice(identifiers),
        LONG: lambda draw: corpus.prose.passage(draw.randrange(10**9), 16, 39),
        PASSAGE: lambda draw: corpus.prose.passage(draw.randrange(10**9), 40, 120),
    }


@dataclass
class Timings:
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
class SearchClient:
    address: str
    token: str

    def ask(
        self, texts: Sequence[str], vectors: Halves, methods: Sequence[str], top_k: int = TOP_K
    ) -> dict[str, Timings]:
        """Every way answers every question once, in an order that is drawn anew for each; the first few once
        more, before, and not counted."""
        timings = {method: Timings() for method in methods}
        shuffled = random.Random(7).sample  # noqa: S311  # not a secret
        requests = [(text, vector_literal(vector)) for text, vector in zip(texts, vectors, strict=True)]
        with connect(self.address) as connection:
            for turn, (text, vector) in enumerate([*requests[:WARM], *requests]):
                for method in shuffled(list(methods), len(methods)):
                    function, body = search_request(method, text, vector, top_k)
                    started = perf_counter()
                    answer = post(connection, f"/rpc/{function}", self.token, body)
                    seconds = perf_counter() - started
                    if turn >= min(WARM, len(requests)):
                        timings[method].seconds.append(seconds)
                        message = json.loads(answer)
                        timings[method].answers.append(message["matches"] if method == GRAPH else message)
        return timings


def search_request(method: str, text: str, vector: str, top_k: int) -> tuple[str, bytes]:
    """The function and what it is sent. By word no vector is: the application does not embed then."""
    body: dict[str, Any] = {"top_k": top_k}
    if method != KEYWORD:
        body["query_vector"] = vector
    if method != SEMANTIC:
        body |= {"query_text": text, "mode": method}
    return FUNCTIONS.get(method, "rag_search"), json.dumps(body).encode()
