"""Chart of recall and p50 by tenant size (bench/match_by_tenant_size.py): rag_match, the textbook function.

Written as SVG without a library; the colours follow the viewer's light or dark mode.
"""

from bench.figures import results
from local import ROOT

CHART = ROOT / "docs" / "images" / "tenants.svg"
TENANTS = ("50,000 chunks", "3,000 chunks", "100 chunks", "50 orgs")
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .ours { fill: #1a7f37 } .book { fill: #bc4c00 } line { stroke: #d1d9e0 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .ours { fill: #3fb950 } .book { fill: #f0883e } line { stroke: #3d444d }
  }"""
WIDTH, HEIGHT, LEFT, GROUP, BAR = 760, 300, 20, 85, 26
TOP, BASE = 70, 240
PANEL = 380


def write() -> None:
    """The chart of the latest results; none without results."""
    measured = {result["name"]: result["value"] for result in results("match")}
    if measured:
        CHART.parent.mkdir(exist_ok=True)
        CHART.write_text(draw_svg(measured))


def draw_svg(measured: dict[str, float]) -> str:
    longest = max(measured[f"{kind}p50, {name}"] for kind in ("", "textbook ") for name in TENANTS)
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Recall and time by size of tenant: rag_match and the textbook function">',
        f"<style>{STYLE}\n</style>",
        f'<rect class="ours" x="{LEFT}" y="10" width="12" height="12"/>',
        f'<text x="{LEFT + 18}" y="21">rag_match</text>',
        f'<rect class="book" x="{LEFT + 110}" y="10" width="12" height="12"/>',
        f'<text x="{LEFT + 128}" y="21">match_documents, as in the guides</text>',
        *panel(measured, LEFT, "recall@10", "recall", 1.0),
        *panel(measured, LEFT + PANEL, "p50, ms", "p50", longest),
        "</svg>",
    ]
    return "\n".join(marks) + "\n"


def panel(measured: dict[str, float], left: int, title: str, figure: str, most: float) -> list[str]:
    """Two bars a tenant, of `figure`; the highest there may be stands for `most`."""
    marks = [
        f'<text x="{left}" y="{TOP - 18}" font-weight="bold">{title}</text>',
        f'<line x1="{left}" y1="{BASE}" x2="{left + len(TENANTS) * GROUP}" y2="{BASE}"/>',
    ]
    for column, name in enumerate(TENANTS):
        start = left + column * GROUP + 10
        for index, (kind, prefix) in enumerate((("ours", ""), ("book", "textbook "))):
            value = measured[f"{prefix}{figure}, {name}"]
            height, x = max(1, round((BASE - TOP) * value / most)), start + index * (BAR + 4)
            label = f"{value:.2f}" if figure == "recall" else f"{value:.3g}"
            marks += [
                f'<rect class="{kind}" x="{x}" y="{BASE - height}" width="{BAR}" height="{height}" rx="2"/>',
                text(x + BAR // 2, BASE - height - 5, label),
            ]
        marks += [
            text(start + BAR + 2, BASE + 18 + 16 * line, word) for line, word in enumerate(name.split())
        ]
    return marks


def text(x: int, y: int, words: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle">{words}</text>'
