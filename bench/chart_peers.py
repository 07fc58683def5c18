"""Chart of search beside other Postgres stores (bench/peers.py), by size of org."""

from bench.bar_chart import text
from bench.figures import values
from bench.peers import LANGCHAIN, LLAMA_INDEX, OURS, PEERS, TEXTBOOK, WITH_INDEX
from local import ROOT

CHART = ROOT / "docs" / "images" / "peers.svg"
SIZES = ("50,000 chunks", "3,000 chunks", "100 chunks")
PANELS = {"recall": "recall@10", "p50": "p50 of one client, ms", "requests": "requests a second, 8 clients"}
CLASSES = {OURS: "ours", LANGCHAIN: "chain", LLAMA_INDEX: "llama", TEXTBOOK: "book"}
SYSTEMS = [OURS, *(f"{name}{suffix}" for name in PEERS for suffix in ("", WITH_INDEX))]
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } line { stroke: #d1d9e0 } .indexed { opacity: 0.55 }
  .ours { fill: #1a7f37 } .chain { fill: #0969da } .llama { fill: #8250df } .book { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } line { stroke: #3d444d }
    .ours { fill: #3fb950 } .chain { fill: #58a6ff } .llama { fill: #a371f7 } .book { fill: #f0883e }
  }"""
WIDTH, LEFT, TOP = 760, 20, 50
PANEL, HIGHEST, GROUP, BAR, GAP, KEY = 150, 90, 240, 28, 4, 130


def write() -> None:
    """The chart of the latest results; none without results."""
    if measured := values("peers"):
        CHART.write_text(draw_svg(measured))


def draw_svg(measured: dict[str, float]) -> str:
    height = TOP + len(PANELS) * PANEL + 20
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Recall, time and throughput of search by size of org, beside other Postgres stores">',
        f"<style>{STYLE}\n</style>",
        *keys(),
    ]
    for row, (figure, title) in enumerate(PANELS.items()):
        marks += panel(measured, TOP + row * PANEL, figure, title)
    marks += [
        text(LEFT + column * GROUP + GROUP // 2 - 8, height - 8, size) for column, size in enumerate(SIZES)
    ]
    return "\n".join([*marks, "</svg>"]) + "\n"


def keys() -> list[str]:
    marks = []
    for place, (name, kind) in enumerate(CLASSES.items()):
        x = LEFT + place * KEY
        marks += [
            f'<rect class="{kind}" x="{x}" y="10" width="12" height="12"/>',
            f'<text x="{x + 18}" y="21">{name}</text>',
        ]
    return [*marks, f'<text x="{LEFT + 4 * KEY + 10}" y="21">pale: with an index on the org</text>']


def panel(measured: dict[str, float], top: int, figure: str, title: str) -> list[str]:
    """A group of bars for each size; the highest value of all has the full height."""
    most = max(measured[f"{figure}, {size}, {system}"] for size in SIZES for system in SYSTEMS)
    base = top + PANEL - 10
    marks = [
        f'<text x="{LEFT}" y="{top + 14}" font-weight="bold">{title}</text>',
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - LEFT}" y2="{base}"/>',
    ]
    for column, size in enumerate(SIZES):
        for place, system in enumerate(SYSTEMS):
            value = measured[f"{figure}, {size}, {system}"]
            x, height = LEFT + column * GROUP + place * (BAR + GAP), max(1, round(HIGHEST * value / most))
            name = system.removesuffix(WITH_INDEX)
            kind = CLASSES[name] if name == system else f"{CLASSES[name]} indexed"
            label = f"{value:.2f}" if figure == "recall" else f"{value:.0f}"
            marks += [
                f'<rect class="{kind}" x="{x}" y="{base - height}" width="{BAR}" height="{height}" rx="2"/>',
                text(x + BAR // 2, base - height - 5, label),
            ]
    return marks
