"""What the router is asked, and what it says."""

from dataclasses import dataclass
from enum import StrEnum

from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.document_kinds import Family
from shared.retrieval.query.expansion import Expanded
from shared.types import Mode


class SearchScope(StrEnum):
    """How far to look."""

    AUTO = "auto"
    WORKSPACE = "workspace"
    ORG = "org"


class SearchMode(StrEnum):
    """How to look."""

    AUTO = "auto"
    KNOWLEDGE = "knowledge"
    GRAPH = "graph"
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    NEURAL = "neural"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class RouterInput:
    """What a request says. `narrowed`: it has filters of its own; `reranks`: None where it does not say;
    `questions`: the text asks for something, or else is what others are to be like."""

    text: str
    way: SearchMode
    reach: SearchScope
    expands: bool
    narrowed: bool
    has_workspace: bool
    reranks: bool | None = None
    questions: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that had a say: a name that stays, and a sentence for people."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where the question goes. `way` and `reach` are never auto; `text` is what is embedded, `words` what is
    looked for by word; `prefer` are the family's kinds; `expanded` says what was added, and by whom; `graph`:
    what is known of the names in the question counts as well."""

    way: SearchMode
    mode: Mode
    reach: SearchScope
    falls_back: bool
    text: str
    words: str
    family: Family | None
    prefer: tuple[str, ...]
    time_range: TimeRange | None
    half_life_days: float | None
    rerank: bool | None
    rules: tuple[Rule, ...]
    expanded: Expanded | None = None
    graph: bool = False
