"""The platform contract's wire models of retrievals: what may be asked, and what is told of it."""

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, field_validator

from shared.api.contracts.platform.common import NullAsAbsent, WithoutNul, share, small
from shared.types import Edge, Entity, Filters, Graph, Match, Mode, Query, SearchResult

Flag = Annotated[bool, Field(strict=True)]
ModeName = Literal["semantic", "keyword", "hybrid", "hierarchical", "graph"]
Text = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=1000), WithoutNul
]
Name = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=100), WithoutNul
]


class Request(NullAsAbsent):
    """Without `rerank` it is as the deployment says, which is false by default. With mode graph enable_graph
    says nothing new."""

    query: Text
    mode: ModeName = "semantic"
    top_k: Annotated[int, Field(strict=True, ge=1, le=100)] = 10
    collection_id: Name | None = None
    document_type: Name | None = None
    rerank: Flag | None = None
    enable_graph: Flag = False
    metadata_filter: dict[str, Any] = Field(default_factory=dict)

    _small = field_validator("metadata_filter", mode="before")(small)

    def to_request(self, collection: str | None) -> Query:
        """`collection`: the id that collection_id means."""
        return Query(
            self.query,
            self.top_k,
            Filters(
                collection_ids=(collection,) if collection else (),
                metadata=self.metadata_filter,
                document_type=self.document_type,
            ),
            Mode(self.mode),
            rerank=self.rerank,
            graph=self.enable_graph,
        )


class DocumentShown(BaseModel):
    id: str
    title: str
    filename: str | None


class How(BaseModel):
    """`graph_sourced`: without the graph the chunk would not be here."""

    graph_sourced: bool


class Result(BaseModel):
    """`score` is the order's, 0 to 1; `similarity` the cosine to the query, null where none was computed."""

    chunk_id: str
    document_id: str
    collection_id: str
    # Who created the document; and the one user whose document it is, null where it is the whole org's.
    user_id: str
    owner_id: str | None
    content: str
    content_hash: str
    chunk_index: int
    score: float
    similarity: float | None
    rank: int
    metadata: How
    document: DocumentShown
    document_metadata: dict[str, Any]
    chunk_metadata: dict[str, Any]

    @classmethod
    def of(cls, match: Match, rank: int) -> Self:
        file = {"filename": match.filename} if match.filename else {}
        return cls(
            chunk_id=match.chunk_id,
            document_id=match.document_id,
            collection_id=match.collection_id,
            user_id=match.created_by,
            owner_id=match.owner_id,
            content=match.text,
            content_hash=f"sha256:{hashlib.sha256(match.text.encode()).hexdigest()}",
            chunk_index=match.ordinal,
            score=share(match.score),
            similarity=None if match.similarity is None else share(match.similarity),
            rank=rank,
            metadata=How(graph_sourced=match.graph_sourced),
            document=DocumentShown(id=match.document_id, title=match.title, filename=match.filename),
            document_metadata={**match.metadata, "title": match.title, **file},
            chunk_metadata=match.place,
        )


class GraphEntity(BaseModel):
    """`seed`: the question names it; `weight`, 0 to 1, is how much it has to do with that."""

    id: str
    name: str
    type: str
    aliases: list[str]
    seed: bool
    weight: float

    @classmethod
    def of(cls, entity: Entity) -> Self:
        return cls(
            id=entity.id,
            name=entity.name,
            type=entity.kind,
            aliases=list(entity.aliases),
            seed=entity.is_seed,
            weight=share(entity.weight),
        )


class GraphEdge(BaseModel):
    """Source and target are ids of entities; it reads forward."""

    type: str
    source: str
    target: str
    confidence: float
    evidence: list[str]

    @classmethod
    def of(cls, edge: Edge) -> Self:
        return cls(
            type=edge.type,
            source=edge.source,
            target=edge.target,
            confidence=share(edge.confidence),
            evidence=list(edge.evidence),
        )


class GraphShown(BaseModel):
    """What the graph knows around the names in the question; evidence are ids of chunks that say so."""

    entities: list[GraphEntity]
    edges: list[GraphEdge]
    evidence: list[str]

    @classmethod
    def of(cls, graph: Graph) -> Self:
        return cls(
            entities=[GraphEntity.of(entity) for entity in graph.entities],
            edges=[GraphEdge.of(edge) for edge in graph.edges],
            evidence=list(graph.evidence),
        )


class Retrieval(BaseModel):
    """How it was found. `reranked_by`: the model that made the order, null where none did; `rerank_failed`:
    one was asked to and could not. `exact`: everything that might be found was compared by its vector; null
    where words alone decided. `considered`: how many chunks were."""

    mode: ModeName
    total_results: int
    retrieval_time_ms: int
    reranked_by: str | None
    rerank_failed: bool
    exact: bool | None
    considered: int


class Response(BaseModel):
    """`graph_context` is what the graph says, in words; it and `graph` are null where it had no part."""

    query: str
    mode: ModeName
    total_results: int
    graph_enhanced: bool
    graph_context: str | None
    graph: GraphShown | None
    results: list[Result]
    retrieval_metadata: Retrieval

    @classmethod
    def of(cls, request: Request, found: SearchResult, context: str) -> Self:
        """`context` is the graph in words."""
        graph = found.graph if found.graph and found.graph.is_seeded else None
        count = len(found.matches)
        return cls(
            query=request.query,
            mode=request.mode,
            total_results=count,
            graph_enhanced=graph is not None,
            graph_context=context or None if graph else None,
            graph=GraphShown.of(graph) if graph else None,
            results=[Result.of(match, rank) for rank, match in enumerate(found.matches, 1)],
            retrieval_metadata=Retrieval(
                mode=request.mode,
                total_results=count,
                retrieval_time_ms=found.milliseconds,
                reranked_by=found.reranked_by,
                rerank_failed=found.rerank_failed,
                exact=found.exact,
                considered=found.considered,
            ),
        )
