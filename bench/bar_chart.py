"""Charts of pairs of bars, as SVG without a library. Colours follow the viewer's light or dark mode."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Panel:
    """`pairs`: a name and the values of its two bars. `highest`: the value of a bar as high as the panel.
    `format`: of the values above the bars."""

    title: str
    pairs: Sequence[tuple[str, float, float]]
    highest: float
    format: str


def draw_svg(label: str, ours: str, other: str, panels: Sequence[Panel]) -> str:
    """Panels beside each other, below the legend of the two kinds of bars. `label` is for screen readers."""
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{label}">',
        f"<style>{STYLE}\n</style>",
        f'<rect class="ours" x="{LEFT}" y="10" width="12" height="12"/>',
        f'<text x="{LEFT + 18}" y="21">{ours}</text>',
        f'<rect class="book" x="{LEFT + 110}" y="10" width="12" height="12"/>',
        f'<text x="{LEFT + 128}" y="21">{other}</text>',
    ]
    for place, panel in enumerate(panels):
        marks += _draw_panel(panel, LEFT + place * PANEL)
    return "\n".join([*marks, "</svg>"]) + "\n"


def _draw_panel(panel: Panel, left: int) -> list[str]:
    marks = [
        f'<text x="{left}" y="{TOP - 18}" font-weight="bold">{panel.title}</text>',
        f'<line x1="{left}" y1="{BASE}" x2="{left + len(panel.pairs) * GROUP}" y2="{BASE}"/>',
    ]
    for column, (name, *values) in enumerate(panel.pairs):
        start = left + column * GROUP + 10
        for index, (kind, value) in enumerate(zip(("ours", "book"), values, strict=True)):
            height, x = max(1, round((BASE - TOP) * value / panel.highest)), start + index * (BAR + 4)
            marks += [
                f'<rect class="{kind}" x="{x}" y="{BASE - height}" width="{BAR}" height="{height}" rx="2"/>',
                text(x + BAR // 2, BASE - height - 5, format(value, panel.format)),
            ]
        marks += [
            text(start + BAR + 2, BASE + 18 + 16 * line, word) for line, word in enumerate(name.split())
        ]
    return marks


def text(x: int, y: int, words: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle">{words}</text>'
