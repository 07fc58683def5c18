"""Sizes of chunks, from the collection's settings and the embedder's limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.clients.lenient_row_reading import warn

# Limits of a collection's chunk_size and chunk_overlap, as in SQL (rag.is_config).
MIN_SIZE, MAX_SIZE, MAX_OVERLAP = 32, 8000, 4000


@dataclass(frozen=True, slots=True)
class EmbedderLimits:
    """The number of tokens that an embedder reads, and the recommended maximum of a passage."""

    window: int
    passage_tokens: int


# Of the 512 tokens that multilingual-e5-small reads, the longest prefix takes these.
MULTILINGUAL_E5_PREFIX_TOKENS = 3
# The local models, and OpenAI's API. The window of another server is read from it (embedder_window.py).
MINILM = EmbedderLimits(window=256, passage_tokens=128)
MULTILINGUAL_E5 = EmbedderLimits(window=512 - MULTILINGUAL_E5_PREFIX_TOKENS, passage_tokens=512)
OPENAI = EmbedderLimits(window=8191, passage_tokens=512)


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The maximum of tokens in a chunk, and of those that it repeats from the one before."""

    size: int
    overlap: int

    @classmethod
    def of(cls, limits: EmbedderLimits, size: int | None, overlap: int | None) -> "ChunkSizes":
        """The settings within the embedder's limits. The overlap is a tenth of the size and at most 50
        without a setting, and at most half of the size with one."""
        size = min(size or limits.passage_tokens, limits.window)
        return cls(size, min(50, size // 10) if overlap is None else min(overlap, size // 2))

    def within(self, room: int) -> "ChunkSizes":
        size = min(self.size, room)
        return ChunkSizes(size, min(self.overlap, size // 2))


def configured_sizes(config: object, row_id: str) -> tuple[int | None, int | None]:
    """chunk_size and chunk_overlap of a collection's config. An invalid value is None, and logged with the
    row's id."""
    if not isinstance(config, Mapping):
        warn(row_id, "its config is no object")
        return None, None
    size = _bounded(config.get("chunk_size"), MIN_SIZE, MAX_SIZE, row_id)
    return size, _bounded(config.get("chunk_overlap"), 0, MAX_OVERLAP, row_id)


def _bounded(value: Any, minimum: int, maximum: int, row_id: str) -> int | None:
    if value is None or (type(value) is int and minimum <= value <= maximum):
        return value
    warn(row_id, "an invalid chunk size")
    return None
