"""Parser of code by tree-sitter: spans of functions, classes and blocks."""

import json
import re
from collections.abc import Sequence
from importlib import import_module

from tree_sitter import Language, Node, Parser

from shared.ingestion.parsers.parsed_file import ParsedFile

# The package of each grammar, and its function there.
_NAMES = "bash c cpp css go html java javascript json python ruby rust"
GRAMMARS = {name: (f"tree_sitter_{name}", "language") for name in _NAMES.split()} | {
    "csharp": ("tree_sitter_c_sharp", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
# Bytes. A longer line may be divided between its nodes. Shorter nodes are not searched.
LONG_LINE = 400
LONG_NODE = 100
# Nodes that belong to the next line, as comments do; nodes whose last child is the definition.
LEADING_TYPES = {"attribute_item", "decorator"}
WRAPPERS = {"decorated_definition", "template_declaration"}
# The body of a function or class is no block without its first lines.
_BODY = re.compile(r"block|body|compound_statement|_list$")


def code(data: bytes) -> ParsedFile:
    """Of a language's name, a line end and code in it, as JSON: "cuts" and "blocks" (code_blocks.py), and
    whether it is "broken"."""
    name, _, source = data.partition(b"\n")
    module, function = GRAMMARS[name.decode()]
    language = Language(getattr(import_module(module), function)())
    root = Parser(language).parse(source).root_node
    blocks, cuts = _walk(root, _Rows(source))
    positions = _characters(source, [position for block in blocks for position in block] + cuts)
    result = {
        "cuts": [positions[cut] for cut in cuts],
        "blocks": [(positions[start], positions[end]) for start, end in blocks],
        "broken": root.has_error,
    }
    return ParsedFile([(None, json.dumps(result))])


class _Rows:
    """The lines of UTF-8 text, in bytes."""

    def __init__(self, data: bytes) -> None:
        self.lines = data.split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.leading_rows: set[int] = set()

    def starts_line(self, node: Node) -> bool:
        row, column = node.start_point
        return column <= LONG_LINE and not self.lines[row][:column].strip()

    def first(self, row: int) -> int:
        """The first of the leading rows directly before the row, or the row."""
        while row - 1 in self.leading_rows:
            row -= 1
        return row

    def start(self, row: int) -> int:
        return self.starts[row]

    def end(self, row: int) -> int:
        return self.starts[row] + len(self.lines[row])

    def long(self, row: int) -> bool:
        return len(self.lines[row]) > LONG_LINE


def _walk(root: Node, rows: _Rows) -> tuple[list[tuple[int, int]], list[int]]:
    """Blocks and cuts, in bytes. A block consists of complete lines, or lies in a long line."""
    spans: list[tuple[int, int]] = []
    # The span around each span; the end of the first span within it.
    outers: list[int | None] = []
    heads: dict[int, int] = {}
    cut_nodes: list[tuple[int, int]] = []
    cuts: list[int] = []
    waiting: list[tuple[Node, int | None]] = [(child, None) for child in reversed(root.children)]
    while waiting:
        node, outer = waiting.pop()
        row, last = node.start_point[0], _last_row(node)
        if ("comment" in node.type or node.type in LEADING_TYPES) and rows.starts_line(node):
            rows.leading_rows.update(range(row, last + 1))
        elif node.type in WRAPPERS:
            rows.leading_rows.update(range(row, node.children[-1].start_point[0]))
        if rows.long(row) and (not cuts or node.start_byte - cuts[-1] > LONG_NODE):
            cuts.append(node.start_byte)
            cut_nodes.append((node.start_byte, node.end_byte))
        body = outer is not None and last >= spans[outer][1] - 1 and _BODY.search(node.type)
        if last > row and rows.starts_line(node) and not body:
            above = outer
            while above is not None and above not in heads and last < spans[above][1]:
                heads[above] = last
                above = outers[above]
            outers.append(outer)
            outer = len(spans)
            spans.append((row, last))
        if last > row or node.end_byte - node.start_byte > LONG_NODE:
            waiting += [(child, outer) for child in reversed(node.children)]
    # The first lines of a long class or function stay with its first inner block, or with its next line.
    spans += [(spans[outer][0], last) for outer, last in heads.items()]
    spans += [(row, row + 1) for row, _ in spans]
    return cut_nodes + [(rows.start(rows.first(row)), rows.end(last)) for row, last in spans], cuts


def _last_row(node: Node) -> int:
    """The last row of a node, without a line end behind it."""
    row, column = node.end_point
    return max(node.start_point[0], row - (column == 0))


def _characters(data: bytes, positions: Sequence[int]) -> dict[int, int]:
    """The character index of each byte offset in UTF-8 text."""
    numbers: dict[int, int] = {}
    if data.isascii():
        return {position: position for position in positions}
    done = characters = 0
    for position in sorted(set(positions)):
        characters += len(data[done:position].decode(errors="replace"))
        done = position
        numbers[position] = characters
    return numbers
