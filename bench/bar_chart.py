"""Charts of groups of bars, as SVG without a library. Colours follow the viewer's light or dark mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .a { fill: #1a7f37 } .b { fill: #bc4c00 } .c { fill: #6639ba } line { stroke: #d1d9e0 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .a { fill: #3fb950 } .b { fill: #f0883e } .c { fill: #ab7df8 } line { stroke: #3d444d }
  }"""
KINDS = "abc"
WIDTH, HEIGHT, LEFT, BAR, GAP, SPACE = 760, 300, 20, 26, 4, 29
TOP, BASE = 70, 240
PANEL = 380


@dataclass(frozen=True)
class Panel:
    """`groups`: the values of each group's bars, None for no bar, by the name below them. `highest`: the
    value of a bar as high as the panel. `format`: of the values above the bars."""

    title: str
    groups: Mapping[str, Sequence[float | None]]
    highest: float
    format: str

    @classmethod
    def of(cls, title: str, groups: Mapping[str, Sequence[float | None]]) -> "Panel":
        """The highest bar is as high as the panel."""
        shown = [value for values in groups.values() for value in values if value is not None]
        return cls(title, groups, max(shown), ".3g")


def draw_svg(label: str, legend: Sequence[str], panels: Sequence[Panel]) -> str:
    """Panels beside each other, below a legend of the two or three kinds of bars. `label` is for screen
    readers."""
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{label}">',
        f"<style>{STYLE}\n</style>",
    ]
    for place, (kind, name) in enumerate(zip(KINDS, legend, strict=False)):
        x = LEFT + place * 110
        marks += [
            f'<rect class="{kind}" x="{x}" y="10" width="12" height="12"/>',
            f'<text x="{x + 18}" y="21">{name}</text>',
        ]
    for place, panel in enumerate(panels):
        marks += _draw_panel(panel, LEFT + place * PANEL)
    return "\n".join([*marks, "</svg>"]) + "\n"


def _draw_panel(panel: Panel, left: int) -> list[str]:
    kinds = len(next(iter(panel.groups.values())))
    bars = kinds * (BAR + GAP) - GAP
    marks = [
        f'<text x="{left}" y="{TOP - 18}" font-weight="bold">{panel.title}</text>',
        f'<line x1="{left}" y1="{BASE}" x2="{left + len(panel.groups) * (bars + SPACE)}" y2="{BASE}"/>',
    ]
    for column, (name, values) in enumerate(panel.groups.items()):
        start = left + column * (bars + SPACE) + 10
        for index, (kind, value) in enumerate(zip(KINDS, values, strict=False)):
            if value is None:
                continue
            height = max(1, round((BASE - TOP) * value / panel.highest))
            x, y = start + index * (BAR + GAP), BASE - height
            marks += [
                f'<rect class="{kind}" x="{x}" y="{y}" width="{BAR}" height="{height}" rx="2"/>',
                text(x + BAR // 2, y - 5, format(value, panel.format)),
            ]
        marks += [
            text(start + bars // 2, BASE + 18 + 16 * line, word) for line, word in enumerate(name.split())
        ]
    return marks


def text(x: int, y: int, words: str) -> str:
    """A line of text around that place."""
    return f'<text x="{x}" y="{y}" text-anchor="middle">{words}</text>'
