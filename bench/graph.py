"""What the graph costs. Searching: rag_search by both words and meaning and rag_graph_search, the ten best
of one org's 100,000 chunks of text with names (bench/names.py), and of a small org's with the same names,
through PostgREST as a member, in turns; by questions that name one to three, that misspell them, that name
whoever stands in every document, a register of 10,000, or the four commonest at once, and by questions
without a name. Ingestion with and without names (bench/naming.py). And what the rows take up."""

from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console

from bench import naming
from bench.asked import GRAPH, HYBRID, Asker, Taken
from bench.figures import Figure
from bench.name_rows import name_rows
from bench.names import COUNT, EVERYWHERE, REGISTER_TITLE, NamedProse, misspelled, name
from bench.prose import SEED
from bench.rows import Org
from bench.shelf import Shelf, index_words, stocked
from bench.tenants import Tenants, tenants

CHUNKS, SMALL_CHUNKS = 100_000, 2_000
QUESTIONS = 100
NAMING, MISTAKEN, IN_ALL, LISTED, COMMONEST, NAMELESS = (
    "1 to 3 names",
    "names misspelled",
    "a name in every document",
    "a register of 10,000 names",
    "the four commonest names",
    "no name",
)
GOALS = {
    NAMING: "<= 2",
    MISTAKEN: "<= 2",
    IN_ALL: "<= 2",
    LISTED: "<= 3",
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
TABLES = ("rag.subjects", "rag.mentions", "rag.relations")
Draw = Callable[[np.random.Generator], str]


def measure(console: Console, chunks: int = CHUNKS) -> list[Figure]:
    with tenants() as made:
        small, large = (_stocked(made, Org(2, SMALL_CHUNKS, 300)), _stocked(made, Org(1, chunks, 1500)))
        for shelf in (small, large):
            index_words(made, shelf, writers=2)
        made.with_index()
        figures = of_the_names(made)
        for shelf, suffix in ((large, ""), (small, f", of {SMALL_CHUNKS:,} chunks")):
            asker = Asker(made.postgrest, made.token(made.user(f"graph{shelf.org.number}", [shelf.org])))
            for kind, draw in kinds(shelf).items() if shelf is large else [(NAMING, kinds(shelf)[NAMING])]:
                texts = questions(draw, QUESTIONS)
                taken = asker.ask(texts, shelf.org.queries(QUESTIONS), (HYBRID, GRAPH))
                figures += compared(kind, taken, suffix)
                told = ", ".join(f"{way} {one.p50_ms:.1f} ms" for way, one in taken.items())
                console.print(f"{kind}{suffix}, for example {texts[0]!r}: {told}", highlight=False)
        return figures + naming.measure(made, large, console)


def _stocked(made: Tenants, org: Org) -> Shelf:
    shelf = stocked(made, org, NamedProse)
    name_rows(made, shelf)
    return shelf


def questions(draw: Draw, count: int) -> list[str]:
    drawn = np.random.default_rng(SEED)
    return [draw(drawn) for _ in range(count)]


def kinds(shelf: Shelf) -> dict[str, Draw]:
    prose = shelf.prose
    assert isinstance(prose, NamedProse)
    names = prose.names

    def words(draw: np.random.Generator) -> dict[str, str]:
        word, other, *_ = prose.question(int(draw.integers(10**9))).split()
        return {"word": word, "other": other}

    def naming(draw: np.random.Generator, *, mistaken: bool = False) -> str:
        """Names as often asked for as they are there, and any name, by turns."""
        drawn = names.drawn(draw, 3) if draw.integers(2) else draw.integers(COUNT, size=3)
        said = [name(int(number)) for number in drawn]
        if mistaken:
            said = [misspelled(one, draw) for one in said]
        return TEMPLATES[int(draw.integers(len(TEMPLATES)))].format(*said, **words(draw))

    def fixed(template: str, *said: str) -> Draw:
        return lambda draw: template.format(*said, **words(draw))

    return {
        NAMING: naming,
        MISTAKEN: lambda draw: naming(draw, mistaken=True),
        IN_ALL: fixed("What did {0} change about {word} {other}?", name(EVERYWHERE)),
        LISTED: fixed("What does the {0} say of {word} {other}?", REGISTER_TITLE),
        COMMONEST: fixed(
            "What have {0}, {1}, {2} and {3} to do with {word}?", *map(name, (EVERYWHERE, 0, 1, 2))
        ),
        NAMELESS: lambda draw: prose.question(int(draw.integers(10**9))),
    }


def compared(kind: str, taken: Mapping[str, Taken], suffix: str = "") -> list[Figure]:
    hybrid, graph = taken[HYBRID], taken[GRAPH]
    reached = sum(any(row["graph_score"] for row in rows) for rows in graph.answers) / len(graph.answers)
    note = f"the graph had a part in {reached:.0%}".replace("%", " %") + " of the pages"
    return [
        Figure(f"graph p50, {kind}{suffix}", graph.p50_ms, "ms", hybrid.p50_ms, GOALS[kind], note),
        Figure(f"graph p95, {kind}{suffix}", graph.p95_ms, "ms", hybrid.p95_ms),
    ]


def of_the_names(made: Tenants) -> list[Figure]:
    """What the graph has of these texts, and what that takes up, indexes and all."""
    chunks = made.number("select count(*) from rag.chunks")
    rows = {table: made.number(f"select count(*) from {table}") for table in TABLES}  # noqa: S608  # ours
    size = sum(made.number(f"select pg_total_relation_size('{table}')") for table in TABLES)
    text = made.number("select sum(length(content)) from rag.chunks")
    note = ", ".join(f"{count:,.0f} {table.removeprefix('rag.')}" for table, count in rows.items())
    return [
        Figure("graph rows, a chunk", sum(rows.values()) / chunks, "", note=note),
        Figure("graph rows' size, a chunk", size / chunks, "bytes", note=f"of {text / chunks:.0f} letters"),
    ]
