"""Chart of bench/eval_quality.py's figures: nDCG@10 by set and search method, drawn like
bench/bar_chart.py."""

from typing import Any

from bench.bar_chart import text
from bench.eval_quality import BASELINE, HYBRID, KEYWORD, MEASURE, SEMANTIC, results
from local import ROOT

CHART = ROOT / "docs" / "images" / "quality.svg"
# Search methods in the order of their bars, with the CSS class of each.
METHODS_WITH_CLASSES = {
    BASELINE: "base",
    KEYWORD: "word",
    SEMANTIC: "mean",
    HYBRID: "both",
}
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } line { stroke: #d1d9e0 }
  .base { fill: #8c959f } .word { fill: #bc4c00 } .mean { fill: #0969da } .both { fill: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } line { stroke: #3d444d }
    .base { fill: #6e7681 } .word { fill: #f0883e } .mean { fill: #58a6ff } .both { fill: #3fb950 }
  }"""
WIDTH, HEIGHT, LEFT, BAR, GAP = 760, 300, 20, 32, 6
TOP, BASE = 60, 250
KEY = 145


def write() -> None:
    """The chart of the latest results; none without results."""
    if measured := results():
        CHART.write_text(draw_svg(measured))


def draw_svg(measured: list[dict[str, Any]]) -> str:
    values = {(line["set"], line["search"]): float(line[MEASURE]) for line in measured}
    sets = sorted({line["set"] for line in measured})
    group = (WIDTH - 2 * LEFT) // len(sets)
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{MEASURE} by set of questions and way to search">',
        f"<style>{STYLE}\n</style>",
        *keys(),
        f'<line x1="{LEFT}" y1="{BASE}" x2="{WIDTH - LEFT}" y2="{BASE}"/>',
    ]
    for place, name in enumerate(sets):
        start = LEFT + place * group + (group - len(METHODS_WITH_CLASSES) * (BAR + GAP)) // 2
        for turn, (method, kind) in enumerate(METHODS_WITH_CLASSES.items()):
            marks += bar(values[name, method], start + turn * (BAR + GAP), kind)
        marks.append(text(LEFT + place * group + group // 2, BASE + 20, name))
    return "\n".join([*marks, "</svg>"]) + "\n"


def keys() -> list[str]:
    marks = []
    for place, (method, kind) in enumerate(METHODS_WITH_CLASSES.items()):
        x = LEFT + place * KEY
        marks += [
            f'<rect class="{kind}" x="{x}" y="10" width="12" height="12"/>',
            f'<text x="{x + 18}" y="21">{method}</text>',
        ]
    return marks


def bar(value: float, x: int, kind: str) -> list[str]:
    height = max(1, round((BASE - TOP) * value / 100))
    return [
        f'<rect class="{kind}" x="{x}" y="{BASE - height}" width="{BAR}" height="{height}" rx="2"/>',
        text(x + BAR // 2, BASE - height - 5, f"{value:.1f}"),
    ]
