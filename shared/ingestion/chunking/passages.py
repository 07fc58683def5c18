"""A text cut into chunks, and what the embedder reads of each: with the title, and with the head of the table
or the question that the chunk goes on with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.chunking.outline import Outline
from shared.ingestion.chunking.packer import Chunk, chunk
from shared.ingestion.chunking.splitters import headings
from shared.ingestion.chunking.strategy import BY_SENTENCES, Plan
from shared.ingestion.entity_rows import is_graphed, names_of
from shared.models.chunk_limits import ChunkSizes, EmbedderLimits, configured_sizes
from shared.models.embeddings import Embedder

# The title stands before every passage that is embedded: a passage alone often does not say what it is about.
TITLE_TOKENS = 32
SPECIAL_TOKENS = 2


@dataclass(frozen=True, slots=True)
class ChunkingConfig:
    """How a collection's documents are chunked, in tokens (None: as the embedder prefers), and whether their
    entities are extracted."""

    size: int | None = None
    overlap: int | None = None
    graphed: bool = True

    @classmethod
    def of_collection(cls, row: Mapping[str, Any] | None) -> "ChunkingConfig":
        """From the collection's `config`; the default for a collection that does not exist yet. A warning
        about an invalid value names the `id`."""
        if row is None:
            return cls()
        return cls(*configured_sizes(row["config"], row["id"]), is_graphed(row["config"]))


DEFAULT_CHUNKING = ChunkingConfig()


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's chunks, and for each the passage that the embedder reads. `names`: the entities of each
    chunk, None where they were not extracted."""

    chunks: list[Chunk]
    passages: list[str]
    sizes: ChunkSizes
    outline: Outline
    names: list[dict[str, Any]] | None

    def rows(self, vectors: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
        """The chunks as the database takes them: the span, of which it takes the text itself, the place in
        the document, and the names."""
        return [
            {
                **names,
                "span_start": item.start,
                "span_end": item.end,
                "token_count": item.tokens,
                "metadata": self.outline.place(item.start, item.end),
                # Stored in half precision, which keeps three significant digits: more would only travel.
                # As text, which is read as it stands: as JSON each number would be read twice.
                "embedding": f"[{','.join(f'{value:.5g}' for value in vector)}]",
            }
            for item, vector, names in zip(
                self.chunks, vectors, self.names or [{}] * len(self.chunks), strict=True
            )
        ]


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
    config: ChunkingConfig = DEFAULT_CHUNKING,
    *,
    plan: Plan = BY_SENTENCES,
    pages: Sequence[tuple[int, int]] = (),
    max_chunks: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> ChunkedDocument:
    """Chunk a cleaned text. A passage is the title, then the head of the table or the question that the chunk
    goes on with, where there is room for it, then the chunk. `pages`: (character, number) of each page.

    Chunks have at most `config.size` tokens, or as many as the embedder likes; with the title never beyond
    its window. `config.overlap` is a tenth of that unless it is set, and no more than fifty.
    `check` runs before each count of tokens and each extraction; its exception stops the work. Raises
    UnreadableDocument for more than `max_chunks`.
    """
    label = short_title(embedder, title)
    room = embedder.window - SPECIAL_TOKENS - embedder.count_tokens(f"{label}\n")
    sizes = ChunkSizes.of(EmbedderLimits(room, embedder.passage_tokens), config.size, config.overlap)

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
    if max_chunks is not None and len(chunks) > max_chunks:
        raise UnreadableDocument(
            f"The document makes more than {max_chunks:,} chunks; divide it, or make them larger.",
            code="document_too_large",
        )
    passages = [f"{label}\n{heads.before(item)}{item.text}" for item in chunks]
    outline = Outline(text, pages, headings(text, plan))
    names = names_of(title, [item.text for item in chunks], check) if config.graphed else None
    return ChunkedDocument(chunks, passages, sizes, outline, names)


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
