"""Wire models of retrievals."""

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from shared.api.contracts.ignored_names import IgnoredNames, SearchBody
from shared.api.contracts.metadata import MetadataFilter
from shared.api.contracts.shared_fields import (
    LOCATION,
    Composed,
    Flag,
    NullAsAbsent,
    ResponseModel,
    Score,
    WithoutNul,
    stripped,
)
from shared.types import Filters, Match, Mode, Query, SearchResult

ModeName = Literal["semantic", "keyword", "hybrid", "hierarchical", "graph"]
Text = Annotated[str, stripped(1000), WithoutNul, Composed]
Name = Annotated[str, stripped(100), WithoutNul]


class Request(NullAsAbsent, SearchBody):
    """Without `rerank` the deployment's setting applies, by default false. The mode graph implies
    enable_graph."""

    query: Text
    mode: ModeName = "semantic"
    top_k: Annotated[int, Field(strict=True, ge=1, le=100)] = 10
    collection_id: Name | None = None
    document_type: Name | None = None
    rerank: Flag | None = None
    enable_graph: Flag = False
    metadata_filter: MetadataFilter = Field(default_factory=dict)

    def to_request(self, collection: str | None) -> Query:
        """`collection`: the parsed collection_id."""
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


class ResultDocument(ResponseModel):
    id: str = Field(validation_alias="document_id")
    title: str
    filename: str | None


class ResultMetadata(ResponseModel):
    """`graph_sourced`: only the graph found the chunk."""

    graph_sourced: bool


class Result(ResponseModel):
    """`score` orders the results, 0 to 1; `similarity`: cosine to the query, null if not computed."""

    chunk_id: str
    document_id: str
    collection_id: str
    collection_name: str | None
    # The creator; and the owner of a private document, null for the org's.
    user_id: str = Field(validation_alias="created_by")
    owner_id: str | None
    content: str = Field(validation_alias="text")
    content_hash: str
    chunk_index: int = Field(validation_alias="ordinal")
    score: Score
    similarity: Score | None
    rank: int
    metadata: ResultMetadata
    document: ResultDocument
    document_metadata: dict[str, Any]
    chunk_metadata: dict[str, Any]

    @classmethod
    def of_match(cls, match: Match, rank: int) -> Self:
        file = {"filename": match.filename} if match.filename else {}
        return cls.of(
            match,
            content_hash=f"sha256:{hashlib.sha256(match.text.encode()).hexdigest()}",
            rank=rank,
            metadata=match,
            document=match,
            document_metadata={**match.metadata, "title": match.title, **file},
            chunk_metadata={name: match.location[name] for name in LOCATION if name in match.location},
        )


class GraphEntity(ResponseModel):
    """`seed`: the question names it; `weight`: relevance to the question, 0 to 1."""

    id: str
    name: str
    type: str = Field(validation_alias="kind")
    aliases: list[str]
    seed: bool = Field(validation_alias="is_seed")
    weight: Score


class GraphEdge(ResponseModel):
    """`source` and `target` are ids of entities; `type` reads from source to target."""

    type: str
    source: str
    target: str
    confidence: Score
    evidence: list[str]


class RetrievalGraph(ResponseModel):
    """The graph around the names in the question; `evidence`: ids of chunks."""

    entities: list[GraphEntity]
    edges: list[GraphEdge]
    evidence: list[str]


class RetrievalMetadata(ResponseModel):
    """`reranked_by`: the reranker's model, null without one; `rerank_failed`: a reranker was requested, but
    it failed or none is configured; `exact`: whether every candidate's vector was compared, null for a
    keyword search; `considered`: the number of compared chunks."""

    mode: ModeName
    total_results: int
    retrieval_time_ms: int = Field(validation_alias="milliseconds")
    reranked_by: str | None
    rerank_failed: bool
    exact: bool | None
    considered: int


class Response(BaseModel):
    """`graph_context`: the graph as text; it and `graph` are null if the graph was not used."""

    query: str
    mode: ModeName
    total_results: int
    graph_enhanced: bool
    graph_context: str | None
    graph: RetrievalGraph | None
    results: list[Result]
    retrieval_metadata: RetrievalMetadata
    ignored_filters: IgnoredNames

    @classmethod
    def of(cls, request: Request, result: SearchResult, context: str) -> Self:
        """`context`: the graph as text."""
        graph = result.graph if result.graph and result.graph.is_seeded else None
        count = len(result.matches)
        return cls(
            query=request.query,
            mode=request.mode,
            total_results=count,
            graph_enhanced=graph is not None,
            graph_context=context or None if graph else None,
            graph=RetrievalGraph.of(graph) if graph else None,
            results=[Result.of_match(match, rank) for rank, match in enumerate(result.matches, 1)],
            retrieval_metadata=RetrievalMetadata.of(result, mode=request.mode, total_results=count),
            ignored_filters=request.ignored_filters,
        )
