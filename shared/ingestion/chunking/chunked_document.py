"""Chunks of a document, and the embedder's passage for each."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile, zip_longest
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.chunking.chunk_locations import Outline
from shared.ingestion.chunking.chunk_packer import Chunk, pack
from shared.ingestion.chunking.strategy import BY_SENTENCES, ChunkingPlan
from shared.ingestion.chunking.text_parts import split
from shared.ingestion.chunking.whole_rows import ROW_TOKENS
from shared.ingestion.entities_of_chunks import extract_rows, is_graph_enabled
from shared.models.chunk_sizes import ChunkSizes, EmbedderLimits, configured_sizes
from shared.models.embeddings import Embedder
from shared.models.vectors import vector_literal

# Of the title, which precedes every passage: a chunk alone often does not name its subject.
TITLE_TOKENS = 32
SPECIAL_TOKENS = 2


@dataclass(frozen=True, slots=True)
class ChunkingConfig:
    """Settings of a collection: sizes in tokens (None: as the embedder prefers), and the extraction of
    entities."""

    size: int | None = None
    overlap: int | None = None
    is_graph_enabled: bool = True

    @classmethod
    def of_collection(cls, row: Mapping[str, Any] | None) -> "ChunkingConfig":
        """The collection's `config`; the default for a new collection. A warning about an invalid value names
        the `id`."""
        if row is None:
            return cls()
        return cls(*configured_sizes(row["config"], row["id"]), is_graph_enabled(row["config"]))


# The characters of a header that a chunk keeps (sql/20_documents/25_chunks.sql); a longer one is not kept.
MAX_HEADER = 500
DEFAULT_CHUNKING = ChunkingConfig()
_CELL_END, _RULE_LINE, _RULE = re.compile(r"(?<!\\)\|"), "|-|", re.compile(r"[-: |]*-[-: |]*")
_BETWEEN_WORDS = re.compile(r"[_-]+")
_EXTENSION = re.compile(
    r"\.(?:pdf|docx|xlsx|pptx|html?|csv|tsv|txt|md|markdown|eml|mbox|epub|json|ipynb|xml)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's chunks, and for each the passage that the embedder reads. `names`: the entities of each
    chunk, None where they were not extracted."""

    chunks: list[Chunk]
    passages: list[str]
    sizes: ChunkSizes
    outline: Outline
    entities: list[dict[str, Any]] | None

    def rows(self, vectors: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
        """The chunks as rows. The database takes their texts from the document, by their spans."""
        return [
            {
                **entities,
                "span_start": item.start,
                "span_end": item.end,
                "token_count": item.tokens,
                "metadata": self._metadata(item),
                # A JSON array would be parsed twice.
                "embedding": vector_literal(vector),
            }
            for item, vector, entities in zip(
                self.chunks, vectors, self.entities or [{}] * len(self.chunks), strict=True
            )
        ]

    def _metadata(self, item: Chunk) -> dict[str, Any]:
        location = self.outline.location(item.start, item.end)
        if item.header and item.header[1] - item.header[0] <= MAX_HEADER:
            location["header_start"], location["header_end"] = item.header
        return location


def short_title(embedder: Embedder, title: str) -> str:
    """As much of the title as costs at most 32 tokens. The words of a file's name, which has an extension or
    underscores, are divided by spaces."""
    name = _EXTENSION.sub("", title)
    if " " not in title and (name != title or "_" in title):
        title = _BETWEEN_WORDS.sub(" ", name).strip() or title
    while (tokens := embedder.count_tokens(title)) > TITLE_TOKENS:
        title = title[: len(title) * TITLE_TOKENS // tokens]
    return title


def passage_of(embedder: Embedder, title: str, header: str | None, text: str, section: str | None) -> str:
    """The title, and the chunk: rows with the names of their columns and the title of their section, with the
    names alone, or with their header, as these fit. A longer passage is cut at the embedder's window.

    `section`: the titles of the headings above the chunk, joined by " > "."""
    label = f"{short_title(embedder, title)}\n"
    room = embedder.window - SPECIAL_TOKENS
    named, heading = _with_names(header, text), (section or "").rpartition(" > ")[2]
    has_section = named and heading and heading != title and not text.startswith("#")
    in_section = f"{short_title(embedder, heading)}\n{named}" if has_section else ""
    forms = [in_section, named, f"{header}\n{text}" if header else ""]
    fitting = (form for form in forms if form and embedder.count_tokens(label + form) <= room)
    passage = label + next(fitting, text)
    while (tokens := embedder.count_tokens(passage)) > room and len(passage) > len(label) + 1:
        passage = passage[: max(len(label) + 1, len(passage) * room // tokens)]
    return passage


def _with_names(header: str | None, text: str) -> str:
    """The rows of a table, below headings, with the name of its column before each value; empty for other
    text. Embedders were trained on sentences."""
    lines = [line for line in text.split("\n") if line]
    headings = [*takewhile(lambda line: line.startswith("#"), lines)]
    table = [*([header, _RULE_LINE] if header else []), *lines[len(headings) :]]
    if len(table) < 3 or not all(line.startswith("|") for line in table) or not _RULE.fullmatch(table[1]):
        return ""
    names, _, *rows = [_CELL_END.split(line.strip()[1:].removesuffix("|")) for line in table]
    pairs = (zip_longest(names, row, fillvalue="") for row in rows)
    named = (
        ". ".join(f"{name.strip()} {cell.strip()}".strip() for name, cell in row if cell.strip())
        for row in pairs
    )
    return "\n".join([*headings, *named])


def chunk_document(
    embedder: Embedder,
    title: str,
    text: str,
    lang: str | None,
    config: ChunkingConfig = DEFAULT_CHUNKING,
    *,
    plan: ChunkingPlan = BY_SENTENCES,
    pages: Sequence[tuple[int, int]] = (),
    max_chunks: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> ChunkedDocument:
    """Chunk a cleaned text. A passage is the title, the chunk's header where the window has room, and the
    chunk. `pages`: (first character, number) of each page. The default overlap is a tenth of the size, fifty
    tokens at most.

    `check` runs before each count of tokens and each extraction; its exception stops the work. Raises
    UnreadableDocument for more than `max_chunks`.
    """
    label = short_title(embedder, title)
    room = embedder.window - SPECIAL_TOKENS - embedder.count_tokens(f"{label}\n")
    sizes = ChunkSizes.of(EmbedderLimits(room, embedder.passage_tokens), config.size, config.overlap)
    split_text = split(text, plan, lang)
    cost_of_header = lru_cache(1024)(embedder.count_tokens)

    def count(part: str) -> int:
        check()
        return embedder.count_tokens(part)

    def header(item: Chunk) -> str:
        return text[slice(*item.header)] if item.header else ""

    chunks = pack(text, split_text, sizes.size, sizes.overlap, count, ROW_TOKENS)
    if plan.document_type == "table":
        # Rows mean little without their header: the chunks of a table leave room for it, up to a quarter.
        costs = {cost_of_header(header(item)) for item in chunks}
        if longest := max((cost for cost in costs if cost <= room // 4), default=0):
            sizes = sizes.within(room - longest)
            chunks = pack(text, split_text, sizes.size, sizes.overlap, count, ROW_TOKENS)
    if max_chunks is not None and len(chunks) > max_chunks:
        raise UnreadableDocument(
            f"The document makes more than {max_chunks:,} chunks: divide it, or set a larger chunk size.",
            code="document_too_large",
        )
    outline = Outline(text, pages, split_text.headings)
    entities = extract_rows(title, [item.text for item in chunks], check) if config.is_graph_enabled else None
    passages = [
        passage_of(
            embedder, title, header(item), item.text, outline.location(item.start, item.end).get("section")
        )
        for item in chunks
    ]
    return ChunkedDocument(chunks, passages, sizes, outline, entities)
