"""Wire models of /v1/contents."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from shared import types
from shared.api.contracts.search.camel_case import ChunkId, DocumentId, ResponsePart, WireModel, WorkspaceId
from shared.api.contracts.search.error_format import request_id
from shared.api.contracts.search.request_fields import Id, RequestModel, ScopedRequest
from shared.api.contracts.search.results import GraphEdge, Span
from shared.api.contracts.shared_fields import Flag, Notes
from shared.retrieval import types as retrieved
from shared.retrieval.types import Contents, Kind

GraphPart = Literal["relationships", "entities", "evidence"]
GRAPH_PARTS: list[GraphPart] = ["relationships", "entities", "evidence"]


class Reference(RequestModel):
    kind: Literal["document", "chunk"]
    id: Id


class GraphExpansion(RequestModel):
    hops: Annotated[int, Field(strict=True, ge=0, le=2)] = 1
    include: list[GraphPart] = Field(default_factory=GRAPH_PARTS.copy)


class Expand(RequestModel):
    chunks: Flag = False
    graph: GraphExpansion | None = None


class Request(ScopedRequest):
    ids: Annotated[list[Reference], Field(min_length=1, max_length=100)]
    expand: Expand = Field(default_factory=Expand)
    include_raw: Flag = False

    @property
    def hops(self) -> int | None:
        """The depth of each document's graph; None for no graph."""
        return self.expand.graph.hops if self.expand.graph else None

    def references(self) -> list[tuple[Kind, str]]:
        return [(reference.kind, reference.id) for reference in self.ids]


class DocumentChunk(ResponsePart):
    """`text` is null beyond the size limit of a response."""

    id: ChunkId = Field(validation_alias="chunk_id")
    text: str | None
    span: Span


class Chunk(DocumentChunk):
    document_id: DocumentId


class Graph(WireModel):
    """The graph around a document; parts that were not requested are empty."""

    entities: list[str]
    relationships: list[GraphEdge]
    evidence: list[str]

    @classmethod
    def of(cls, graph: types.Graph, include: list[GraphPart]) -> Self:
        return cls(
            entities=[entity.id for entity in graph.entities] if "entities" in include else [],
            relationships=list(map(GraphEdge.of, graph.edges)) if "relationships" in include else [],
            evidence=[f"chnk_{chunk}" for chunk in graph.evidence] if "evidence" in include else [],
        )


class Document(ResponsePart):
    """`body`, `chunks` and `graph` are null if not requested. `truncated`: the size limit left some out.
    `notes`, an extension of the contract: what of the file is not in the text."""

    id: DocumentId = Field(validation_alias="document_id")
    workspace_id: WorkspaceId = Field(validation_alias="collection_id")
    title: str
    type: str = Field(validation_alias="source_type")
    source: str | None = Field(validation_alias="origin")
    url: str | None = Field(validation_alias="uri")
    author: str | None
    state: str | None
    occurred_at: datetime | None
    metadata: dict[str, Any]
    notes: Notes
    body: str | None = Field(None, validation_alias="text")
    chunks: list[DocumentChunk] | None = None
    graph: Graph | None = None
    truncated: bool

    @classmethod
    def of_document(cls, document: retrieved.Document, expand: Expand) -> Self:
        graph = Graph.of(document.graph, expand.graph.include) if document.graph and expand.graph else None
        metadata = {**document.metadata, "labels": list(document.labels)}
        return cls.of(document, metadata=metadata, graph=graph)


class Response(WireModel):
    """`missing`: ids of the request without a document or chunk."""

    documents: list[Document]
    chunks: list[Chunk]
    missing: list[str]
    request_id: str

    @classmethod
    def of(cls, request: Request, contents: Contents) -> Self:
        return cls(
            documents=[Document.of_document(document, request.expand) for document in contents.documents],
            chunks=list(map(Chunk.of, contents.chunks)),
            missing=list(contents.missing),
            request_id=request_id(),
        )
