"""Cost of the graph: rag_search (hybrid) and rag_graph_search, the ten best of one org's 100,000 chunks of
text with names (bench/synthetic_names.py) and of a small org, through PostgREST as a member, alternately.

Questions have one to three names, misspelled names, the name that is in every document, a register of 10,000
names, the four most common names, or no name. Also ingestion with and without names
(bench/graph_ingestion.py), and the size of the rows.
"""

from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console

from bench import graph_ingestion
from bench.figures import Figure
from bench.load_graph_rows import load_graph_rows
from bench.question_sets import GRAPH, HYBRID, SearchClient, Timings
from bench.synthetic_names import COUNT, EVERYWHERE, REGISTER_TITLE, NamedProse, misspell, name
from bench.synthetic_text import SEED
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.text_corpus import TextCorpus, index_words, load_corpus

CHUNKS, SMALL_CHUNKS = 100_000, 2_000
QUESTIONS = 100
NAMED, MISSPELLED, IN_ALL, IN_REGISTER, COMMONEST, NAMELESS = (
    "1 to 3 names",
    "names misspelled",
    "a name in every document",
    "a register of 10,000 names",
    "the four commonest names",
    "no name",
)
GOALS = {
    NAMED: "<= 2",
    MISSPELLED: "<= 2",
    IN_ALL: "<= 2",
    IN_REGISTER: "<= 3",
    COMMONEST: "<= 3",
    NAMELESS: "<= 2",
}
TEMPLATES = (
    "Which team owns {0} {word}?",
    "What is known of {0} and {word} {other}?",
    "Who does {0} report to about {word}?",
    "How is {0} connected with {1}?",
    "What did {0} and {1} say about {word}?",
    "What have {0}, {1} and {2} in common {word}?",
)
TABLES = ("rag.title_entities", "rag.mentions", "rag.relations")
Draw = Callable[[np.random.Generator], str]


def measure(console: Console, chunks: int = CHUNKS) -> list[Figure]:
    with tenant_database() as tenants:
        small, large = (_stocked(tenants, Org(2, SMALL_CHUNKS, 300)), _stocked(tenants, Org(1, chunks, 1500)))
        for corpus in (small, large):
            index_words(tenants, corpus, writers=2)
        tenants.with_index()
        figures = graph_figures(tenants)
        for corpus, suffix in ((large, ""), (small, f", of {SMALL_CHUNKS:,} chunks")):
            client = SearchClient(
                tenants.postgrest, tenants.token(tenants.user(f"graph{corpus.org.number}", [corpus.org]))
            )
            for kind, draw in kinds(corpus).items() if corpus is large else [(NAMED, kinds(corpus)[NAMED])]:
                texts = questions(draw, QUESTIONS)
                taken = client.ask(texts, corpus.org.queries(QUESTIONS), (HYBRID, GRAPH))
                figures += compare(kind, taken, suffix)
                summary = ", ".join(f"{method} {one.p50_ms:.1f} ms" for method, one in taken.items())
                console.print(f"{kind}{suffix}, for example {texts[0]!r}: {summary}", highlight=False)
        return figures + graph_ingestion.measure(tenants, large, console)


def _stocked(tenants: TenantDatabase, org: Org) -> TextCorpus:
    corpus = load_corpus(tenants, org, NamedProse)
    load_graph_rows(tenants, corpus)
    return corpus


def questions(draw: Draw, count: int) -> list[str]:
    drawn = np.random.default_rng(SEED)
    return [draw(drawn) for _ in range(count)]


def kinds(corpus: TextCorpus) -> dict[str, Draw]:
    prose = corpus.prose
    assert isinstance(prose, NamedProse)
    names = prose.names

    def words(draw: np.random.Generator) -> dict[str, str]:
        word, other, *_ = prose.question(int(draw.integers(10**9))).split()
        return {"word": word, "other": other}

    def naming(draw: np.random.Generator, *, mistaken: bool = False) -> str:
        """Names as often asked for as they are there, and any name, by turns."""
        drawn = names.drawn(draw, 3) if draw.integers(2) else draw.integers(COUNT, size=3)
        phrases = [name(int(number)) for number in drawn]
        if mistaken:
            phrases = [misspell(one, draw) for one in phrases]
        return TEMPLATES[int(draw.integers(len(TEMPLATES)))].format(*phrases, **words(draw))

    def fixed(template: str, *phrases: str) -> Draw:
        return lambda draw: template.format(*phrases, **words(draw))

    return {
        NAMED: naming,
        MISSPELLED: lambda draw: naming(draw, mistaken=True),
        IN_ALL: fixed("What did {0} change about {word} {other}?", name(EVERYWHERE)),
        IN_REGISTER: fixed("What does the {0} say of {word} {other}?", REGISTER_TITLE),
        COMMONEST: fixed(
            "What have {0}, {1}, {2} and {3} to do with {word}?", *map(name, (EVERYWHERE, 0, 1, 2))
        ),
        NAMELESS: lambda draw: prose.question(int(draw.integers(10**9))),
    }


def compare(kind: str, timings: Mapping[str, Timings], suffix: str = "") -> list[Figure]:
    hybrid, graph = timings[HYBRID], timings[GRAPH]
    pages_with_graph = sum(any(row["graph_score"] for row in rows) for rows in graph.answers) / len(
        graph.answers
    )
    note = f"the graph had a part in {pages_with_graph:.0%}".replace("%", " %") + " of the pages"
    return [
        Figure(f"graph p50, {kind}{suffix}", graph.p50_ms, "ms", hybrid.p50_ms, GOALS[kind], note),
        Figure(f"graph p95, {kind}{suffix}", graph.p95_ms, "ms", hybrid.p95_ms),
    ]


def graph_figures(tenants: TenantDatabase) -> list[Figure]:
    """What the graph has of these texts, and what that takes up, indexes and all."""
    chunks = tenants.number("select count(*) from rag.chunks")
    rows = {table: tenants.number(f"select count(*) from {table}") for table in TABLES}  # noqa: S608  # ours
    size = sum(tenants.number(f"select pg_total_relation_size('{table}')") for table in TABLES)
    text = tenants.number("select sum(length(content)) from rag.chunks")
    note = ", ".join(f"{count:,.0f} {table.removeprefix('rag.')}" for table, count in rows.items())
    return [
        Figure("graph rows, a chunk", sum(rows.values()) / chunks, "", note=note),
        Figure("graph rows' size, a chunk", size / chunks, "bytes", note=f"of {text / chunks:.0f} letters"),
    ]
