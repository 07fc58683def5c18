"""How long chunks are: as long as their collection says and what embeds them reads, or as that likes best."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.clients.row_validation import warn

# The bounds of a collection's chunk_size and chunk_overlap, which SQL has as well (rag.is_config).
LEAST_SIZE, MOST_SIZE, MOST_OVERLAP = 32, 8000, 4000


@dataclass(frozen=True, slots=True)
class EmbedderLimits:
    """How many tokens of a text an embedder reads at most, and how many a passage should have at most."""

    window: int
    passage_tokens: int


# What embeds here is one or the other (embeddings.py); known without loading either.
MINILM = EmbedderLimits(window=256, passage_tokens=128)
OPENAI = EmbedderLimits(window=8191, passage_tokens=512)


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """How many tokens a chunk has at most, and how many of those before it repeats at most."""

    size: int
    overlap: int

    @classmethod
    def of(cls, reads: EmbedderLimits, size: int | None, overlap: int | None) -> "ChunkSizes":
        """Of what is wanted, what is done. The overlap is a tenth and at most fifty, or what is said and at
        most a half."""
        size = min(size or reads.passage_tokens, reads.window)
        return cls(size, min(50, size // 10) if overlap is None else min(overlap, size // 2))

    def within(self, room: int) -> "ChunkSizes":
        size = min(self.size, room)
        return ChunkSizes(size, min(self.overlap, size // 2))


def configured(config: object, row_id: str) -> tuple[int | None, int | None]:
    """chunk_size and chunk_overlap of a collection's config. One that cannot be used is None, as if it were
    not there, and the log has the row's id."""
    if not isinstance(config, Mapping):
        warn(row_id, "its config is no object")
        return None, None
    size = _bounded(config.get("chunk_size"), LEAST_SIZE, MOST_SIZE, row_id)
    return size, _bounded(config.get("chunk_overlap"), 0, MOST_OVERLAP, row_id)


def _bounded(value: Any, least: int, most: int, row_id: str) -> int | None:
    if value is None or (type(value) is int and least <= value <= most):
        return value
    warn(row_id, "an invalid chunk size")
    return None
