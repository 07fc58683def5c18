"""The nouns that the six steps hand on. Wire names appear in `dialects/` only."""

import math
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


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


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search is narrowed by; dates are inclusive and mean the document's own date."""

    source_type: str | None = None
    lang: str | None = None
    org_id: str | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question, how many chunks to bring, and from where."""

    text: str
    top_k: int = 8
    filters: Filters = Filters()


@dataclass(frozen=True, slots=True)
class Match:
    """A chunk that the caller may see, with its document's fields.

    `similarity` is the cosine to the query, clamped to 0..1; `span` is [start, end) in characters of the
    document's text. `score` is what ordered the list, 0..1, non-increasing.
    """

    chunk_id: str
    document_id: str
    org_id: str
    ordinal: int
    text: str
    span: tuple[int, int]
    similarity: float
    score: float = field(kw_only=True, default=math.nan)  # the similarity, unless given
    source_type: str
    title: str
    uri: str | None
    lang: str | None
    occurred_at: datetime | None
    metadata: dict[str, Any]

    def __post_init__(self) -> None:
        if math.isnan(self.score):
            object.__setattr__(self, "score", self.similarity)


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
class Draft:
    """What a generator wrote, and which generator it was."""

    text: str
    model: str


@dataclass(frozen=True, slots=True)
class Found:
    """The end of the first four steps: matches, best first."""

    matches: tuple[Match, ...]
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of all six steps. `draft` is None where confidence withheld an answer."""

    matches: tuple[Match, ...]
    judgement: Judgement
    citations: tuple[Citation, ...]
    draft: Draft | None
    generated_at: datetime
    milliseconds: int
