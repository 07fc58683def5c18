"""Chart of the confidence figures: risk by coverage for each set, drawn like bench/bar_chart.py."""

import json
from typing import Any

from bench.bar_chart import text
from bench.confidence_tables import RESULTS
from local import ROOT

CHART = ROOT / "docs" / "images" / "confidence.svg"
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } line { stroke: #d1d9e0 }
  polyline { fill: none; stroke-width: 2 }
  .s0 { stroke: #0969da } .s1 { stroke: #bc4c00 } .s2 { stroke: #1a7f37 }
  .s3 { stroke: #8250df } .s4 { stroke: #bf3989 } .s5 { stroke: #57606a }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } line { stroke: #3d444d }
    .s0 { stroke: #58a6ff } .s1 { stroke: #f0883e } .s2 { stroke: #3fb950 }
    .s3 { stroke: #a371f7 } .s4 { stroke: #f778ba } .s5 { stroke: #9198a1 }
  }"""
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BASE = 760, 340, 50, 20, 540, 290
# Where half of the questions have an answer, answering all is wrong for half.
MOST = 0.5


def write() -> None:
    CHART.write_text(draw_svg(json.loads(RESULTS.read_text())["sets"]))


def draw_svg(sets: dict[str, dict[str, Any]]) -> str:
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Share of answers to questions without an answer, by share of questions answered">',
        f"<style>{STYLE}\n</style>",
    ]
    for tenths in range(6):
        y = _y(tenths / 10)
        marks += [
            f'<line x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/>',
            text(LEFT - 22, y + 4, f"{tenths * 10} %"),
        ]
    marks += [text(_x(fifths / 5), BASE + 20, f"{fifths * 20} %") for fifths in range(6)]
    marks.append(text((LEFT + RIGHT) // 2, BASE + 42, "answerable questions that are answered"))
    for place, (name, measured) in enumerate(sets.items()):
        points = " ".join(f"{_x(coverage)},{_y(risk)}" for coverage, risk in measured["risk_coverage"])
        y = TOP + 10 + place * 24
        marks += [
            f'<polyline class="s{place}" points="{points}"/>',
            f'<polyline class="s{place}" points="{RIGHT + 20},{y} {RIGHT + 44},{y}"/>',
            f'<text x="{RIGHT + 52}" y="{y + 4}">{name}</text>',
        ]
    return "\n".join([*marks, "</svg>"]) + "\n"


def _x(coverage: float) -> int:
    return round(LEFT + (RIGHT - LEFT) * coverage)


def _y(risk: float) -> int:
    return round(BASE - (BASE - TOP) * risk / MOST)
