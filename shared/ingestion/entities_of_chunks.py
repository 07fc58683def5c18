"""Entities of a document's chunks, as rows. No document fails because of its entities."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.graph.rule_extractor import extract

log = logging.getLogger("rag")
# Chunks that may explain a surname or an abbreviation in each other. The bound keeps long documents quick.
CHUNKS_AT_ONCE = 500


def is_graph_enabled(config: object) -> bool:
    """Whether the graph includes a collection with this config."""
    return not isinstance(config, Mapping) or config.get("enable_knowledge_graph") is not False


def extract_rows(
    title: str, texts: Sequence[str], check: Callable[[], None] = lambda: None
) -> list[dict[str, Any]] | None:
    """A row for each chunk; None after a failure, which the worker repeats. `check` runs before each group of
    chunks; its exception stops the work."""
    rows: list[dict[str, Any]] = []
    for start in range(0, len(texts), CHUNKS_AT_ONCE):
        check()
        try:
            rows += [named.row() for named in extract(title, texts[start : start + CHUNKS_AT_ONCE])]
        except Exception as unforeseen:
            log.warning(
                "entity extraction from a document failed (%s): the worker tries again",
                type(unforeseen).__name__,
            )
            return None
    return rows
