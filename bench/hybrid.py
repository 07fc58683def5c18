"""What searching by words costs beside searching by meaning: rag_match, rag_search by word and by both, the
ten best of one org's 100,000 chunks of text (bench/prose.py), through PostgREST as a member, in turns. By
questions drawn like text, questions of common words alone, one rare word, one identifier; and what is lost,
and saved, by reading a bounded number of postings for each term."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from bench.asked import (
    COMMON_WORDS,
    HYBRID,
    KEYWORD,
    SEMANTIC,
    TEXT,
    TOP_K,
    Asker,
    Rows,
    Taken,
    kinds,
    questions,
)
from bench.figures import Figure
from bench.rows import Org
from bench.shelf import Shelf, index_words, stocked
from bench.tenants import Tenants, tenants
from bench.vectors import Halves

CHUNKS = 100_000
QUESTIONS = 100
ALL_POSTINGS = 1_000_000
GOAL = "<= 2.5"


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
    """The keyword search as it is set, and reading every posting; and what it finds of the best there are:
    reading every posting, and scoring so many documents as a page of a hundred wants."""
    read = int(made.number("select postings_read from rag.settings"))
    made.connection.execute("update rag.settings set postings_read = %s", [ALL_POSTINGS])
    whole = asker.ask(texts, vectors, [KEYWORD])[KEYWORD]
    best = [every[:TOP_K] for every in asker.ask(texts, vectors, [KEYWORD], 100)[KEYWORD].answers]
    made.connection.execute("update rag.settings set postings_read = %s", [read])
    recalls = [recall(some, every) for some, every in zip(bound.answers, best, strict=True) if every]
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
    ranked = [count / len(chunks) for _, count in shelf.holding.most_common()]
    words = sum(len(chunk.split()) for chunk in chunks)
    postings = made.number("select count(*) from rag.postings")
    size = made.number("select pg_total_relation_size('rag.postings')") / 2**20
    counts = made.number("select pg_total_relation_size('rag.term_counts')") / 2**20
    shares = ", ".join(f"{ranked[place - 1]:.1%}" for place in (1, 10, 100, 1000) if place <= len(ranked))
    once = sum(count == 1 for count in shelf.holding.values()) / len(ranked)
    note = (
        f"{len(shelf.written):,} documents, {words / len(chunks):.0f} words a chunk, "
        f"{len(ranked):,} words, {once:.0%} of them in one chunk; "
        f"the 1st, 10th, 100th and 1,000th in {shares}"
    )
    return [
        Figure("text, chunks", len(chunks), "", note=note),
        Figure("index_words, a document", seconds * 1000 / len(shelf.written), "ms"),
        Figure("postings, a document", postings / len(shelf.written), ""),
        Figure("postings, size", size, "MiB"),
        Figure("term_counts, size", counts, "MiB"),
    ]
