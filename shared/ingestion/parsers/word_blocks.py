"""Blocks of a Word file, and their Markdown."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from shared.text.normalize import one_line


@dataclass(frozen=True, slots=True)
class Block:
    """mark: what Markdown has before the text of a heading or of a list item without a number. clause: the
    level of a bold line with a number, which is a heading if text or a deeper one follows, and none of its
    level precedes."""

    text: str
    mark: str = ""
    is_item: bool = False
    clause: int = 0


def joined(blocks: Iterable[Block]) -> str:
    """The blocks with empty lines between them, except between the items of a list."""
    made: list[str] = []
    was_item, clause_before = False, 0
    filled = [block for block in blocks if block.text.strip()]
    for block, following in zip_longest(filled, filled[1:]):
        is_last = block.clause == clause_before or not following
        is_heading = block.clause and not is_last and (following.clause or 9) > block.clause
        is_item = block.is_item and not is_heading
        made += ["\n" if was_item and is_item else "\n\n"] if made else []
        made += ["#" * min(block.clause, 6) + " " if is_heading else block.mark, block.text]
        was_item, clause_before = is_item, block.clause
    return "".join(made)


def cell_text(blocks: Iterable[Block]) -> str:
    """The blocks on one line. A table in a cell is written as its rows."""
    texts = []
    for block in blocks:
        rows = block.text.split("\n") if block.text.startswith("| ") else []
        cells = [
            row[2:-2].replace("\\|", "|").replace(" | ", ", ") for row in rows if not row.startswith("| ---")
        ]
        texts.append("; ".join(cells) if rows else one_line(block.text))
    return (
        "; ".join(filter(None, texts))
        if any("|" in text for text in texts)
        else " ".join(filter(None, texts))
    )
