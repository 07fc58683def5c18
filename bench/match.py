"""rag_match through PostgREST, by size of tenant, with and without a filter that leaves a hundredth: recall,
full pages, its time beside the best hand-written SQL for just that case, and the textbook's function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from bench.contest import Contender, Paper, Score, contest
from bench.figures import Figure
from bench.hand_written import TEXTBOOK_ROLE, hand_written, textbook
from bench.rows import Org
from bench.tenants import LARGE, MIDDLING, SMALL, Tenants, others, tenants

QUESTIONS = 120
SMALL_ORGS = 200
MEMBERSHIPS = 50
REST = 100_000 - LARGE.chunks - MIDDLING.chunks - SMALL.chunks
OURS, TEXTBOOK = "rag_match", "textbook"


@dataclass(frozen=True)
class Cell:
    """Who asks, over which orgs, and whether over the rare hundredth of their chunks."""

    name: str
    orgs: Sequence[Org]
    rare: bool

    @property
    def slug(self) -> str:
        return self.name.replace(",", "").replace(" ", "_").replace("%", "percent")


def cells(rest: Sequence[Org]) -> list[Cell]:
    users = {f"{org.chunks:,} chunks": [org] for org in (LARGE, MIDDLING, SMALL)}
    users[f"{MEMBERSHIPS} orgs"] = list(rest[:MEMBERSHIPS])
    return [
        Cell(f"{name}, 1 %" if rare else name, orgs, rare)
        for name, orgs in users.items()
        for rare in (False, True)
    ]


def measure(console: Console) -> list[Figure]:
    figures: list[Figure] = []
    with tenants() as made:
        rest = others(REST, SMALL_ORGS)
        made.add([LARGE, MIDDLING, SMALL, *rest])
        made.with_index()
        made.connection.execute(TEXTBOOK_ROLE)
        for cell in cells(rest):
            scores = run(made, cell)
            figures += judged(cell, scores)
            console.print(f"{cell.name}: " + "; ".join(told(name, score) for name, score in scores.items()))
    return figures


def run(made: Tenants, cell: Cell) -> dict[str, Score]:
    user = made.user(cell.slug, cell.orgs)
    indexed = sum(org.chunks for org in cell.orgs) > 1000 and not cell.rare
    contenders: dict[str, Contender] = {
        OURS: Contender(OURS, more={"filters": {"source_type": "faq"}} if cell.rare else {}),
        TEXTBOOK: textbook(made.connection, made.token(user, "textbook"), rare=cell.rare),
        **hand_written(made.connection, cell.slug, cell.orgs, rare=cell.rare, indexed=indexed),
    }
    made.show_functions()
    paper = Paper.of(made.token(user), cell.orgs, QUESTIONS, rare=cell.rare)
    return contest(made.postgrest, paper, contenders)


def judged(cell: Cell, scores: Mapping[str, Score]) -> list[Figure]:
    ours, book = scores[OURS], scores[TEXTBOOK]
    attempts = {
        name: score for name, score in scores.items() if name not in (OURS, TEXTBOOK) and score.passes
    }
    best = min(attempts, key=lambda name: attempts[name].p50_ms)
    how = f"exact {ours.last.get('exact')}, beside: {best}"
    rows = sum(book.rows) / len(book.rows)
    return [
        Figure(f"recall, {cell.name}", ours.recall, "", goal=">= 0.99"),
        Figure(f"full pages, {cell.name}", ours.full_pages, "", goal=">= 1"),
        Figure(f"p50, {cell.name}", ours.p50_ms, "ms", attempts[best].p50_ms, "<= 1.3", how),
        Figure(f"textbook recall, {cell.name}", book.recall, ""),
        Figure(f"textbook rows of {book.page}, {cell.name}", rows, ""),
        Figure(f"textbook p50, {cell.name}", book.p50_ms, "ms"),
    ]


def told(name: str, score: Score) -> str:
    return f"{name} {score.p50_ms:.2f} ms, recall {score.recall:.3f}, full {score.full_pages:.2f}"
