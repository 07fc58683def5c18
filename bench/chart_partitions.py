"""Chart of p50 in large tables (bench/partitions.py): as they are, and divided into partitions."""

from bench.bar_chart import Panel, draw_svg
from bench.figures import results
from bench.partitions import DIVIDED, TABLES, WHOLE, asking_orgs, table_name
from local import ROOT

CHART = ROOT / "docs" / "images" / "partitions.svg"


def write() -> None:
    """The chart of the latest results; none without results."""
    measured = {result["name"]: (result["value"], result["baseline"]) for result in results("partitions")}
    if measured:
        CHART.write_text(draw(measured))


def draw(measured: dict[str, tuple[float, float]]) -> str:
    panels = []
    for dimensions, chunks in TABLES:
        table = table_name(dimensions, chunks)
        times = {name: measured[f"p50, {name} of {table}"] for name in asking_orgs(chunks)}
        panels.append(Panel.of(f"p50, ms: {table}", times))
    return draw_svg("Time of rag_match by size of org in large tables", (WHOLE, DIVIDED), panels)
