"""Results of a search: ranked chunks of documents, and the graph around a question."""

from typing import Any, Literal

from pydantic import Field

from mnemosyne.models.base import Model

RetrievalMode = Literal["semantic", "keyword", "hybrid", "hierarchical", "graph"]


class ChunkDocument(Model):
    id: str
    title: str | None = None
    filename: str | None = None


class Chunk(Model):
    """`score` is the value of the order, 0 to 1; `similarity` the cosine to the query, None if none was
    computed. `user_id` created the document; `owner_id` is the one user who owns it, None for the whole org.
    """

    chunk_id: str
    document_id: str
    collection_id: str | None = None
    user_id: str | None = None
    owner_id: str | None = None
    content: str
    content_hash: str | None = None
    chunk_index: int | None = None
    score: float
    similarity: float | None = None
    rank: int
    metadata: dict[str, Any] = Field(default_factory=dict)
    document: ChunkDocument | None = None
    document_metadata: dict[str, Any] = Field(default_factory=dict)
    chunk_metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def graph_sourced(self) -> bool:
        """Whether only the graph found the chunk."""
        return bool(self.metadata.get("graph_sourced"))

    @property
    def all_metadata(self) -> dict[str, Any]:
        """The document's metadata, the chunk's, and the fields that identify and rank the chunk; the later
        ones replace earlier ones of the same name."""
        return {
            **self.document_metadata,
            **self.chunk_metadata,
            "title": self.document.title if self.document else None,
            "filename": self.document.filename if self.document else None,
            "collection_id": self.collection_id,
            "document_id": self.document_id,
            "chunk_id": self.chunk_id,
            "chunk_index": self.chunk_index,
            "score": self.score,
            "similarity": self.similarity,
            "rank": self.rank,
        }


class GraphEntity(Model):
    """`seed`: the question names it; `weight`, 0 to 1, is its relevance to the question."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    seed: bool = False
    weight: float | None = None


class GraphEdge(Model):
    """`source` and `target` are ids of entities; the edge reads from source to target."""

    type: str
    source: str
    target: str
    confidence: float | None = None
    evidence: list[str] = Field(default_factory=list)


class Graph(Model):
    """`evidence` are ids of the chunks that state the edges."""

    entities: list[GraphEntity] = Field(default_factory=list)
    edges: list[GraphEdge] = Field(default_factory=list)
    evidence: list[str] = Field(default_factory=list)


class RetrievalMetadata(Model):
    """`reranked_by`: the reranker's model; `rerank_failed`: a reranker was requested, but it failed or none
    is configured. `exact`: the vectors of all candidates were compared. `considered`: the number of compared
    chunks."""

    mode: str
    total_results: int
    retrieval_time_ms: int | None = None
    reranked_by: str | None = None
    rerank_failed: bool = False
    exact: bool | None = None
    considered: int | None = None


class RetrievalResponse(Model):
    """The response as the API sends it."""

    query: str
    mode: str
    total_results: int
    graph_enhanced: bool = False
    graph_context: str | None = None
    graph: Graph | None = None
    results: list[Chunk]
    retrieval_metadata: RetrievalMetadata | None = None


class RetrievalResult(list[Chunk]):
    """The chunks, best first, and how they were found. `graph_context`: the graph in sentences; None without
    a graph."""

    def __init__(self, response: RetrievalResponse) -> None:
        super().__init__(response.results)
        self.response = response
        self.query = response.query
        self.mode = response.mode
        self.total_results = response.total_results
        self.graph_enhanced = response.graph_enhanced
        self.graph_context = response.graph_context
        self.graph = response.graph
        self.retrieval_metadata = response.retrieval_metadata


class GraphQueryResult(RetrievalResult):
    """Results of a graph search; entities and edges are empty if the graph has no name of the question."""

    @property
    def context(self) -> str | None:
        return self.graph_context

    @property
    def entities(self) -> list[GraphEntity]:
        return self.graph.entities if self.graph else []

    @property
    def edges(self) -> list[GraphEdge]:
        return self.graph.edges if self.graph else []
