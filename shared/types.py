"""Domain types of the pipeline. Wire names appear in `api/contracts/` only."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypedDict

# A row of the database, or a JSON object.
Row = dict[str, Any]
_CLAUSE_NUMBER = re.compile(r"\d+(?:\.\d+)+")


class Scope(StrEnum):
    """What an API key may be for."""

    DOCUMENTS_READ = "documents:read"
    DOCUMENTS_WRITE = "documents:write"
    RETRIEVALS_READ = "retrievals:read"
    CHAT_READ = "chat:read"
    COLLECTIONS_MANAGE = "collections:manage"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a user, and the token that row security checks.

    `scopes` restrict an API key. They are None for the user's own token, which has no restriction. `key_id`
    is the id of the API key.
    """

    user_id: str
    token: str = field(repr=False)
    scopes: frozenset[str] | None = None
    key_id: str | None = None

    def may(self, *scopes: Scope) -> bool:
        """Whether the caller has one of the scopes, or admin."""
        return self.scopes is None or not self.scopes.isdisjoint({*scopes, Scope.ADMIN})


# A caller, or, for work that may outlast a short-lived token, a function that returns it with a valid one.
PrincipalSource = Principal | Callable[[], Principal]


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a search. An empty filter matches all documents.

    A document matches a list by one of its values, and metadata by all of its values and operators
    (rag.metadata_operations). Dates are inclusive and compared with the document's own date. A language
    matches its variants too. `collection` is a collection's name; `document_type` is the type that the caller
    set or that the parser detected.
    """

    source_types: tuple[str, ...] = ()
    lang: str | None = None
    org_id: str | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None
    collection_ids: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    collection: str | None = None
    document_type: str | None = None


class Mode(StrEnum):
    """The method of a search: embeddings, words, both, both with the best documents first, or both with the
    graph of the entities in the question."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"
    HIERARCHICAL = "hierarchical"
    GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class Query:
    """A question, the number of chunks, and the filters.

    `rerank`: whether to rerank; None is the default of the settings. `neighbours`: the number of chunks
    before and after each match that its text includes. `half_life_days`: scores decay with the document's
    age, which excludes reranking. `words`: the text of the search by words, if it differs from `text`.
    `prefer`: source types that come first among equal scores. `graph`: use the graph in any mode.
    """

    text: str
    top_k: int = 8
    filters: Filters = Filters()
    mode: Mode = Mode.SEMANTIC
    rerank: bool | None = None
    neighbours: int = 0
    half_life_days: float | None = None
    words: str | None = None
    prefer: tuple[str, ...] = ()
    graph: bool = False

    @property
    def asks_the_graph(self) -> bool:
        return self.graph or self.mode is Mode.GRAPH


@dataclass(frozen=True, slots=True)
class SimilarTo:
    """The reference of a similarity search: a text, or the id of a chunk or document."""

    kind: Literal["text", "chunk", "document"]
    value: str


class ResultKind(StrEnum):
    """The kind of similar items: chunks, or documents, each by its best chunk."""

    CHUNKS = "chunks"
    DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True)
class Match:
    """A chunk that the caller may see, with fields of its document.

    `similarity` is the cosine to the query, clamped to 0..1, None for a query that was not embedded; `score`
    orders the list, 0..1, non-increasing; `span` is [start, end) in characters of the document's text.
    `document_name` is the name that the caller gave the document, or its id; `location` is where the
    chunk stands in the document, as far as known (page_number, page_end, section), and `header`, the
    header of the chunk's table or the question that it answers, which precede the chunk. `graph_sourced`:
    only the graph contributed it. `filename` is the name of the document's file, if any; `owner_id` is
    the user of a private document, None for one of the whole org; `created_by` is the user who created
    it; `relevance` is a reranker's score, `word_score` that of the search by words; `model` is the
    embedding model of the query.
    """

    chunk_id: str
    document_id: str
    org_id: str
    ordinal: int
    text: str
    span: tuple[int, int]
    similarity: float | None
    score: float
    source_type: str
    title: str
    uri: str | None
    lang: str | None
    occurred_at: datetime | None
    metadata: dict[str, Any]
    collection_id: str
    origin: str | None
    author: str | None
    state: str | None
    labels: tuple[str, ...]
    document_name: str
    location: dict[str, Any]
    created_by: str
    graph_sourced: bool = False
    filename: str | None = None
    owner_id: str | None = None
    relevance: float | None = None
    word_score: float | None = None
    model: str = ""
    collection_name: str | None = None

    @property
    def header(self) -> str:
        """The header of the chunk's table (a line that begins with |), or the question that it answers; empty
        if the chunk begins outside of both."""
        return str(self.location.get("header") or "")

    @property
    def table_header(self) -> str:
        """The header of the chunk's table, if the chunk begins after the header."""
        return self.header if self.header.startswith("|") else ""

    @property
    def section_title(self) -> str:
        """The heading of the section in which the chunk begins, if known; for a numbered clause, the heading
        above it."""
        titles = str(self.location.get("section") or "").split(" > ")
        return next((title for title in reversed(titles) if not _CLAUSE_NUMBER.fullmatch(title)), "")


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity that documents name. The id is its folded name, unique in the org; `kind` is its type, as far
    as known; `is_seed`: the question names it; `weight`, 0..1, is its relevance to the question."""

    id: str
    name: str
    kind: str
    aliases: tuple[str, ...]
    is_seed: bool
    weight: float
    org_id: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation of two entities of an org, by their ids, from source to target (OWNED_BY). RELATED_TO means
    that they are only named together. `confidence` is 0..1; `evidence` are the ids of the chunks with it."""

    type: str
    source: str
    target: str
    confidence: float
    evidence: tuple[str, ...]
    org_id: str


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph around the entities in a question or a document. It contains both entities of each edge.
    `complete`: no part was left out for lack of time."""

    entities: tuple[Entity, ...] = ()
    edges: tuple[Edge, ...] = ()
    evidence: tuple[str, ...] = ()
    complete: bool = True

    @property
    def is_seeded(self) -> bool:
        return any(entity.is_seed for entity in self.entities)


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        return ("low", "medium", "high").index(self.value)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The lowest value of high and of medium confidence."""

    high: float
    medium: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The confidence in matches for a question.

    `score`: 0..1, which `thresholds` divide into levels; `because`: the reasons as sentences; `missing`:
    names, numbers, dates and identifiers of the question that no match contains; `ceiling`: the rag
    contract's thresholds of the mean similarity; `unsupported`: sentences of the model's answer that no match
    supports; `contradictions`: notes, for the end of the model's answer, on documents with other values;
    `is_by_contract`: the rag contract's rule alone decides the level.
    """

    confidence: Confidence
    score: float
    thresholds: Thresholds
    because: tuple[str, ...]
    missing: tuple[str, ...]
    ceiling: Thresholds
    unsupported: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    is_by_contract: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """The best chunk of a document, with the passage to show."""

    match: Match
    snippet: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters of the caller; None is the generator's default."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    def specified(self) -> dict[str, Any]:
        """The parameters that are not None, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of prompt and completion: the gateway's count, or our own, which is an upper bound."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens
        )


@dataclass(frozen=True, slots=True)
class ExtractedSentence:
    """A sentence of citation `number`: [start, end) of the match's document. `text` is without Markdown, and
    that of a row has the names of its columns; `words` are its stems; `is_excerpt`: it is shown beside the
    sentences that answer best."""

    text: str
    number: int
    match: Match = field(hash=False)
    start: int
    end: int
    words: frozenset[str]
    is_excerpt: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """An answer, the generator that wrote it, and the tokens that it used. `snippets`: by the number of a
    citation, the passage that its mark refers to; `sentences`: those of an extracted answer; `is_abstention`:
    the generator found no answer, and the text is empty; `is_indirect`: no sentence of an extracted answer
    answers directly; `has_conflict`: documents give different values;
    `messages`: those that a model got, with the passages."""

    text: str
    model: str
    usage: Usage = Usage()
    snippets: Mapping[int, str] = field(default_factory=dict)
    sentences: tuple[ExtractedSentence, ...] = ()
    is_abstention: bool = False
    is_indirect: bool = False
    has_conflict: bool = False
    messages: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next part of an answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class QueryEmbedding:
    """The vector of a query, of 1536 to 3072 numbers, by a model. None for a search by keywords alone."""

    model: str
    vector: list[float] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Matches, best first.

    `exact`: whether the query was compared with every candidate, None for a search by words alone;
    `considered`: the number of chunks whose vectors were compared; `vector_ms`, `lexical_ms`, `graph_ms`: the
    database's time for each part of the search, 0 for an unused part; `graph`: None if unused; `reranked_by`:
    the reranker that made the order; `rerank_failed`: the reranker failed, or there is none; `vector`: the
    query's by the deployment's model, if it was embedded; `judged`: the matches by which confidence is
    judged, if they were asked for.
    """

    matches: tuple[Match, ...]
    exact: bool | None
    considered: int
    milliseconds: int = 0
    vector_ms: float = 0
    lexical_ms: float = 0
    graph_ms: float = 0
    graph: Graph | None = None
    reranked_by: str | None = None
    rerank_failed: bool = False
    vector: list[float] | None = field(default=None, repr=False)
    judged: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedSearch:
    """The matches for a question, and the confidence that they answer it. `vector`: that of the question;
    `graph`: None if unused."""

    matches: tuple[Match, ...]
    judgement: Judgement
    vector: list[float] | None = field(default=None, repr=False)
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of all six steps. `draft` is None for an answer that low confidence withheld; `generated` is
    the generator's reply, also an abstention, None if it was not called."""

    matches: tuple[Match, ...]
    judgement: Judgement
    citations: tuple[Citation, ...]
    draft: GeneratedText | None
    generated_at: datetime
    milliseconds: int
    generated: GeneratedText | None = None


class ClaimedDelivery(TypedDict):
    """A delivery that the worker has claimed (rag_claim_deliveries). `object`: the changed collection or
    document."""

    org_id: str
    delivery_id: str
    lease: str
    attempts: int
    event_id: str
    event: str
    object: Row
    created_at: str
    url: str
    secret: str
    old_secret: str | None


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """The message of a webhook: the id for its receiver, and the body."""

    id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class PassageSource:
    """The source of a passage: `span` is [start, end) in the document's text, `page` is None without
    pages, `section` without headings."""

    source: str | None
    uri: str | None
    page: str | None
    section: str | None
    span: tuple[int, int]
    snippet: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Passage:
    """A match for the knowledge API, without metadata on the denylist."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    metadata: Mapping[str, Any]
    citations: tuple[PassageSource, ...]
