"""Rows of the entities that a document's chunks name. Extracted in parts, so that a long document is as quick
as several short ones; no document fails because of its names."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.graph.extractor import extract

log = logging.getLogger("rag")
# Chunks that are read together: one explains a surname or an abbreviation in another.
READ_TOGETHER = 500


def is_graphed(config: object) -> bool:
    """Whether a collection with this config is in the graph."""
    return not isinstance(config, Mapping) or config.get("enable_knowledge_graph") is not False


def names_of(
    title: str, texts: Sequence[str], check: Callable[[], None] = lambda: None
) -> list[dict[str, Any]] | None:
    """A row for each chunk; None where extraction fails, which the worker then repeats. `check` runs before
    each group of chunks; its exception stops the work."""
    rows: list[dict[str, Any]] = []
    for start in range(0, len(texts), READ_TOGETHER):
        check()
        try:
            rows += [named.row() for named in extract(title, texts[start : start + READ_TOGETHER])]
        except Exception as unforeseen:
            log.warning("a document could not be read for names: %s", type(unforeseen).__name__)
            return None
    return rows
