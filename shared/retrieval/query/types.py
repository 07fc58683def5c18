"""Input and output of the query router."""

from dataclasses import dataclass
from enum import StrEnum

from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.document_families import Family
from shared.types import Mode


class SearchScope(StrEnum):
    AUTO = "auto"
    WORKSPACE = "workspace"
    ORG = "org"


class SearchMode(StrEnum):
    AUTO = "auto"
    KNOWLEDGE = "knowledge"
    GRAPH = "graph"
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    NEURAL = "neural"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class RouterInput:
    """`expands`: the router may rewrite the text; `is_question`: false for a similarity search."""

    text: str
    mode: SearchMode
    scope: SearchScope
    expands: bool
    has_filters: bool
    has_workspace: bool
    reranks: bool | None = None
    is_question: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that the router applied: a stable name, and a sentence for people."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Route:
    """The plan of a search. `mode` and `scope` are never auto; `text` is embedded, `words` are searched by
    keyword; `prefer` are the family's kinds; `graph`: the search uses the graph."""

    mode: SearchMode
    match_mode: Mode
    scope: SearchScope
    falls_back: bool
    text: str
    words: str
    family: Family | None
    prefer: tuple[str, ...]
    time_range: TimeRange | None
    half_life_days: float | None
    rerank: bool | None
    rules: tuple[Rule, ...]
    graph: bool = False

    @property
    def identifies(self) -> bool:
        """Whether the question is an identifier. The search uses keywords alone where a document has it."""
        return self.mode is SearchMode.KEYWORD and self.match_mode is Mode.HYBRID
