"""Chart of growth (bench/tenant_growth.py): p50 beside more rows of others, build time of the index."""

from bench.bar_chart import Panel, draw_svg
from bench.figures import values
from bench.tenant_growth import STAGES, TENANTS, time_name
from local import ROOT

CHART = ROOT / "docs" / "images" / "growth.svg"
BUILD = "HNSW build, "


def write() -> None:
    """The chart of the latest results; none without results."""
    if measured := values("growth"):
        CHART.write_text(draw(measured))


def draw(measured: dict[str, float]) -> str:
    stages = [rows for rows, _ in STAGES]
    times = {
        f"{org.chunks:,} chunks": [measured.get(time_name(org, rows)) for rows in stages] for org in TENANTS
    }
    tables = [name.removeprefix(BUILD) for name in measured if name.startswith(BUILD)]
    # In each group the bar of its stage.
    builds = {
        table: [measured[BUILD + table] if table == stage else None for stage in tables] for table in tables
    }
    return draw_svg(
        "Time of rag_match by size of tenant beside more rows of others, and build time of the index",
        [f"beside {rows:,}" for rows in stages],
        [Panel.of("p50, ms", times), Panel.of("build of the HNSW index, s", builds)],
    )
