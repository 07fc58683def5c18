"""The nouns of the search API: what is wanted and where, what is retrieved and read, what is answered."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from shared.retrieval.query.dates.extract import TimeRange
from shared.retrieval.query.types import Route, Rule, SearchMode, SearchScope
from shared.types import Filters, Graph, Match

NO_FILTERS = Filters()
NO_GRAPH = Graph()
Kind = Literal["document", "chunk"]


@dataclass(frozen=True, slots=True)
class Place:
    """A collection of an org; None: all of the org that the caller sees."""

    org_id: str
    collection_id: str | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What somebody asks for, as they ask it: `workspace` and `org` are ids as clients write them; `expands`:
    the question may be rewritten; `neighbours` and `compares` as of a Query; `highlighted`, `in_context`:
    whether each result comes with its best passage, and all of them as one text."""

    text: str
    workspace: str | None = None
    org: str | None = None
    way: SearchMode = SearchMode.AUTO
    reach: SearchScope = SearchScope.AUTO
    filters: Filters = NO_FILTERS
    top_k: int = 10
    expands: bool = True
    moderated: bool = False
    rerank: bool | None = None
    neighbours: int = 0
    compares: bool = False
    highlighted: bool = True
    in_context: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """`text` is [start, end) of the document's text, in characters."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RoutedResult:
    """What was found, and why that: `highlights` are the matches' own, none where nobody wants them; `reach`
    is where in the end, `time_range` what it was narrowed to because the question says so, `model` what
    embedded it, None where nothing did; `shares` is what kind of document how much of the score is of;
    `stages` are milliseconds; `graph` is what had a part in it, nothing where none did; `vector` is the
    embedding of the request's text, where that was embedded as it stands."""

    matches: tuple[Match, ...]
    highlights: tuple[Highlight | None, ...]
    context: str | None
    place: Place
    route: Route
    reach: SearchScope
    rules: tuple[Rule, ...]
    time_range: TimeRange | None
    model: str | None
    shares: dict[str, float]
    stages: dict[str, float]
    milliseconds: int
    graph: Graph = NO_GRAPH
    vector: list[float] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk; `span` is [start, end) in its document's text. `text` is None where there was no room left."""

    chunk_id: str
    document_id: str
    ordinal: int
    text: str | None
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Document:
    """A document; `text`, `chunks` and `graph` are None where nobody asked for them. `truncated`: there was
    no room for the text, which then is None too, for the last of the chunks, or for the graph."""

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
    text: str | None
    chunks: tuple[Part, ...] | None
    truncated: bool
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """Each in the order in which it was asked for; `missing` are the ids of neither, as they were written."""

    documents: tuple[Document, ...]
    chunks: tuple[Part, ...]
    missing: tuple[str, ...]
