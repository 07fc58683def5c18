"""A text cut into chunks, and what the embedder reads of each: with the title, and with the head of the table
or the question that the chunk goes on with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from shared.ingestion.chunking.outline import Outline
from shared.ingestion.chunking.packer import Chunk, chunk
from shared.ingestion.chunking.strategy import BY_SENTENCES, Plan
from shared.models.chunk_limits import ChunkSizes, EmbedderLimits
from shared.models.embeddings import Embedder

# The title stands before every passage that is embedded: a passage alone often does not say what it is about.
TITLE_TOKENS = 32
SPECIAL_TOKENS = 2


def short_title(embedder: Embedder, title: str) -> str:
    """As much of the title as costs at most 32 tokens."""
    while (tokens := embedder.count_tokens(title)) > TITLE_TOKENS:
        title = title[: len(title) * TITLE_TOKENS // tokens]
    return title


def chunk_document(
    embedder: Embedder,
    title: str,
    text: str,
    lang: str | None,
    *,
    size: int | None = None,
    overlap: int | None = None,
    plan: Plan = BY_SENTENCES,
    check: Callable[[], None] = lambda: None,
) -> tuple[list[Chunk], list[str], ChunkSizes]:
    """The text's chunks, and for each what the embedder reads: the title, then the head of the table or the
    question that the chunk goes on with, where there is room for it, then the chunk. And how it was cut.

    Chunks have at most `size` tokens, or as many as the embedder likes; with the title never beyond its
    window. `overlap` is a tenth of that unless it is said, and no more than fifty.
    `check` runs before each count of tokens; its exception stops the work.
    """
    label = short_title(embedder, title)
    room = embedder.window - SPECIAL_TOKENS - embedder.count_tokens(f"{label}\n")
    sizes = ChunkSizes.of(EmbedderLimits(room, embedder.passage_tokens), size, overlap)

    def count(part: str) -> int:
        check()
        return embedder.count_tokens(part)

    def cut() -> list[Chunk]:
        return chunk(text, size=sizes.size, overlap=sizes.overlap, count=count, lang=lang, plan=plan)

    heads = _ContextHeaders(embedder, text, room)
    chunks = cut()
    # Rows mean little without their head: in tables there is always room for one that is not too long.
    if plan.document_type == "table" and (needed := heads.needed(chunks)):
        sizes = sizes.within(room - needed)
        chunks = cut()
    return chunks, [f"{label}\n{heads.before(item)}{item.text}" for item in chunks], sizes


class _ContextHeaders:
    """What is read before chunks that begin within a table or an answer, if the room takes it too."""

    def __init__(self, embedder: Embedder, text: str, room: int) -> None:
        self._text = text
        self._room = room
        self._count = lru_cache(1024)(embedder.count_tokens)

    def before(self, item: Chunk) -> str:
        """With a line end behind it; nothing when there is none, or no room."""
        head = self._of(item)
        return head if self._count(head) + item.tokens <= self._room else ""

    def needed(self, chunks: Iterable[Chunk]) -> int:
        """The tokens of the longest that takes no more than a quarter of the room."""
        costs = {self._count(self._of(item)) for item in chunks}
        return max((cost for cost in costs if cost <= self._room // 4), default=0)

    def _of(self, item: Chunk) -> str:
        return f"{self._text[slice(*item.under)]}\n" if item.under else ""


def rows_of(
    chunks: Sequence[Chunk],
    vectors: Sequence[Sequence[float]],
    outline: Outline,
    named: Sequence[Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """The chunks as the database takes them: the span, of which it takes the text itself, the place in the
    document, and the names, where the text was read for them."""
    return [
        {
            **names,
            "span_start": item.start,
            "span_end": item.end,
            "token_count": item.tokens,
            "metadata": outline.place(item.start, item.end),
            # Stored in half precision, which keeps three significant digits: more would only travel.
            # As text, which is read as it stands: as JSON each number would be read twice.
            "embedding": f"[{','.join(f'{value:.5g}' for value in vector)}]",
        }
        for item, vector, names in zip(chunks, vectors, named or [{}] * len(chunks), strict=True)
    ]
