"""What a document's chunks name, as the database takes it beside them. Read in parts, so that a long document
is as quick to read as several short ones; and no document is refused for what it names."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.graph.extractor import extract

log = logging.getLogger("rag")
# Of which one explains another: whose surname it is, what an abbreviation stands for.
READ_TOGETHER = 500


def is_graphed(config: object) -> bool:
    """Whether documents of a collection with this config go into the graph."""
    return not isinstance(config, Mapping) or config.get("enable_knowledge_graph") is not False


def names_of(
    title: str, texts: Sequence[str], check: Callable[[], None] = lambda: None
) -> list[dict[str, Any]] | None:
    """One for each chunk; None where they could not be read, and the worker will try again. `check` runs
    before each group of chunks; its exception stops the work."""
    rows: list[dict[str, Any]] = []
    for start in range(0, len(texts), READ_TOGETHER):
        check()
        try:
            rows += [named.row() for named in extract(title, texts[start : start + READ_TOGETHER])]
        except Exception as unforeseen:
            log.warning("a document could not be read for names: %s", type(unforeseen).__name__)
            return None
    return rows
