"""Cost of keyword search: rag_match, and rag_search in the modes keyword and hybrid, the ten best of one
org's 100,000 chunks of text (bench/synthetic_text.py), through PostgREST as a member, alternately.

Questions are sampled like text, of common words, of one rare word, of one identifier, and long. Also the
recall beside a search that scores more documents.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rich.console import Console

from bench.figures import Figure
from bench.interleaved import TOP_K, Timings, connect, post, turns, vector_literal
from bench.synthetic_text import KINDS as IDENTIFIER_KINDS
from bench.synthetic_text import SEED
from bench.synthetic_vectors import Halves
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.text_corpus import TextCorpus, index_words, load_corpus

CHUNKS = 100_000
QUESTIONS = 100
GOAL, KEYWORD_GOAL = "<= 2.5", "<= 50"
COMMON = 100
SEMANTIC, KEYWORD, HYBRID = "semantic", "keyword", "hybrid"
TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER = "like text", "common words", "a rare word", "an identifier"
LONG, PASSAGE = "16 to 39 words of text", "40 to 120 words of text"
KINDS = (TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER, LONG, PASSAGE)
IDENTIFIER_OF = re.compile(rf"\b(?:{'|'.join(IDENTIFIER_KINDS)})-\d+")
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
class Answers(Timings):
    """Of one way to search, question by question."""

    answers: list[Rows] = field(default_factory=list)


@dataclass(frozen=True)
class SearchClient:
    address: str
    token: str

    def ask(
        self, texts: Sequence[str], vectors: Halves, methods: Sequence[str], top_k: int = TOP_K
    ) -> dict[str, Answers]:
        """Every way answers every question."""
        timings = {method: Answers() for method in methods}
        with connect(self.address) as connection:
            for question, method, counts in turns(methods, len(texts)):
                vector = vector_literal(vectors[question])
                function, body = search_request(method, texts[question], vector, top_k)
                started = perf_counter()
                answer = post(connection, f"/rpc/{function}", self.token, body)
                seconds = perf_counter() - started
                if counts:
                    timings[method].seconds.append(seconds)
                    timings[method].answers.append(json.loads(answer))
        return timings


def search_request(method: str, text: str, vector: str, top_k: int) -> tuple[str, bytes]:
    """The function and what it is sent. By word no vector is: the application does not embed then."""
    body: dict[str, Any] = {"top_k": top_k}
    if method != KEYWORD:
        body["query_vector"] = vector
    if method != SEMANTIC:
        body |= {"query_text": text, "mode": method}
    return "rag_match" if method == SEMANTIC else "rag_search", json.dumps(body).encode()


def measure(console: Console, chunks: int = CHUNKS) -> list[Figure]:
    with tenant_database() as tenants:
        corpus = load_corpus(tenants, Org(1, chunks, 1500))
        seconds = index_words(tenants, corpus)
        tenants.with_index()
        client = SearchClient(tenants.postgrest, tenants.token(tenants.user("hybrid", [corpus.org])))
        figures = text_figures(tenants, corpus, seconds)
        for kind, draw in kinds(corpus).items():
            texts = questions(draw, QUESTIONS)
            vectors = corpus.org.queries(QUESTIONS)
            taken = client.ask(texts, vectors, (SEMANTIC, KEYWORD, HYBRID))
            figures += compare(kind, taken)
            if kind in (TEXT, COMMON_WORDS, LONG, PASSAGE):
                figures += compare_pages(kind, client, texts, vectors, taken[KEYWORD])
            summary = ", ".join(f"{method} {one.p50_ms:.2f} ms" for method, one in taken.items())
            console.print(f"{kind}, for example {texts[0]!r}: {summary}", highlight=False)
        return figures


def compare(kind: str, timings: Mapping[str, Answers]) -> list[Figure]:
    semantic = timings[SEMANTIC].p50_ms
    results = sum(map(bool, timings[KEYWORD].answers)) / len(timings[KEYWORD].answers)
    note = f"{results:.0%} of the questions found something"
    return [
        Figure(f"keyword p50, {kind}", timings[KEYWORD].p50_ms, "ms", semantic, None, note),
        Figure(f"keyword p95, {kind}", timings[KEYWORD].p95_ms, "ms", None, KEYWORD_GOAL),
        Figure(
            f"hybrid p50, {kind}", timings[HYBRID].p50_ms, "ms", semantic, GOAL if kind == TEXT else None,
            "beside rag_match",
        ),
    ]  # fmt: skip


def compare_pages(
    kind: str,
    client: SearchClient,
    texts: Sequence[str],
    vectors: Halves,
    page: Answers,
) -> list[Figure]:
    """What a page of ten finds of the best ten of a page of 300, for which thirty times as many documents are
    scored."""
    best = [every[:TOP_K] for every in client.ask(texts, vectors, [KEYWORD], 300)[KEYWORD].answers]
    recalls = [recall(some, every) for some, every in zip(page.answers, best, strict=True) if every]
    return [
        Figure(f"keyword recall@10, {kind}", sum(recalls) / len(recalls), "", note="beside a page of 300")
    ]


def recall(some: Rows, every: Rows) -> float:
    """The share of the true page that is there; what scores as much as its last is as good."""
    last = float(every[-1]["score"]) - 1e-9
    return min(1.0, sum(bool(row["score"] >= last) for row in some) / len(every))


def text_figures(tenants: TenantDatabase, corpus: TextCorpus, seconds: float) -> list[Figure]:
    """Figures of the synthetic text and of its index."""
    chunks = corpus.chunks
    ranked = [count / len(chunks) for _, count in corpus.chunk_counts.most_common()]
    words = sum(len(chunk.split()) for chunk in chunks)
    terms = tenants.number("select pg_total_relation_size('rag.document_terms')") / 2**20
    blocks = tenants.number("select pg_total_relation_size('rag.term_blocks')") / 2**20
    segments = tenants.number("select count(*) from rag.term_segments")
    shares = ", ".join(f"{ranked[place - 1]:.1%}" for place in (1, 10, 100, 1000) if place <= len(ranked))
    once = sum(count == 1 for count in corpus.chunk_counts.values()) / len(ranked)
    note = (
        f"{len(corpus.documents):,} documents, {words / len(chunks):.0f} words a chunk, "
        f"{len(ranked):,} words, {once:.0%} of them in one chunk; "
        f"the 1st, 10th, 100th and 1,000th in {shares}"
    )
    return [
        Figure("text, chunks", len(chunks), "", note=note),
        Figure("index_words, a document", seconds * 1000 / len(corpus.documents), "ms"),
        Figure("segments", segments, ""),
        Figure("document_terms, size", terms, "MiB"),
        Figure("term_blocks, size", blocks, "MiB"),
    ]
