"""Texts without their code blocks, which state no relations."""

import re
from collections.abc import Iterable, Iterator

_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)")
_INDENTED = re.compile(r"(?: {4}|\t)\s*(?![-*+\s])")


def without_code_blocks(texts: Iterable[str]) -> Iterator[str]:
    """The consecutive texts of one document, as long as before, with spaces for code. A block may begin in
    one text and end in another."""
    in_block = False
    for text in texts:
        lines: list[str] = []
        for line in text.split("\n"):
            fence = _FENCE.match(line)
            if fence is not None:
                # Only the line that opens a block has a language.
                in_block = not in_block or bool(fence["language"])
            is_code = in_block or fence is not None or _INDENTED.match(line) is not None
            lines.append(" " * len(line) if is_code else line)
        yield "\n".join(lines)
