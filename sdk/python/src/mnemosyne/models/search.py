"""Search contract: explained search, contents, similar texts, and answers whose sentences are checked."""

from datetime import datetime
from typing import Any, Literal, TypedDict

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mnemosyne.models.base import Model
from mnemosyne.models.chat import Confidence

SearchMode = Literal["auto", "knowledge", "graph", "hybrid", "keyword", "neural", "fast"]


class SearchFilters(TypedDict, total=False):
    """A match has one value of each list. Times are ISO 8601, inclusive."""

    sources: list[str]
    types: list[str]
    authors: list[str]
    states: list[str]
    labels: list[str]
    after: str
    before: str
    metadata: dict[str, Any]


class SearchInclude(TypedDict, total=False):
    document: bool
    rationale: bool
    highlights: bool


class Reference(TypedDict):
    kind: Literal["document", "chunk"]
    id: str


class Subject(TypedDict, total=False):
    """The kind, and the field of that kind."""

    kind: Literal["text", "document", "chunk"]
    text: str
    document_id: str
    chunk_id: str


class GraphExpansion(TypedDict, total=False):
    hops: Literal[0, 1, 2]
    include: list[Literal["relationships", "entities", "evidence"]]


class Expand(TypedDict, total=False):
    chunks: bool
    graph: GraphExpansion


class ScopeParam(TypedDict, total=False):
    """`collection_id` and `org_id`: ids or names. The scope org needs an org, any other a collection."""

    collection_id: str
    org_id: str
    scope: Literal["auto", "workspace", "org"]


class RetrievalOptions(ScopeParam, total=False):
    """`top_k`: 1 to 50, by default 10."""

    autoprompt: bool
    top_k: int
    quality: dict[Literal["rerank"], bool]


class SearchOptions(RetrievalOptions, total=False):
    mode: SearchMode
    context: bool
    moderation: bool
    filters: SearchFilters
    include: SearchInclude


class SimilarOptions(RetrievalOptions, total=False):
    mode: Literal["auto", "neural", "keyword", "hybrid", "fast"]
    by: Literal["chunks", "documents"]
    filters: SearchFilters


class ContentsOptions(ScopeParam, total=False):
    expand: Expand
    include_raw: bool


class AnswerOptions(RetrievalOptions, total=False):
    """`max_tokens`: 16 to 4096, by default 400."""

    mode: SearchMode
    context: bool
    moderation: bool
    answer_type: Literal["abstractive", "extractive"]
    citations: bool
    max_tokens: int
    model: str
    constraints: SearchFilters
    include: SearchInclude


class CamelModel(Model):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Span(CamelModel):
    """[start, end) in characters."""

    start: int
    end: int


class SearchResult(CamelModel):
    """A chunk with fields of its document; `highlight_span` is in the document's text."""

    document_id: str
    chunk_id: str
    workspace_id: str
    score: float
    similarity: float | None = None
    title: str | None = None
    type: str | None = None
    source: str | None = None
    occurred_at: datetime | None = None
    author: str | None = None
    section_label: str | None = None
    page_number: int | None = None
    page_end: int | None = None
    highlight: str | None = None
    highlight_span: Span | None = None
    url: str | None = None


class SearchEntity(CamelModel):
    """`seed`: the question names it."""

    id: str
    name: str
    type: str
    aliases: list[str]
    seed: bool


class SearchEdge(CamelModel):
    """`source` and `target` are ids of entities (`from` and `to` on the wire)."""

    type: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    confidence: float


class SearchGraph(CamelModel):
    entities: list[SearchEntity]
    edges: list[SearchEdge]
    evidence_chunks: list[str]


class Reason(CamelModel):
    rule: str
    because: str


class Rationale(CamelModel):
    """`query` was embedded, `words` were the keywords, both after `rules`."""

    router_mode: str
    query: str
    words: str
    rules: list[Reason]
    graph: SearchGraph


class TimeRange(CamelModel):
    after: datetime | None = None
    before: datetime | None = None


class SearchUsage(CamelModel):
    """`stages` are milliseconds. `similar` infers nothing."""

    latency_ms: int
    router_scope: str
    inferred_family: str | None = None
    inferred_time_range: TimeRange | None = None
    contribution_shares: dict[str, float] = Field(default_factory=dict)
    stages: dict[str, float]
    embedding_version: str | None = None


class SearchResponse(CamelModel):
    """`context`: all results as one text, if requested."""

    results: list[SearchResult]
    rationale: Rationale | None = None
    context: str | None = None
    usage: SearchUsage
    ignored_filters: list[str] = Field(default_factory=list)
    request_id: str


class SimilarResponse(CamelModel):
    matches: list[SearchResult]
    usage: SearchUsage
    ignored_filters: list[str] = Field(default_factory=list)
    request_id: str


class DocumentChunk(CamelModel):
    """`text` is None beyond the size limit of a response."""

    id: str
    text: str | None = None
    span: Span


class ContentsChunk(DocumentChunk):
    document_id: str


class ContentsGraph(CamelModel):
    """The graph around a document, with ids of entities and chunks."""

    entities: list[str]
    relationships: list[SearchEdge]
    evidence: list[str]


class ContentsDocument(CamelModel):
    """`body`, `chunks` and `graph` are None if not requested; `truncated`: the size limit left some out;
    `notes`: what of the file is not in the text."""

    id: str
    workspace_id: str
    title: str
    type: str
    source: str | None = None
    url: str | None = None
    author: str | None = None
    state: str | None = None
    occurred_at: datetime | None = None
    metadata: dict[str, Any]
    notes: list[str] = Field(default_factory=list)
    body: str | None = None
    chunks: list[DocumentChunk] | None = None
    graph: ContentsGraph | None = None
    truncated: bool


class ContentsResponse(CamelModel):
    """`missing`: ids without a document or chunk."""

    documents: list[ContentsDocument]
    chunks: list[ContentsChunk]
    missing: list[str]
    request_id: str


class Citation(CamelModel):
    """`index`: its number in the answer."""

    index: int
    document_id: str
    chunk_id: str
    title: str
    url: str | None = None
    section_label: str | None = None
    page_number: int | None = None
    page_end: int | None = None


class SentenceReference(CamelModel):
    document_id: str
    chunk_id: str
    span: Span


class Sentence(CamelModel):
    """`span` is in the answer."""

    text: str
    span: Span
    references: list[SentenceReference]


class Support(CamelModel):
    """The check of each sentence: unsupported ones are dropped; `reasons` counts them."""

    kept: int
    dropped: int
    reasons: dict[str, int]
    sentences: list[Sentence]


class AnswerRetrieval(CamelModel):
    results: list[SearchResult]
    latency_ms: int


class AnswerGeneration(CamelModel):
    """`model` is "extractive" for an answer of the documents' own sentences."""

    model: str
    answer_type: str
    latency_ms: int
    prompt_tokens: int
    completion_tokens: int


class AnswerMeta(CamelModel):
    """The first event of a stream."""

    retrieval: AnswerRetrieval
    confidence: str
    confidence_detail: Confidence | None = None
    rationale: Rationale | None = None
    ignored_filters: list[str] = Field(default_factory=list)
    request_id: str


class AnswerResponse(AnswerMeta):
    """`withheld`: confidence was low, or no sentence was supported."""

    answer: str
    withheld: bool
    citations: list[Citation]
    support: Support
    generation: AnswerGeneration
    usage: SearchUsage


class AnswerEvent(Model):
    """A part of a stream: `type` is meta, token, citation or final, and one other field is set."""

    type: str
    meta: AnswerMeta | None = None
    text: str = ""
    citation: Citation | None = None
    answer: AnswerResponse | None = None
