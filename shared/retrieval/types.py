"""Types of the search API: request, routed result, contents."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.types import Route, Rule, SearchMode, SearchScope
from shared.types import Filters, Graph, Match, Query

NO_FILTERS = Filters()
NO_GRAPH = Graph()
Kind = Literal["document", "chunk"]


@dataclass(frozen=True, slots=True)
class SearchArea:
    """A collection of an org, or with None the whole org."""

    org_id: str
    collection_id: str | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """`workspace` and `org` are ids as clients write them; `expands`: the router may rewrite the text;
    `neighbours` as in Query; `is_judged`: the result has `judged_matches`; `with_highlights`: the best
    passage of each match; `with_context`: all matches as one text."""

    text: str
    workspace: str | None = None
    org: str | None = None
    mode: SearchMode = SearchMode.AUTO
    scope: SearchScope = SearchScope.AUTO
    filters: Filters = NO_FILTERS
    top_k: int = 10
    expands: bool = True
    is_moderated: bool = False
    rerank: bool | None = None
    neighbours: int = 0
    is_judged: bool = False
    with_highlights: bool = True
    with_context: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """`text` is [start, end) of the document's text, in characters."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RoutedResult:
    """Matches, and the reasons for them. `query`, `scope` and `time_range`: those of the last search;
    `judged_matches`: those that confidence is judged by, empty if not requested; `highlights`: one per match,
    None if not requested; `embedding_model`: None if nothing was embedded; `shares`: the share of the score
    by kind of document; `stages`: milliseconds; `graph`: empty if not used; `vector`: the embedding of the
    request's text, None if it was not computed."""

    query: Query
    matches: tuple[Match, ...]
    judged_matches: tuple[Match, ...]
    highlights: tuple[Highlight | None, ...]
    context: str | None
    route: Route
    scope: SearchScope
    rules: tuple[Rule, ...]
    time_range: TimeRange | None
    embedding_model: str | None
    shares: dict[str, float]
    stages: dict[str, float]
    milliseconds: int
    graph: Graph = NO_GRAPH
    vector: list[float] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk; `span` is [start, end) in its document's text. `text` is None beyond the size limit."""

    chunk_id: str
    document_id: str
    ordinal: int
    text: str | None
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Document:
    """A document; `text`, `chunks` and `graph` are None if not requested. `truncated`: the size limit left
    out the text (None), the last chunks or the graph. `notes`: what of the file is not in the text."""

    document_id: str
    collection_id: str
    title: str
    source_type: str
    origin: str | None
    uri: str | None
    author: str | None
    state: str | None
    labels: tuple[str, ...]
    occurred_at: datetime | None
    metadata: dict[str, Any]
    notes: Any
    text: str | None
    chunks: tuple[StoredChunk, ...] | None
    truncated: bool
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """In the order of the request; `missing`: ids without a document or chunk, as the client wrote them."""

    documents: tuple[Document, ...]
    chunks: tuple[StoredChunk, ...]
    missing: tuple[str, ...]
