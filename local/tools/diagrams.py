"""Diagrams of the documentation's integration pages: `python -m local.tools.diagrams` writes docs/images.

Written as SVG without a library; the colours follow the viewer's light or dark mode.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from local import ROOT

IMAGES = ROOT / "docs" / "images"
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } .name { font-weight: bold }
  rect { fill: none; stroke: #57606a } .core { stroke: #1a7f37; stroke-width: 2 }
  line { stroke: #57606a; marker-end: url(#head) } #head path { fill: #57606a }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } rect { stroke: #9198a1 } .core { stroke: #3fb950 }
    line { stroke: #9198a1 } #head path { fill: #9198a1 }
  }"""
WIDTH, COLUMN, ROW, BOX, HEIGHT, GAP, LINE = 690, 252, 88, 172, 62, 6, 16


@dataclass(frozen=True)
class Box:
    """A program at a column and row of the grid, with at most two lines below its name."""

    name: str
    lines: tuple[str, ...]
    column: int
    row: float
    is_core: bool = False


@dataclass(frozen=True)
class Diagram:
    """`calls`: from box to box to the right, by name, with a label of at most two lines."""

    title: str
    boxes: tuple[Box, ...]
    calls: tuple[tuple[str, str, tuple[str, ...]], ...]


POSTGRES = Box("Postgres", ("row-level security selects", "the caller's passages"), 2, 0)
CALLER = ("the caller's", "token")

DIAGRAMS = {
    "mcp": Diagram(
        "An agent calls the MCP server with a user's token or API key, and Postgres selects the rows",
        (
            Box("Agent", ("Claude, Cursor,", "VS Code, own code"), 0, 0),
            Box("Citerow, /mcp", ("five tools,", "limits of the caller"), 1, 0, True),
            POSTGRES,
        ),
        (("Agent", "Citerow, /mcp", ("token", "or key")), ("Citerow, /mcp", "Postgres", CALLER)),
    ),
    "frameworks": Diagram(
        "A framework calls the API with a user's token or API key, and Postgres selects the rows",
        (
            Box("Your application", ("LangChain, LlamaIndex,", "Vercel AI SDK"), 0, 0),
            Box("Citerow, API", ("embeds, searches, ranks,", "judges, answers"), 1, 0, True),
            POSTGRES,
        ),
        (("Your application", "Citerow, API", ("token", "or key")), ("Citerow, API", "Postgres", CALLER)),
    ),
    "chat-front-ends": Diagram(
        "A chat front end calls chat completions with each user's credential; other models go to the gateway",
        (
            Box("Chat front end", ("Open WebUI, LibreChat:", "one credential a user"), 0, 0),
            Box("Citerow, /v1", ("chat completions:", "rag, rag/collection"), 1, 0, True),
            POSTGRES,
            Box("Model gateway", ("writes the answer;", "serves its other models"), 2, 1),
        ),
        (
            ("Chat front end", "Citerow, /v1", ("token", "or key")),
            ("Citerow, /v1", "Postgres", CALLER),
            ("Citerow, /v1", "Model gateway", ("its own", "key")),
        ),
    ),
    "models": Diagram(
        "The functions send texts, but no user's token, to your embedding and answering models",
        (
            Box("Caller", ("question, document,", "token or key"), 0, 0.5),
            Box("Citerow, functions", ("RAG_EMBEDDING_URL,", "RAG_LLM_URL"), 1, 0.5, True),
            Box("Embedding model", ("Ollama, vLLM, llama.cpp:", "all texts, no token"), 2, 0),
            Box("Answering model", ("question and the passages", "of the caller, no token"), 2, 1),
        ),
        (
            ("Caller", "Citerow, functions", ("",)),
            ("Citerow, functions", "Embedding model", ("",)),
            ("Citerow, functions", "Answering model", ("",)),
        ),
    ),
}


def draw_svg(diagram: Diagram) -> str:
    places = {box.name: box for box in diagram.boxes}
    rows = max(box.row for box in diagram.boxes) + 1
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {round(rows * ROW)}" role="img" '
        f'aria-label="{escape(diagram.title)}">',
        f"<style>{STYLE}\n</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for box in diagram.boxes:
        marks += draw_box(box)
    for source, target, label in diagram.calls:
        marks += draw_call(places[source], places[target], label)
    return "\n".join([*marks, "</svg>"]) + "\n"


def draw_box(box: Box) -> list[str]:
    left, top = corner(box)
    middle = left + BOX // 2
    return [
        f'<rect class="{"core" if box.is_core else "box"}" x="{left}" y="{top}" width="{BOX}" '
        f'height="{HEIGHT}" rx="6"/>',
        text(middle, top + 19, box.name, "name"),
        *(text(middle, top + 36 + LINE * number, line) for number, line in enumerate(box.lines)),
    ]


def draw_call(source: Box, target: Box, label: Sequence[str]) -> list[str]:
    (left, start), (right, end) = corner(source), corner(target)
    x1, y1, x2, y2 = left + BOX + GAP, start + HEIGHT // 2, right - GAP, end + HEIGHT // 2
    middle = (x1 + x2) // 2
    # Above and below a level line; beside the middle of another.
    heights = (y1 - 7, y1 + 17) if y1 == y2 else ((y1 + y2) // 2 + 12, (y1 + y2) // 2 + 12 + LINE)
    offset = 0 if y1 == y2 else -22
    return [
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>',
        *(text(middle + offset, y, line) for y, line in zip(heights, label, strict=False) if line),
    ]


def corner(box: Box) -> tuple[int, int]:
    """Left and top."""
    return 6 + box.column * COLUMN, round(box.row * ROW) + 13


def text(x: int, y: int, words: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x}" y="{y}" text-anchor="middle">{escape(words)}</text>'


def write() -> None:
    for name, diagram in DIAGRAMS.items():
        (IMAGES / f"{name}.svg").write_text(draw_svg(diagram))


if __name__ == "__main__":
    write()
