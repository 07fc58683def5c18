"""rag_match through PostgREST by tenant size: with and without a filter that 1 % of the chunks pass.

Recall, full pages, its time compared with the best hand-written SQL for each case, and the textbook function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from bench.baseline_sql import TEXTBOOK_ROLE, expert_candidates, textbook_candidate
from bench.figures import Figure
from bench.interleaved import Candidate, Score, Workload, run_interleaved
from bench.tenant_rows import Org
from bench.tenants import LARGE, MEDIUM, SMALL, TenantDatabase, small_orgs, tenant_database

QUESTIONS = 120
SMALL_ORGS = 200
MEMBERSHIPS = 50
REST = 100_000 - LARGE.chunks - MEDIUM.chunks - SMALL.chunks
OURS, TEXTBOOK = "rag_match", "textbook"
TENANTS = (*(f"{org.chunks:,} chunks" for org in (LARGE, MEDIUM, SMALL)), f"{MEMBERSHIPS} orgs")


@dataclass(frozen=True)
class Cell:
    """Who asks, over which orgs, and whether over the rare hundredth of their chunks."""

    name: str
    orgs: Sequence[Org]
    rare: bool

    @property
    def slug(self) -> str:
        return self.name.replace(",", "").replace(" ", "_").replace("%", "percent")


def cells_of(rest: Sequence[Org]) -> list[Cell]:
    orgs_of_users = [[LARGE], [MEDIUM], [SMALL], list(rest[:MEMBERSHIPS])]
    return [
        Cell(f"{name}, 1 %" if rare else name, orgs, rare)
        for name, orgs in zip(TENANTS, orgs_of_users, strict=True)
        for rare in (False, True)
    ]


def measure(console: Console) -> list[Figure]:
    figures: list[Figure] = []
    with tenant_database() as tenants:
        rest = small_orgs(REST, SMALL_ORGS)
        tenants.add([LARGE, MEDIUM, SMALL, *rest])
        tenants.with_index()
        tenants.connection.execute(TEXTBOOK_ROLE)
        for cell in cells_of(rest):
            scores = run(tenants, cell)
            figures += figures_of(cell, scores)
            console.print(
                f"{cell.name}: " + "; ".join(format_score(name, score) for name, score in scores.items())
            )
    return figures


def run(tenants: TenantDatabase, cell: Cell) -> dict[str, Score]:
    user = tenants.user(cell.slug, cell.orgs)
    indexed = sum(org.chunks for org in cell.orgs) > 1000 and not cell.rare
    candidates: dict[str, Candidate] = {
        OURS: Candidate(OURS, more={"filters": {"source_type": "faq"}} if cell.rare else {}),
        TEXTBOOK: textbook_candidate(tenants.connection, tenants.token(user, "textbook"), rare=cell.rare),
        **expert_candidates(tenants.connection, cell.slug, cell.orgs, rare=cell.rare, indexed=indexed),
    }
    tenants.show_functions()
    workload = Workload.of(tenants.token(user), cell.orgs, QUESTIONS, rare=cell.rare)
    return run_interleaved(tenants.postgrest, workload, candidates)


def figures_of(cell: Cell, scores: Mapping[str, Score]) -> list[Figure]:
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


def format_score(name: str, score: Score) -> str:
    return f"{name} {score.p50_ms:.2f} ms, recall {score.recall:.3f}, full {score.full_pages:.2f}"
