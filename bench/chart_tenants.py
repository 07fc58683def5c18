"""Chart of recall and p50 by tenant size (bench/match_by_tenant_size.py)."""

from bench.bar_chart import Panel, draw_svg
from bench.figures import values
from local import ROOT

CHART = ROOT / "docs" / "images" / "tenants.svg"
TENANTS = ("50,000 chunks", "3,000 chunks", "100 chunks", "50 orgs")


def write() -> None:
    """The chart of the latest results; none without results."""
    if measured := values("match"):
        CHART.write_text(draw(measured))


def draw(measured: dict[str, float]) -> str:
    def groups(figure: str) -> dict[str, tuple[float, float]]:
        return {
            name: (measured[f"{figure}, {name}"], measured[f"textbook {figure}, {name}"]) for name in TENANTS
        }

    return draw_svg(
        "Recall and time by size of tenant: rag_match and the textbook function",
        ("rag_match", "match_documents, as in the guides"),
        [Panel("recall@10", groups("recall"), 1.0, ".2f"), Panel.of("p50, ms", groups("p50"))],
    )
