"""The nouns that the six steps hand on. Wire names appear in `api/contracts/` only."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal


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
    """Who asks: a user, and the token that goes all the way down to row security.

    `scopes` are what an API key may do, or None for the user's own token, which may do everything that the
    user may; `key_id` is the key's.
    """

    user_id: str
    token: str = field(repr=False)
    scopes: frozenset[str] | None = None
    key_id: str | None = None

    def may(self, *scopes: Scope) -> bool:
        """Whether one of the scopes, or admin, is there."""
        return self.scopes is None or not self.scopes.isdisjoint({*scopes, Scope.ADMIN})


# Who acts: somebody, or, for what may take minutes, who they are by then. A token may be short.
PrincipalSource = Principal | Callable[[], Principal]


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search is narrowed by; nothing given is nothing asked.

    Of a list one suffices; metadata are equalities that all must hold. Dates are inclusive and mean the
    document's own date; a lang finds its variants too. `collection` is a name that the caller knows one by;
    `document_type` is what somebody called the document, or what it was read as.
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
    """How chunks are found: by meaning, by word, by both, by both with the best documents first, or by both
    and, above all, by what is known of the names in the question."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"
    HIERARCHICAL = "hierarchical"
    GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class Query:
    """A question, how many chunks to bring, and from where.

    `rerank`: whether a reranker orders them in the end; None: as the settings say. `neighbours`: so many
    chunks before and after join each text. `half_life_days`: older documents are held back, which no reranker
    knows of: then there is none. `words`: what is looked for by word, where that is not the text. `prefer`:
    source types that come first where all else is equal. `compares`: what words alone find is compared by
    meaning as well, which changes no order. `graph`: what is connected with the names in the text counts as
    well, whatever the mode.
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
    compares: bool = False
    graph: bool = False

    @property
    def asks_the_graph(self) -> bool:
        return self.graph or self.mode is Mode.GRAPH


@dataclass(frozen=True, slots=True)
class SimilarTo:
    """What something may be like: a text, or a chunk or a document by its id."""

    kind: Literal["text", "chunk", "document"]
    value: str


class Result(StrEnum):
    """What is found by likeness: chunks, or documents, each by its best chunk."""

    CHUNKS = "chunks"
    DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True)
class Match:
    """A chunk that the caller may see, with its document's fields.

    `similarity` is the cosine to the query, clamped to 0..1, None where the query was not embedded; `score`
    is what ordered the list, 0..1, non-increasing; `span` is [start, end) in characters of the document's
    text. `document_name` is the caller's own name for the document, or its id where it has none; `place` is
    where in it the chunk stands, as far as that is known (page_number, page_end, section). `graph_sourced`:
    without the graph it would not be here. `filename` is what the document's file was called, if it had one;
    `owner_id` is the one user whose document it is, None where it is the whole org's; `created_by` is the
    user who created it.
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
    place: dict[str, Any]
    created_by: str
    graph_sourced: bool = False
    filename: str | None = None
    owner_id: str | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """What documents name. The id is its folded name, which means the same in every document of the org, and
    nothing in another's; `kind` says what it is, as far as that is known; `is_seed`: the question names it;
    `weight`, 0..1, is how much it has to do with that."""

    id: str
    name: str
    kind: str
    aliases: tuple[str, ...]
    is_seed: bool
    weight: float
    org_id: str


@dataclass(frozen=True, slots=True)
class Edge:
    """What documents say of two entities of an org, by their ids; it reads forward (OWNED_BY), and RELATED_TO
    is said of what is only named together. `confidence` is 0..1; `evidence` are the ids of the chunks that
    say it."""

    type: str
    source: str
    target: str
    confidence: float
    evidence: tuple[str, ...]
    org_id: str


@dataclass(frozen=True, slots=True)
class Graph:
    """What is known around the names in a question, or in a document: nothing, where nobody names them. The
    ends of the edges are among the entities. `complete`: nothing was left out for want of time."""

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


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which mean similarity on confidence is high, and from which on medium."""

    high: float
    medium: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """How much the matches are worth, and by which thresholds."""

    confidence: Confidence
    mean_similarity: float
    thresholds: Thresholds


@dataclass(frozen=True, slots=True)
class Citation:
    """The best chunk of one document, with the passage to show."""

    match: Match
    snippet: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is to write, as far as the caller says; what is None is the generator's own choice."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    def specified(self) -> dict[str, Any]:
        """What is not None, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Usage:
    """How many tokens were read and written: a gateway's own count, or ours, which is an upper bound."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ExtractedSentence:
    """A sentence of citation `number`, verbatim: [start, end) of the match's document. `words`: its stems."""

    text: str
    number: int
    match: Match = field(hash=False)
    start: int
    end: int
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """An answer, the generator that wrote it, and the tokens that it used. `snippets`: by the number of a
    citation, the passage that its mark refers to; `sentences`: those of an extracted answer."""

    text: str
    model: str
    usage: Usage = Usage()
    snippets: Mapping[int, str] = field(default_factory=dict)
    sentences: tuple[ExtractedSentence, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Matches, best first.

    `exact`: whether the query was compared with every candidate, None for a search by words alone;
    `considered`: how many chunks were compared by their vectors; `vector_ms`, `lexical_ms`, `graph_ms`: the
    database's time for each part of the search, 0 where it had no part; `graph`: None where it had no part;
    `reranked_by`: the model that made the order; `rerank_failed`: a reranker was to make the order and
    failed; `vector`: the query's embedding, if it was embedded.
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


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of all six steps. `draft` is None where confidence withheld an answer."""

    matches: tuple[Match, ...]
    judgement: Judgement
    citations: tuple[Citation, ...]
    draft: GeneratedText | None
    generated_at: datetime
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Message:
    """What a webhook is sent: the id that its receiver knows it by, and the body."""

    id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Source:
    """Where a passage stands: [start, end) of `span` in the document's text; `page` as people say it."""

    source: str | None
    uri: str | None
    page: str | None
    span: tuple[int, int]
    snippet: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Passage:
    """A match as it may leave the knowledge API: without what the deployment keeps to itself."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    metadata: Mapping[str, Any]
    citations: tuple[Source, ...]
