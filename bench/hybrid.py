"""What searching by words costs beside searching by meaning: rag_match, rag_search by word and by both, the
ten best of one org's 100,000 chunks of text (bench/prose.py), through PostgREST as a member, in turns. By
questions drawn like text, questions of common words alone, one rare word, one identifier; and what is lost,
and saved, by reading a bounded number of postings for each term."""

import http.client
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console

from bench.contest import call, literal
from bench.figures import Figure
from bench.prose import SEED
from bench.rows import Org
from bench.shelf import Shelf, index_words, stocked
from bench.tenants import Tenants, tenants
from bench.vectors import Halves

CHUNKS = 100_000
QUESTIONS = 100
TOP_K = 10
COMMON = 100
WARM = 10
SEMANTIC, KEYWORD, HYBRID = "semantic", "keyword", "hybrid"
TEXT, COMMON_WORDS, RARE_WORD, IDENTIFIER = "like text", "common words", "a rare word", "an identifier"
ALL_POSTINGS = 1_000_000
GOAL = "<= 2.5"
Rows = list[dict[str, Any]]
Draw = Callable[[random.Random], str]


@dataclass
class Taken:
    """Seconds and answers of one way to search, question by question."""

    seconds: list[float] = field(default_factory=list)
    answers: list[Rows] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1000


@dataclass(frozen=True)
class Asker:
    address: str
    token: str

    def ask(self, texts: Sequence[str], vectors: Halves, ways: Sequence[str]) -> dict[str, Taken]:
        """Every way answers every question once, in an order that is drawn anew for each; the first few once
        more, before, and not counted."""
        parts = urlsplit(self.address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        taken = {way: Taken() for way in ways}
        shuffled = random.Random(7).sample  # noqa: S311  # not a secret
        asked = [(text, literal(vector)) for text, vector in zip(texts, vectors, strict=True)]
        for turn, (text, vector) in enumerate([*asked[:WARM], *asked]):
            for way in shuffled(list(ways), len(ways)):
                function, body = request(way, text, vector)
                started = perf_counter()
                answer = call(connection, f"/rpc/{function}", self.token, body)
                seconds = perf_counter() - started
                if turn >= min(WARM, len(asked)):
                    taken[way].seconds.append(seconds)
                    taken[way].answers.append(json.loads(answer))
        connection.close()
        return taken


def request(way: str, text: str, vector: str) -> tuple[str, bytes]:
    """The function and what it is sent. By word no vector is: the application does not embed then."""
    body: dict[str, Any] = {"top_k": TOP_K}
    if way != KEYWORD:
        body["query_vector"] = vector
    if way != SEMANTIC:
        body |= {"query_text": text, "mode": way}
    return "rag_match" if way == SEMANTIC else "rag_search", json.dumps(body).encode()


def measure(console: Console, chunks: int = CHUNKS) -> list[Figure]:
    with tenants() as made:
        shelf = stocked(made, Org(1, chunks, 1500))
        seconds = index_words(made, shelf)
        made.with_index()
        asker = Asker(made.postgrest, made.token(made.user("hybrid", [shelf.org])))
        figures = of_the_text(made, shelf, seconds)
        for kind, draw in kinds(shelf).items():
            texts = questions(draw, QUESTIONS)
            vectors = shelf.org.queries(QUESTIONS)
            taken = asker.ask(texts, vectors, (SEMANTIC, KEYWORD, HYBRID))
            figures += compared(kind, taken)
            if kind in (TEXT, COMMON_WORDS):
                figures += bounded(made, kind, asker, texts, vectors, taken[KEYWORD])
            told = ", ".join(f"{way} {one.p50_ms:.2f} ms" for way, one in taken.items())
            console.print(f"{kind}, for example {texts[0]!r}: {told}", highlight=False)
        return figures


def questions(draw: Draw, count: int) -> list[str]:
    drawn = random.Random(SEED)  # noqa: S311  # not a secret
    return [draw(drawn) for _ in range(count)]


def kinds(shelf: Shelf) -> dict[str, Draw]:
    holding: Counter[str] = Counter()
    named: set[str] = set()
    for chunk in shelf.chunks:
        holding.update(set(shelf.prose.content_words(chunk)))
        named |= {word.strip(".") for word in chunk.split() if word[0].isupper() and word[-2:-1].isdigit()}
    common = [word for word, _ in holding.most_common(COMMON)]
    rare = sorted(word for word, count in holding.items() if count <= 5 and len(word) > 6)
    identifiers = sorted(name for name in named if name.split("-")[0].isupper() and "-" in name)
    return {
        TEXT: lambda draw: shelf.prose.question(draw.randrange(10**9)),
        COMMON_WORDS: lambda draw: " ".join(draw.sample(common, draw.randint(5, 8))),
        RARE_WORD: lambda draw: draw.choice(rare),
        IDENTIFIER: lambda draw: draw.choice(identifiers),
    }


def compared(kind: str, taken: Mapping[str, Taken]) -> list[Figure]:
    semantic = taken[SEMANTIC].p50_ms
    found = sum(map(bool, taken[KEYWORD].answers)) / len(taken[KEYWORD].answers)
    note = f"{found:.0%} of the questions found something"
    return [
        Figure(f"keyword p50, {kind}", taken[KEYWORD].p50_ms, "ms", semantic, None, note),
        Figure(
            f"hybrid p50, {kind}", taken[HYBRID].p50_ms, "ms", semantic, GOAL if kind == TEXT else None,
            "beside rag_match",
        ),
    ]  # fmt: skip


def bounded(
    made: Tenants, kind: str, asker: Asker, texts: Sequence[str], vectors: Halves, bound: Taken
) -> list[Figure]:
    """The keyword search as it is set, and reading every posting."""
    read = int(made.number("select postings_read from rag.settings"))
    made.connection.execute("update rag.settings set postings_read = %s", [ALL_POSTINGS])
    whole = asker.ask(texts, vectors, [KEYWORD])[KEYWORD]
    made.connection.execute("update rag.settings set postings_read = %s", [read])
    recalls = [recall(some, every) for some, every in zip(bound.answers, whole.answers, strict=True) if every]
    note = f"at most {read:,} postings a term read; beside all of them"
    return [
        Figure(f"keyword recall@10, {kind}", sum(recalls) / len(recalls), "", note=note),
        Figure(f"keyword p50 reading all postings, {kind}", whole.p50_ms, "ms"),
    ]


def recall(some: Rows, every: Rows) -> float:
    """The share of the true page that is there; what scores as much as its last is as good."""
    last = float(every[-1]["score"]) - 1e-9
    return min(1.0, sum(bool(row["score"] >= last) for row in some) / len(every))


def of_the_text(made: Tenants, shelf: Shelf, seconds: float) -> list[Figure]:
    """What was made up, as far as it can be told in numbers, and what it took to index it."""
    chunks = shelf.chunks
    holding: Counter[str] = Counter()
    for chunk in chunks:
        holding.update(set(shelf.prose.content_words(chunk)))
    ranked = [count / len(chunks) for _, count in holding.most_common()]
    words = sum(len(chunk.split()) for chunk in chunks)
    postings = made.number("select count(*) from rag.postings")
    size = made.number("select pg_total_relation_size('rag.postings')") / 2**20
    counts = made.number("select pg_total_relation_size('rag.term_counts')") / 2**20
    shares = ", ".join(f"{ranked[place - 1]:.1%}" for place in (1, 10, 100, 1000) if place <= len(ranked))
    once = sum(count == 1 for count in holding.values()) / len(holding)
    note = (
        f"{len(shelf.written):,} documents, {words / len(chunks):.0f} words a chunk, "
        f"{len(holding):,} words, {once:.0%} of them in one chunk; "
        f"the 1st, 10th, 100th and 1,000th in {shares}"
    )
    return [
        Figure("text, chunks", len(chunks), "", note=note),
        Figure("index_words, a document", seconds * 1000 / len(shelf.written), "ms"),
        Figure("postings, a document", postings / len(shelf.written), ""),
        Figure("postings, size", size, "MiB"),
        Figure("term_counts, size", counts, "MiB"),
    ]
