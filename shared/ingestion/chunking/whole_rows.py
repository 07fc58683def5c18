"""Rows of tables that are not divided: a value says nothing without the others."""

from shared.ingestion.chunking.text_parts import Part

# The most characters of a cell of such a row on average, and the most tokens of a row.
CELL_CHARACTERS, ROW_TOKENS = 60, 1024


def is_whole_row(text: str, part: Part) -> bool:
    """Whether the part is a row of a table with short cells."""
    length = part.end - part.start
    return text[part.start] == "|" and text.count("|", part.start, part.end) * CELL_CHARACTERS >= length
