"""Markdown tables of rows of cells."""

from collections.abc import Iterable

from shared.ingestion.parsers.parsed_file import size_error
from shared.text.normalize import one_line

MAX_CELLS = 2_000_000


def table(rows: Iterable[Iterable[str]], *, has_header: bool = True) -> str:
    """Rows of cells as a Markdown table whose header is the first row, or is empty, without empty rows and
    columns. Raises UnreadableDocument for too many cells."""
    filled = [cells for row in rows if any(cells := [one_line(cell).replace("|", "\\|") for cell in row])]
    used = sorted({column for row in filled for column, cell in enumerate(row) if cell})
    # All rows have the width of the widest.
    if len(filled) * len(used) > MAX_CELLS:
        raise size_error()
    lines = [f"| {' | '.join(row[at] if at < len(row) else '' for at in used)} |" for row in filled]
    if lines and not has_header:
        lines.insert(0, f"|{'  |' * len(used)}")
    return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if lines else ""
